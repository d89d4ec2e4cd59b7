import numpy as np

from keras_dml.data.readers import read


def test_digits_are_split_within_classes():
    manifest = read("digits")
    assert manifest.images.shape == (1797, 8, 8, 1)
    assert manifest.images.min() == 0 and manifest.images.max() == 255
    assert manifest.seen and not manifest.partial
    for label in range(10):
        split = manifest.split[manifest.labels == label]
        train = (split == "train").sum()
        assert train == -(-len(split) // 2)
    assert manifest.part("test").num_classes == 10
    assert read("digits").checksum() == manifest.checksum()


def test_levels_are_spread_evenly():
    levels = np.unique(read("digits").images)
    np.testing.assert_allclose(levels, np.arange(17) * 255 / 16, atol=0.5)
