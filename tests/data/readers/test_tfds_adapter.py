import logging

import numpy as np
import pytest
import tensorflow_datasets as tfds

from keras_dml.data.readers import read, read_tfds
from keras_dml.data.readers.tfds_adapter import load_builder
from keras_dml.errors import RunError, UsageError


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


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    for builder in (TinyFiles, TinyArrays, TinyPairs):
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


def test_images_of_one_size_become_an_array(records, caplog):
    with caplog.at_level(logging.WARNING):
        manifest = read("tfds:tiny_arrays", records)
    assert manifest.paths is None
    assert manifest.images.shape == (6, 8, 8, 3)
    np.testing.assert_array_equal(
        manifest.images[:, 0, 0, 0] % 3, manifest.labels
    )
    assert "6 of 12 images of tfds:tiny_arrays have no label" in caplog.text


def test_omniglot_without_its_repeated_parts(tmp_path):
    with tfds.testing.mock_data(num_examples=7):
        manifest = read_tfds("omniglot", tmp_path, allow_partial=True)
    # train and test, but neither small1 nor small2.
    assert len(manifest) == 14 and manifest.partial
    assert manifest.images.shape == (14, 105, 105, 1)
    np.testing.assert_array_equal(
        manifest.split, np.where(manifest.labels < 964, "train", "test")
    )


def test_counts_of_known_sets_are_asserted(tmp_path):
    with (
        tfds.testing.mock_data(num_examples=3),
        pytest.raises(UsageError, match="6 images listed instead of 32460"),
    ):
        read("tfds:omniglot", tmp_path)


def test_errors(tmp_path):
    with pytest.raises(UsageError, match="must name a builder of tensorflow-d"):
        read("tfds:no_such_set", tmp_path)
    with pytest.raises(UsageError, match="tfds:cars196 cannot be downloaded"):
        read("tfds:cars196", tmp_path)
    with pytest.raises(UsageError, match="tfds:mnist must be downloaded first"):
        load_builder("mnist", tmp_path, download=False)
    with pytest.raises(RunError, match="failed: the host does not answer"):
        read("tfds:tiny_unreachable", tmp_path)


def test_two_images_and_no_label(records):
    with pytest.raises(UsageError, match=r"\['left', 'right'\]"):
        read("tfds:tiny_pairs", records)
