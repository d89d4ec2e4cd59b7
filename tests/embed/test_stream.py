import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data.image_list import list_images
from keras_dml.embed.stream import by_part, image_batches
from tests.images import image_folder


@pytest.mark.parametrize("seed", range(20))
def test_parts_hold_each_row_once(seed):
    """Whatever the batches, the gaps between them and the parts."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    parts = [range(start, start + size) for start in range(0, 40, size)]
    parts = [part for part in parts if rng.random() < 0.7] or parts[:1]
    wanted = [row for part in parts for row in part]
    good = np.asarray([row for row in wanted if rng.random() < 0.7], int)
    cuts = np.sort(rng.integers(0, len(good) + 1, 5))
    batches = [
        (rows, rows[:, None] * [1.0, 10.0])
        for rows in np.split(good, cuts)
        if len(rows)
    ]
    found = list(by_part(batches, parts))
    assert len(found) == len(parts)
    for part, (rows, values) in zip(parts, found, strict=True):
        assert rows.tolist() == [row for row in good if row in part]
        assert len(values) == len(rows)
        if len(rows):
            np.testing.assert_array_equal(values[:, 1], rows * 10.0)


def test_a_part_is_given_as_soon_as_it_is_whole():
    """A shard must not wait for the next one's images."""
    seen = []

    def batches():
        for start in (0, 2, 4):
            seen.append(start)
            yield np.arange(start, start + 2), np.zeros((2, 1))

    parts = by_part(batches(), [range(0, 2), range(2, 6)])
    next(parts)
    assert seen == [0]


@pytest.mark.parametrize("arrays", [False, True])
def test_a_batch_holds_images_of_one_part(arrays, tmp_path):
    """The rounding of a vector depends on its batch, which resuming keeps."""
    folder = image_folder(tmp_path / "images", classes=3, images=5, size=8)
    (folder / "class_1" / "2.jpg").write_bytes(b"no image")
    images = list_images("digits" if arrays else str(folder))
    config = resolve("norm_softmax", "digits").changed(
        data={"image_size": 8, "channels": 1}
    )
    parts = [range(0, 6), range(6, 15)]

    def batches(parts):
        return [
            rows.tolist()
            for rows, _ in image_batches(images, parts, config, batch_size=4)
        ]

    # Of the files number 7 is bad.
    second = [[6, 7, 8, 9], [10, 11, 12, 13], [14]]
    if not arrays:
        second = [[6, 8, 9, 10], [11, 12, 13, 14]]
    assert batches(parts) == [[0, 1, 2, 3], [4, 5], *second]
    assert batches(parts[1:]) == second
