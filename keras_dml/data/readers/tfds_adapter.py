"""Reads image classification sets of tensorflow-datasets, split by class."""

import logging
import os
import socket
import urllib.parse
import urllib.request
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from keras_dml.data import splits
from keras_dml.data.facts import dataset_facts
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import complete
from keras_dml.errors import RunError, UsageError, reason_of
from keras_dml.files import is_read_only, replacing

logger = logging.getLogger(__name__)

MAX_ARRAY_BYTES = 2**30
_LABEL_KEYS = ("label", "class_id")
_NAME_KEYS = ("image/filename", "filename", "file_name", "id")


def read_tfds(
    name: str,
    data_dir=None,
    allow_partial: bool = False,
    download: bool = True,
) -> Manifest:
    """Merges all splits of a builder and splits them again by class.

    Rows are sorted by the file name that the builder keeps, or by their place
    in its records if it keeps none. Images of one fixed size are held in
    memory if they take at most 1 GiB. Other images are written to files next
    to the records, in their encoded form.

    Args:
        name: String, the builder, with its configuration if it has one.
        data_dir: Path for tensorflow-datasets. Defaults to the default of
            tensorflow-datasets.
        allow_partial: Boolean, whether to continue if counts differ from the
            published ones. Defaults to `False`.
        download: Boolean, whether to download missing records. Defaults to
            `True`.

    Returns:
        `Manifest`. If papers use the data set, its classes are split as in
        the papers; otherwise the first half of the classes trains.

    Raises:
        UsageError: If the builder is unknown, does not have exactly one image
            and one label, or is incomplete; if its records are missing and
            may not or cannot be downloaded; or if images cannot be written
            next to them.
        RunError: If the download fails.
    """
    builder = load_builder(name, data_dir, download)
    facts = dataset_facts(f"tfds:{name}")
    image_key, label_key = _find_keys(builder.info.features, name)
    channels = _channels_in_memory(builder, facts, image_key)
    in_memory = channels is not None
    ids, contents, labels = _examples(
        builder, facts, image_key, label_key, in_memory
    )
    # A split without labels has -1 everywhere.
    labeled = np.flatnonzero(labels >= 0)
    if len(labeled) < len(labels):
        logger.warning(
            "%d of %d images of tfds:%s have no label and are left out.",
            len(labels) - len(labeled),
            len(labels),
            name,
        )
    order = labeled[np.argsort(ids[labeled], kind="stable")]
    contents = [contents[row] for row in order]
    labels = labels[order]
    images = None
    if in_memory:
        images = _decode_all(contents, channels)
        if facts.tfds_inverted:
            images = 255 - images
    manifest = Manifest(
        name=f"tfds:{name}",
        labels=labels,
        class_names=builder.info.features[label_key].names,
        ids=ids[order],
        paths=None if in_memory else contents,
        images=images,
        split=_split(labels, facts),
    )
    return complete(manifest, facts, builder.data_path, allow_partial)


def load_builder(name: str, data_dir=None, download: bool = True):
    """Returns a builder with its records, and downloads them if necessary.

    Args:
        name: String, the builder.
        data_dir: Path for tensorflow-datasets. Defaults to the default of
            tensorflow-datasets.
        download: Boolean, whether to download missing records. Defaults to
            `True`.

    Raises:
        UsageError: If tensorflow-datasets is not installed, the builder is
            unknown, or its records are missing and may not or cannot be
            downloaded.
        RunError: If the download fails.
    """
    try:
        import tensorflow_datasets as tfds
    except ImportError as error:
        raise UsageError(
            f"`tfds:{name}` needs tensorflow-datasets: install it with "
            "`pip install 'keras-dml[tfds]'`."
        ) from error
    try:
        builder = tfds.builder(
            name, data_dir=None if data_dir is None else os.fspath(data_dir)
        )
    # A version that does not exist is an assertion there.
    except (ValueError, AssertionError) as error:
        raise UsageError(
            "`tfds:NAME` must name a builder of tensorflow-datasets. "
            f"Received: tfds:{name} ({reason_of(error)})"
        ) from error
    if builder.is_prepared():
        return builder
    facts = dataset_facts(f"tfds:{name}")
    if facts.tfds_name and not facts.tfds_downloads:
        raise UsageError(
            f"tfds:{name} cannot be downloaded: its addresses no longer "
            f"answer. Received: no records in {builder.data_path}. Use "
            f"`{facts.name}` from a folder, `data_dir`; `keras-dml prepare "
            f"{facts.name}` names the files."
        )
    if not download:
        raise UsageError(
            f"tfds:{name} must be downloaded first. Received: no records in "
            f"{builder.data_path}."
        )
    check_hosts(builder.url_infos or ())
    try:
        builder.download_and_prepare()
    except Exception as error:
        raise RunError(
            f"The download of tfds:{name} failed: {reason_of(error)}. Check "
            "the network and the free space, then run the command again."
        ) from error
    return builder


def check_hosts(urls: Iterable[str]) -> None:
    """Raises at once where a download would try for minutes to find its hosts.

    Args:
        urls: The addresses to download from. Nothing is looked up where a
            proxy does so.

    Raises:
        RunError: If a host has no address.
    """
    proxies = urllib.request.getproxies()
    parts = map(urllib.parse.urlsplit, urls)
    for scheme, host in dict.fromkeys(
        (one.scheme, one.hostname) for one in parts
    ):
        if host is None or scheme in proxies or "all" in proxies:
            continue
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            raise RunError(
                f"There is no way to {host}, from which the data set must be "
                f"downloaded ({error.strerror}). Check the network, then run "
                "the command again."
            ) from error


def _find_keys(features, name):
    """Returns the names of the image feature and of the class feature."""
    import tensorflow_datasets as tfds

    images = [
        key
        for key, feature in features.items()
        if type(feature) is tfds.features.Image
    ]
    classes = [
        key
        for key, feature in features.items()
        if isinstance(feature, tfds.features.ClassLabel)
    ]
    if "image" in images:
        images = ["image"]
    classes = [key for key in _LABEL_KEYS if key in classes][:1] or classes
    if len(images) != 1 or len(classes) != 1:
        raise UsageError(
            f"tfds:{name} must have one image and one class label. Received: "
            f"features={sorted(features)}. Write its images into a folder "
            "per class instead."
        )
    return images[0], classes[0]


def _channels_in_memory(builder, facts, image_key):
    """Returns the channels of images of one size that fit into memory.

    Returns `None` for images that do not.
    """
    height, width, channels = builder.info.features[image_key].shape
    if height is None or width is None:
        return None
    channels = min(facts.channels, channels or 3)
    count = sum(split.num_examples for split in builder.info.splits.values())
    fits = count * height * width * channels <= MAX_ARRAY_BYTES
    return channels if fits else None


def _examples(builder, facts, image_key, label_key, in_memory):
    """Returns ids, images and labels of all splits, one after the other.

    An image is given as its encoded bytes if `in_memory`, else as the path
    of a file that holds them.
    """
    import tensorflow_datasets as tfds

    features = builder.info.features
    name_key = next((key for key in _NAME_KEYS if key in features), "tfds_id")
    folder = Path(builder.data_path) / "keras_dml_images"
    ids, contents, labels = [], [], []
    for split in sorted(set(builder.info.splits) - set(facts.tfds_unused)):
        dataset = builder.as_dataset(
            split=split,
            decoders={image_key: tfds.decode.SkipDecoding()},
            read_config=tfds.ReadConfig(
                add_tfds_id=True, interleave_cycle_length=1
            ),
        )
        for example in tfds.as_numpy(dataset):
            identity = example[name_key]
            if isinstance(identity, bytes):
                identity = identity.decode()
            content = example[image_key]
            ids.append(f"{split}/{identity}")
            contents.append(
                content if in_memory else _write(folder / ids[-1], content)
            )
            labels.append(int(example[label_key]))
    return np.asarray(ids), contents, np.asarray(labels, dtype=np.int64)


def _write(path, content):
    """Writes an encoded image once, and returns its path."""
    suffix = ".png" if content.startswith(b"\x89PNG") else ".jpg"
    # The images `a` and `a.png` are two files.
    path = path.with_name(path.name + suffix)
    if path.is_file() and path.stat().st_size == len(content):
        return str(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        if not is_read_only(error):
            raise
        raise UsageError(
            "Images of several sizes must be written next to the records. "
            f"Received: {path.parent}, which must not be written. Read the "
            "data set once where you may write there, or copy its records to "
            "another `data_dir`."
        ) from error
    return str(path)


def _decode_all(contents, channels):
    import tensorflow as tf

    from keras_dml.data import decoding
    from keras_dml.data.fixed_parallelism import fixed_parallelism

    dataset = tf.data.Dataset.from_tensor_slices(contents).map(
        lambda content: decoding.decode(content, channels),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    return np.stack(list(fixed_parallelism(dataset).as_numpy_iterator()))


def _split(labels, facts):
    train_classes = facts.counts.get("train_classes")
    if train_classes is None:
        return splits.class_disjoint(labels)
    return np.where(labels < train_classes, "train", "test")
