import numpy as np
import pytest

from keras_dml.data.triplets import (
    check_triplets,
    read_triplets,
    triplet_batches,
)
from keras_dml.errors import UsageError

IDS = ["b/1.jpg", "a/1.jpg", "a/2.jpg", "b/2.jpg"]
TRIPLETS = np.arange(30).reshape(10, 3)


def written(folder, *lines):
    path = folder / "triplets.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_in_any_order_name_rows(tmp_path):
    path = written(
        tmp_path,
        "negative, anchor, positive, note",
        "b/1.jpg, a/1.jpg, a/2.jpg, first",
        "a/2.jpg, b/2.jpg, b/1.jpg, second",
        "a/2.jpg, b/2.jpg, elsewhere.jpg, left out",
    )
    np.testing.assert_array_equal(
        read_triplets(path, np.array(IDS)), [[1, 2, 0], [3, 0, 2]]
    )


@pytest.mark.parametrize(
    "lines, message",
    [
        (
            ["anchor,positive,negative", "x,a/1.jpg,b/1.jpg"],
            r"ids such as 'b/1.jpg'.*1 triplets.*\['x', 'a/1.jpg', 'b/1.jpg'\]",
        ),
        (
            ["anchor,positive", "a,b"],
            "columns anchor and positive and negative",
        ),
        (["anchor,positive,negative"], "no line after the first"),
        (["anchor,positive,negative", "a,,b"], "Line 2 of.*positive=''"),
        (
            ["anchor,positive,negative", "a/1.jpg,a/1.jpg,b/1.jpg"],
            "Line 2 of.* must name three images",
        ),
    ],
)
def test_files_that_say_no_triplets(lines, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        read_triplets(written(tmp_path, *lines), IDS)


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match="must be a CSV file"):
        read_triplets(tmp_path / "none.csv", IDS)


def test_passes_go_through_all_triplets_whole():
    batches = np.concatenate(
        [triplet_batches(TRIPLETS, 7, seed=2, epoch=one) for one in range(2)]
    )
    assert batches.shape == (10, 6)
    drawn = batches.reshape(-1, 3)
    np.testing.assert_array_equal(
        drawn, TRIPLETS[drawn[:, 0] // 3], "each keeps its order"
    )
    assert (np.bincount(drawn[:, 0] // 3) == 2).all()


def test_batches_depend_on_seed_and_epoch_only():
    first = triplet_batches(TRIPLETS, 9, 3, 4)
    np.testing.assert_array_equal(first, triplet_batches(TRIPLETS, 9, 3, 4))
    for seed, epoch in ((3, 5), (4, 4)):
        other = triplet_batches(TRIPLETS, 9, seed, epoch)
        assert (first != other).any()
    assert triplet_batches(TRIPLETS, 9, 3, 4, steps=7).shape == (7, 9)
    assert triplet_batches(TRIPLETS[:2], 90, 3, 4).shape == (1, 6)


def test_a_batch_without_a_triplet_is_refused():
    with pytest.raises(UsageError, match="at least 3.*batch_size=2"):
        triplet_batches(TRIPLETS, 2, 0, 0)


def test_an_image_that_does_not_exist_is_named(tmp_path):
    """A typing error left out the triplet, and nothing was said."""
    path = written(
        tmp_path,
        "anchor,positive,negative",
        "a/1.jpg , a/2.jpg, b/1.jpg",
        "b/1.jpg,b/2.jpg,a/3.jpg",
    )
    with pytest.raises(UsageError, match=r"Line 3 .* such as 'b/1.jpg'.*a/3.j"):
        check_triplets(path, np.array(IDS))
    check_triplets(path, np.array([*IDS, "a/3.jpg"]))


def test_triplets_of_images_that_do_not_train_are_counted(tmp_path, caplog):
    lines = ["anchor,positive,negative", "a/1.jpg,a/2.jpg,b/1.jpg"]
    path = written(tmp_path, *lines, "b/1.jpg,b/2.jpg,a/1.jpg")
    assert len(read_triplets(path, np.array(IDS))) == 2
    assert not caplog.text
    for _ in range(2):
        assert len(read_triplets(path, np.array(IDS[:3]))) == 1
    assert caplog.text.count("1 of 2 triplets of") == 1
