import numpy as np
import pytest
from PIL import Image

from keras_dml.data.readers import read
from keras_dml.errors import UsageError


def test_the_real_arrays(test_data):
    manifest = read("omniglot", test_data)
    train, test = manifest.part("train"), manifest.part("test")
    assert (len(train), train.num_classes) == (19280, 964)
    assert (len(test), test.num_classes) == (13180, 659)
    assert manifest.images.shape == (32460, 28, 28, 1)
    assert len(set(train.group.tolist())) == 30
    assert not set(train.group) & set(test.group)
    again = read("omniglot", test_data / "omniglot")
    assert again.checksum() == manifest.checksum()


def write_folders(root):
    """Two alphabets of two characters of two drawers, one pixel of ink each."""
    for part, alphabet in (
        ("images_background", "Latin"),
        ("images_evaluation", "Angelic"),
    ):
        for character in ("character01", "character02"):
            folder = root / part / alphabet / character
            folder.mkdir(parents=True)
            for drawer in range(2):
                page = Image.new("1", (105, 105), 1)
                page.paste(0, (0, 0, 15, 15))
                page.save(folder / f"0001_{drawer:02d}.png")


def test_the_published_folders(tmp_path):
    write_folders(tmp_path / "omniglot")
    with pytest.raises(UsageError, match="8 images listed instead of 32460"):
        read("omniglot", tmp_path)
    manifest = read("omniglot", tmp_path, allow_partial=True)
    assert manifest.labels.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert manifest.split.tolist() == ["train"] * 4 + ["test"] * 4
    assert manifest.group.tolist() == [0] * 4 + [1] * 4
    assert manifest.class_names[2] == "Angelic/character01"
    image = manifest.images[0, :, :, 0]
    # 15 of 105 pixels are 4 of 28: ink is bright, paper is black.
    assert (image[:4, :4] == 255).all()
    assert image.sum() == 16 * 255


def test_the_published_folders_give_the_arrays(tmp_path, test_data):
    with np.load(test_data / "omniglot" / "omniglot.npz") as arrays:
        packed = arrays["images105_packed"][:20]
        expected = arrays["images28"][:20]
    pages = np.unpackbits(packed, axis=1, count=11025).reshape(-1, 105, 105)
    folder = tmp_path / "images_background" / "A" / "character01"
    folder.mkdir(parents=True)
    for drawer, page in enumerate(pages):
        paper = Image.fromarray(((1 - page) * 255).astype(np.uint8))
        paper.convert("1").save(folder / f"0001_{drawer:02d}.png")
    manifest = read("omniglot", tmp_path, allow_partial=True)
    np.testing.assert_array_equal(manifest.images[..., 0], expected)


def test_errors(tmp_path):
    with pytest.raises(UsageError, match="no data folder. Give the folder"):
        read("omniglot")
    with pytest.raises(UsageError, match="`data_dir` must be a folder"):
        read("omniglot", tmp_path / "nowhere")
    with pytest.raises(UsageError, match="`omniglot` needs omniglot.npz or"):
        read("omniglot", tmp_path)
    np.savez(tmp_path / "omniglot.npz", label=np.zeros(3))
    with pytest.raises(UsageError, match="must hold the arrays"):
        read("omniglot", tmp_path)
