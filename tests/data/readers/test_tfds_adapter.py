import errno
import logging
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_dml.data.prepare import prepare
from keras_dml.data.readers import read, tfds_adapter
from keras_dml.data.readers.tfds_adapter import check_hosts, load_builder
from keras_dml.errors import RunError, UsageError

tfds = pytest.importorskip("tensorflow_datasets")


class TinyBuilder(tfds.core.GeneratorBasedBuilder):
    """Two splits by image, whose file names are unique within each."""

    VERSION = tfds.core.Version("1.0.0")
    SIDES = (None, None)
    NAMED = True

    def _info(self):
        features = {
            "image": tfds.features.Image(shape=(*self.SIDES, 3)),
            "label": tfds.features.ClassLabel(num_classes=3),
        }
        if self.NAMED:
            features["filename"] = tfds.features.Text()
        return tfds.core.DatasetInfo(
            builder=self, features=tfds.features.FeaturesDict(features)
        )

    def _split_generators(self, dl_manager):
        return {
            "train": self._generate_examples(0),
            "test": self._generate_examples(100),
        }

    def _generate_examples(self, shade):
        for row in range(6):
            height = self.SIDES[0] or 5 + row
            example = {
                "image": np.full((height, 8, 3), shade + row, np.uint8),
                "label": row % 3,
            }
            if self.NAMED:
                example["filename"] = f"{row}.png"
            yield row, example


class TinyFiles(TinyBuilder):
    """Images of several sizes."""


class TinyArrays(TinyBuilder):
    """Images of one size, without names; the test split has no labels."""

    SIDES = (8, 8)
    NAMED = False

    def _generate_examples(self, shade):
        for row, example in super()._generate_examples(shade):
            yield row, {**example, "label": -1 if shade else row % 3}


class TinyPairs(TinyBuilder):
    """Two images per example."""

    def _info(self):
        image = tfds.features.Image(shape=(8, 8, 3))
        return tfds.core.DatasetInfo(
            builder=self,
            features=tfds.features.FeaturesDict(
                {"left": image, "right": image}
            ),
        )

    def _generate_examples(self, shade):
        image = np.zeros((8, 8, 3), np.uint8)
        yield 0, {"left": image, "right": image}


class TinyUnreachable(TinyBuilder):
    """A download that fails."""

    def _split_generators(self, dl_manager):
        raise OSError("the host does not answer")


class TinyNames(TinyBuilder):
    """Names that differ only in an ending."""

    def _generate_examples(self, shade):
        names = ("a", "a.png", "a.jpg", "b", "b.png", "b.jpg")
        for row, example in super()._generate_examples(shade):
            yield row, {**example, "filename": names[row]}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    for builder in (TinyFiles, TinyArrays, TinyPairs, TinyNames):
        builder(data_dir=folder).download_and_prepare()
    return folder


def test_splits_are_merged_and_made_again_by_class(records):
    manifest = read("tfds:tiny_files", records)
    assert len(manifest) == 12
    # Two of three classes train, from both published splits.
    train = manifest.part("train")
    assert train.num_classes == 2 and len(train) == 8
    assert {name.split("/")[0] for name in train.ids} == {"train", "test"}
    assert manifest.ids.tolist() == sorted(manifest.ids.tolist())


def test_images_of_several_sizes_become_files(records):
    import tensorflow as tf

    manifest = read("tfds:tiny_files", records)
    assert manifest.images is None
    for name, path, label in zip(
        manifest.ids, manifest.paths, manifest.labels, strict=True
    ):
        row = int(name.split("/")[1].removesuffix(".png"))
        pixels = tf.io.decode_png(tf.io.read_file(path)).numpy()
        assert pixels.shape == (5 + row, 8, 3)
        assert (pixels == row + 100 * name.startswith("test")).all()
        assert label == row % 3
    assert read("tfds:tiny_files", records).checksum() == manifest.checksum()


def test_names_that_differ_in_an_ending_are_two_files(records):
    manifest = read("tfds:tiny_names", records)
    assert len(set(manifest.paths)) == len(set(manifest.ids)) == 12


def refuse(monkeypatch, code):
    """Lets no image be written."""

    def refused(path):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(tfds_adapter, "replacing", refused)


def copied(records, folder):
    shutil.copytree(records / "tiny_files", folder / "tiny_files")
    images = folder / "tiny_files" / "1.0.0" / "keras_dml_images"
    shutil.rmtree(images, ignore_errors=True)
    return images


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS])
def test_records_that_nobody_may_change(records, tmp_path, monkeypatch, code):
    images = copied(records, tmp_path)
    with monkeypatch.context() as patch:
        refuse(patch, code)
        with pytest.raises(UsageError, match="once where you may") as caught:
            read("tfds:tiny_files", tmp_path)
    assert f"Received: {images}" in str(caught.value)
    wanted = read("tfds:tiny_files", tmp_path)
    # What somebody else has read before is complete.
    refuse(monkeypatch, code)
    assert read("tfds:tiny_files", tmp_path).checksum() == wanted.checksum()


def test_a_full_disk_is_no_mistake_of_the_caller(
    records, tmp_path, monkeypatch
):
    copied(records, tmp_path)
    refuse(monkeypatch, errno.ENOSPC)
    with pytest.raises(OSError, match="No space left"):
        read("tfds:tiny_files", tmp_path)


def test_an_image_appears_whole_or_not_at_all(records, tmp_path, monkeypatch):
    images = copied(records, tmp_path)
    written = Path.write_bytes

    def killed(path, content):
        written(path, content[:9])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", killed)
        with pytest.raises(KeyboardInterrupt):
            read("tfds:tiny_files", tmp_path)
    assert not [path for path in images.rglob("*") if path.is_file()]
    assert len(read("tfds:tiny_files", tmp_path)) == 12


def test_images_of_one_size_become_an_array(records, caplog):
    with caplog.at_level(logging.WARNING):
        manifest = read("tfds:tiny_arrays", records)
    assert manifest.paths is None
    assert manifest.images.shape == (6, 8, 8, 3)
    np.testing.assert_array_equal(
        manifest.images[:, 0, 0, 0] % 3, manifest.labels
    )
    assert "6 of 12 images of tfds:tiny_arrays have no label" in caplog.text


def write_omniglot(folder):
    """Records of the real builder with one image per class of a few."""

    class Omniglot(tfds.image_classification.Omniglot, skip_registration=True):
        def _split_generators(self, dl_manager):
            parts = {"train": [0, 963], "test": [964, 1622], "small1": [0]}
            return {
                part: self._generate_examples(labels)
                for part, labels in parts.items()
            }

        def _generate_examples(self, labels):
            for label in labels:
                page = np.full((105, 105, 3), 255, np.uint8)
                page[label % 100] = 0
                example = {"image": page, "label": label}
                yield label, {**example, "alphabet": 0, "alphabet_char_id": 0}

    Omniglot(data_dir=folder).download_and_prepare()


def test_omniglot_without_its_repeated_parts(tmp_path):
    write_omniglot(tmp_path)
    with pytest.raises(UsageError, match="4 images listed instead of 32460"):
        read("tfds:omniglot", tmp_path)
    manifest = read("tfds:omniglot", tmp_path, allow_partial=True)
    assert len(manifest) == 4 and manifest.partial
    by_label = dict(zip(manifest.labels, manifest.split, strict=True))
    assert by_label == {0: "train", 963: "train", 964: "test", 1622: "test"}
    # Ink is bright, as in the arrays.
    assert manifest.images.shape == (4, 105, 105, 1)
    for image, label in zip(manifest.images, manifest.labels, strict=True):
        assert (image[label % 100] == 255).all()
        assert image.sum() == 105 * 255


def test_prepare_reads_downloaded_records(tmp_path):
    write_omniglot(tmp_path)
    report = prepare("omniglot", tmp_path, download=True)
    assert report.name == "tfds:omniglot"
    assert "instead of 32460" in report.problem
    assert report.counts["train_images"] == 2


def test_errors(tmp_path):
    with pytest.raises(UsageError, match="must name a builder of tensorflow-d"):
        read("tfds:no_such_set", tmp_path)
    with pytest.raises(UsageError, match="tfds:cars196 cannot be downloaded"):
        read("tfds:cars196", tmp_path)
    with pytest.raises(UsageError, match="tfds:mnist must be downloaded first"):
        load_builder("mnist", tmp_path, download=False)
    with pytest.raises(RunError, match="failed: the host does not answer"):
        read("tfds:tiny_unreachable", tmp_path)


def test_without_a_network_it_says_so_at_once(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    addresses = ["https://name:word@host.invalid:8443/images.zip", "notes.txt"]
    with pytest.raises(RunError, match="There is no way to host.invalid, from"):
        check_hosts(addresses)
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    check_hosts(addresses)


def test_two_images_and_no_label(records):
    with pytest.raises(UsageError, match=r"\['left', 'right'\]"):
        read("tfds:tiny_pairs", records)
