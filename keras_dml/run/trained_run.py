"""Opens a finished run, and embeds and measures images with it."""

import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data import readers, verification
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.errors import UsageError
from keras_dml.models import load_embedder
from keras_dml.run.cache import EmbeddingCache, images_hash, weights_hash
from keras_dml.run.data import (
    list_gallery,
    load_run_data,
    read_images,
    stage_data,
)
from keras_dml.run.embedder_check import check_embedder, embedding_dim
from keras_dml.run.folder import RunFolder
from keras_dml.run.history import History, read_history
from keras_dml.run.measure import embed
from keras_dml.run.same_images import check_measured_with


@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddedImages:
    """Holds images and their embeddings, row by row.

    Args:
        embeddings: `EmbeddingSet`.
        images: `Manifest` of the same rows, or `None` if the images cannot be
            found anymore.
    """

    embeddings: EmbeddingSet
    images: Manifest | None


class TrainedRun:
    """A finished run, with its settings, its embedder and its embeddings.

    Args:
        path: The run folder.
        data_dir: Folder of the data, if it was moved. Defaults to `None`, the
            folder that the run used.

    Raises:
        UsageError: If the folder holds no run, or the run is not finished.
    """

    data_dir: str | Path | None = None
    # What the names of files of this network alone end in.
    suffix = ""

    def __init__(
        self, path: str | Path, data_dir: str | Path | None = None
    ) -> None:
        self.folder, self.data_dir = RunFolder.open(path), data_dir
        self.metrics = self.folder.read_metrics()
        self.config = with_data(self.folder.load_config(), None, data_dir)

    @classmethod
    def of(
        cls, run: "TrainedRun | str | Path", data_dir: str | Path | None = None
    ) -> "TrainedRun":
        """Opens a run folder, or returns a run that is already open."""
        if not isinstance(run, TrainedRun):
            return cls(run, data_dir)
        return run if data_dir is None else cls(run.folder.path, data_dir)

    @classmethod
    def just_trained(
        cls, path: str | Path, config: RunConfig, metrics: dict[str, Any]
    ) -> Self:
        """Makes the run of a training that has just ended.

        Only the chief needs access to the run folder.

        Args:
            path: The run folder.
            config: The configuration of the training.
            metrics: The metrics that the training returned.
        """
        run = cls.__new__(cls)
        run.folder, run.metrics = RunFolder(path), metrics
        run.config = run.folder.load_config() if run.folder.exists else config
        return run

    @functools.cached_property
    def embedder(self) -> keras.Model:
        """The trained embedder.

        Raises:
            RunError: If the file does not load, or is not of this run.
        """
        embedder = load_embedder(self.folder.embedder)
        check_embedder(embedder, self.config, self.metrics)
        return embedder

    @property
    def dim(self) -> int:
        """The number of values of an embedding."""
        return embedding_dim(self.config, self.metrics)

    @functools.cached_property
    def weights_hash(self) -> str:
        """The hash of the embedder's weights."""
        return weights_hash(self.embedder)

    @functools.cached_property
    def history(self) -> History:
        """The epochs of all phases in the order of training."""
        return read_history(self.folder.history)

    def embed_images(self, images: Manifest) -> np.ndarray:
        """Embeds images, in their order."""
        with verification.naming_broken(images):
            return embed(self.embedder, images, self.config)

    @property
    def begun(self) -> dict[str, str]:
        """What `check_measured_with` compares; empty if everything trained."""
        if self.metrics.get("final"):
            return {}
        return self.metrics.get("images", {})

    def part(
        self,
        part: str,
        source: str | None = None,
        data_dir: str | Path | None = None,
    ) -> EmbeddedImages | None:
        """Returns images with their embeddings, from the cache if it is valid.

        Args:
            part: `"test"`, `"validation"` (classes, or images, held out to
                choose the weights) or `"all"`. After a refit, validation
                images are as the network embedded them that saw none of them,
                and without the images.
            source: Other data to use instead of the run's. Defaults to
                `None`.
            data_dir: Folder of this source. Defaults to `None`.

        Returns:
            `EmbeddedImages`, or `None` for the validation images of a run
            without such.

        Raises:
            UsageError: If the images cannot be read.
        """
        config = self.config
        if part == "validation" and self.metrics.get("refit"):
            return EmbeddedImages(load_embeddings(self.folder.unseen), None)
        if source is not None:
            config = with_data(config, source, data_dir)
        cache = self._cache(_file_name(part, source, data_dir))
        try:
            read = list_gallery if part == "all" else read_images
            everything = read(config)
        except UsageError as error:
            return self._without_images(cache, error)
        present = images_hash(everything, config)
        embeddings = cache.load(self.weights_hash, present)
        if embeddings is None or not self._fits(embeddings, everything):
            begun = self.begun if source is None else {}
            images = _images_of(part, everything, config, begun)
            if images is None:
                return None
            embeddings = self._embedded(part, images, self.embed_images(images))
            cache.save(embeddings, present)
        return EmbeddedImages(
            embeddings, everything.select(_rows(everything, embeddings))
        )

    def keep_test(self, embeddings: np.ndarray, test: Manifest) -> None:
        """Puts the embeddings of the test images into the cache."""
        self._cache(_file_name("test", None, None)).save(
            self._embedded("test", test, embeddings),
            images_hash(read_images(self.config), self.config),
        )

    def _cache(self, name: str) -> EmbeddingCache:
        path = self.folder.path / "embeddings" / name
        return EmbeddingCache(path, self._told)

    @functools.cached_property
    def _told(self) -> set[str]:
        """Reasons to embed again that this run has logged."""
        return set()

    def _embedded(
        self, part: str, images: Manifest, embeddings: np.ndarray
    ) -> EmbeddingSet:
        return EmbeddingSet(
            embeddings,
            images.labels,
            images.ids,
            images.role if part == "test" else None,
            images.class_names,
            self.weights_hash,
        )

    def _fits(self, embeddings: EmbeddingSet, images: Manifest) -> bool:
        """Returns whether cached rows are of these images and this network."""
        if (
            embeddings.embeddings.shape[1] != self.dim
            or embeddings.labels is None
            or embeddings.labels.ndim != images.labels.ndim
            or not np.isin(embeddings.ids, images.ids).all()
        ):
            return False
        images = images.select(_rows(images, embeddings))
        if not images.has_label_sets:
            return np.array_equal(embeddings.names, images.names)
        # Classes that trained do not count in a test.
        place = {name: i for i, name in enumerate(images.class_names)}
        counted = [place.get(name) for name in embeddings.class_names.tolist()]
        return None not in counted and np.array_equal(
            embeddings.labels, images.labels[:, counted]
        )

    def _without_images(
        self, cache: EmbeddingCache, error: UsageError
    ) -> EmbeddedImages:
        """Returns the cached embeddings if the images cannot be read."""
        embeddings = cache.load(self.weights_hash)
        if embeddings is None:
            raise error
        logger.warning(
            "The images are not there (%s); their embeddings are taken from "
            "%s.",
            error,
            cache.path,
        )
        return EmbeddedImages(embeddings, None)


def with_data(
    config: RunConfig, source: str | None, data_dir: str | Path | None
) -> RunConfig:
    """Returns the configuration with other data, and without its split.

    Without a `source`, with its own data, which `data_dir` holds now.
    """
    changes: dict[str, Any] = {}
    place = None if data_dir is None else str(data_dir)
    if source is not None:
        changes = {
            "source": source,
            "data_dir": place,
            "train_classes": None,
            "test_classes": None,
            "train_fraction": None,
            "max_classes": None,
        }
        if config.sampling.triplets is not None:
            # They name images of the own data.
            plain = {"kind": "random", "triplets": None}
            config = config.changed(sampling=plain)
    elif place is not None:
        own = config.data.source
        changes = (
            {"data_dir": place}
            if readers.is_named(own)
            else {"source": _moved(own, place)}
        )
    return config.changed(data=changes)


def _moved(source: str, folder: str) -> str:
    """Returns where a folder of images, or a CSV file in it, is now."""
    if source.lower().endswith(".csv") and os.path.isdir(folder):
        return os.path.join(folder, os.path.basename(source))
    return folder


def _images_of(
    part: str,
    everything: Manifest,
    config: RunConfig,
    begun: Mapping[str, str],
) -> Manifest | None:
    """Returns the readable images of a part."""
    if part == "all":
        return verification.drop_bad(everything)
    data = load_run_data(config)
    check_measured_with(begun, data, config, part)
    if part == "test":
        return data.test
    # Test classes that chose the epoch must not calibrate.
    if config.data.validation == "test":
        return None
    return stage_data(data, config.stages[-1], config).validation


def _rows(everything: Manifest, embeddings: EmbeddingSet) -> np.ndarray:
    """Finds the rows of embedded images among all images."""
    order = np.argsort(everything.ids, kind="stable")
    found = np.searchsorted(everything.ids[order], embeddings.ids)
    return order[found]


def _file_name(
    part: str, source: str | None, data_dir: str | Path | None
) -> str:
    """Returns a readable file name that is unique for each source."""
    if source is None:
        return f"{part}.npz"
    whole = source if readers.is_named(source) else os.path.realpath(source)
    digest = hashlib.sha256(os.fsencode(f"{whole}\0{data_dir}")).hexdigest()
    # A file system allows 255 bytes, of which a letter takes up to four.
    plain = re.sub(r"\W+", "_", Path(source).stem)[:50]
    return f"{part}-{plain}-{digest[:8]}.npz"
