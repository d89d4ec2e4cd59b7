import numpy as np
import pytest

from keras_dml.data.splits import (
    class_disjoint,
    first_half,
    hold_out_classes,
    some_classes,
    spread_images,
    within_classes,
)
from keras_dml.errors import UsageError


@pytest.mark.parametrize(
    ("classes", "train"), [(2, 1), (3, 2), (81, 41), (200, 100), (196, 98)]
)
def test_first_half_of_the_classes_trains(classes, train):
    labels = np.random.default_rng(0).permutation(np.repeat(range(classes), 3))
    split = class_disjoint(labels)
    assert set(labels[split == "train"]) == set(range(train))
    assert set(labels[split == "test"]) == set(range(train, classes))


@pytest.mark.parametrize(
    ("fraction", "train"), [(0.1, 1), (0.3, 3), (0.31, 4), (0.99, 9)]
)
def test_fraction(fraction, train):
    labels = np.arange(10)
    split = class_disjoint(labels, fraction=fraction)
    assert (split == "train").sum() == train
    assert (split == "test").sum() == 10 - train


def test_explicit_lists():
    labels = np.arange(5)
    names = ["a", "b", "c", "d", "e"]
    split = class_disjoint(labels, train_classes=["b", "e"], class_names=names)
    assert split.tolist() == ["test", "train", "test", "test", "train"]
    split = class_disjoint(labels, test_classes=[0])
    assert split.tolist() == ["test"] + ["train"] * 4
    split = class_disjoint(labels, train_classes=[0], test_classes=[3])
    assert split.tolist() == ["train", "", "", "test", ""]


def test_classes_are_found_by_any_form_of_their_name():
    """A list that a Mac wrote names a folder from elsewhere."""
    names = ["caf\u00e9", "cr\u0065\u0302me", "tea"]
    chosen = ["cafe\u0301", "cr\u00eame"]
    split = class_disjoint([0, 1, 2], train_classes=chosen, class_names=names)
    assert split.tolist() == ["train", "train", "test"]


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_lists_may_be_arrays(kind):
    names, chosen = kind(["a", "b", "c"]), kind(["b"])
    split = class_disjoint([0, 1, 2], train_classes=chosen, class_names=names)
    assert split.tolist() == ["test", "train", "test"]
    with pytest.raises(UsageError, match=r"such as \['a', 'b', 'c'\]"):
        class_disjoint([0, 1, 2], test_classes=kind(["z"]), class_names=names)


def test_labels_may_be_strings():
    labels = np.array(["x", "x", "y", "zz"])
    split = class_disjoint(labels, train_classes=["zz"])
    assert split.tolist() == ["test", "test", "test", "train"]
    split = class_disjoint(labels, train_classes=["x"], test_classes=["y"])
    assert split.tolist() == ["train", "train", "test", ""]
    with pytest.raises(UsageError, match=r"\['x', 'y', 'zz'\]. Rec.*'other'"):
        class_disjoint(labels, train_classes=["other"])
    with pytest.raises(UsageError, match="Received: 'y' in both"):
        class_disjoint(labels, train_classes=["y"], test_classes=["y"])


@pytest.mark.parametrize("argument", ["train_classes", "test_classes"])
def test_one_string_is_no_list_of_its_letters(argument):
    message = f"`{argument}` must be a list .* Received: {argument}='ab'"
    with pytest.raises(UsageError, match=message):
        class_disjoint([0, 1, 2], **{argument: "ab"}, class_names=list("abc"))


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 0], {}, "needs at least two classes. Received: 1"),
        (
            [0, 2],
            {"class_names": ["a", "b", "c"]},
            "Received: 1 empty classes, first 'b'",
        ),
        (
            [0, 1],
            {"train_classes": ["z"], "class_names": ["a", "b"]},
            r"`train_classes` must name classes .*\['a', 'b'\].*'z'",
        ),
        ([0, 1], {"test_classes": [7]}, "Received: 7"),
        (
            [0, 1, 2],
            {"train_classes": [0, 1], "test_classes": [1]},
            "not in both. Received: 1 in both",
        ),
        ([0, 1], {"train_classes": [0, 1]}, "none for test"),
        ([0, 1], {"fraction": 1.0}, r"`fraction` must be a number in \(0, 1\)"),
    ],
)
def test_errors(labels, options, message):
    with pytest.raises(UsageError, match=message):
        class_disjoint(labels, **options)


@pytest.mark.parametrize(
    ("classes", "held_out"),
    [(2, 0), (19, 0), (20, 2), (21, 3), (30, 3), (100, 10), (11318, 1132)],
)
def test_hold_out(classes, held_out):
    labels = np.repeat(np.arange(classes) * 2, 2)
    chosen = hold_out_classes(labels, seed=4)
    assert len(set(chosen)) == len(chosen) == held_out
    assert set(chosen) <= set(labels)
    np.testing.assert_array_equal(chosen, np.sort(chosen))
    np.testing.assert_array_equal(chosen, hold_out_classes(labels, seed=4))


@pytest.mark.parametrize("classes", range(1, 7))
def test_no_class_validates_alone(classes):
    """Whatever the vectors are, its nearest image is of the same class."""
    labels = np.repeat(np.arange(classes), 3)
    chosen = hold_out_classes(labels, least=3)
    assert len(chosen) == (2 if classes > 3 else 0)


def test_hold_out_depends_on_the_seed():
    labels = np.repeat(range(50), 2)
    draws = {tuple(hold_out_classes(labels, seed=s)) for s in range(20)}
    assert len(draws) > 15


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("single", "several", "held_out"),
    [
        (60, 4, 2),
        (60, 40, 4),
        (60, 3, 0),
        (60, 2, 0),
        (60, 1, 0),
        (60, 0, 0),
        (1, 2, 0),
    ],
)
def test_a_class_of_one_image_does_not_validate(
    single, several, held_out, seed
):
    """It has no reference: nothing could be measured."""
    labels = np.repeat(range(single + several), [1] * single + [3] * several)
    matrix = np.eye(single + several, dtype=bool)[labels]
    for found in (labels, matrix):
        chosen = hold_out_classes(found, seed=seed)
        assert len(chosen) == held_out
        assert (chosen >= single).all()


@pytest.mark.parametrize(
    ("classes", "half"), [(100, 50), (98, 49), (11318, 5659), (3997, 1998)]
)
def test_first_half_as_in_proxynca_pp(classes, half):
    assert first_half(np.arange(classes)).sum() == half


@pytest.mark.parametrize("seed", range(5))
def test_within_classes_is_stratified(seed):
    labels = np.repeat([0, 1, 2], [10, 7, 1])
    split = within_classes(labels, 0.5, seed)
    for label, train in ((0, 5), (1, 4), (2, 1)):
        assert (split[labels == label] == "train").sum() == train
    assert set(split) == {"train", "test"}
    np.testing.assert_array_equal(split, within_classes(labels, 0.5, seed))


@pytest.mark.parametrize("wanted", [4, 10, 30, 60, 100])
def test_some_classes_keep_each_split_its_share(wanted):
    labels = np.repeat(np.arange(60), 3)
    split = np.where(labels < 36, "train", "test")
    kept = some_classes(labels, split, wanted)
    for name, share in (("train", 0.6), ("test", 0.4)):
        classes = np.unique(labels[kept & (split == name)])
        everything = np.unique(labels[split == name])
        assert len(classes) == min(
            max(2, round(share * wanted)), len(everything)
        )
        # Spread evenly: the first and the last are always there.
        assert classes[0] == everything[0]
        assert classes[-1] == everything[-1]
        # Whole classes.
        assert kept[np.isin(labels, classes)].all()


def test_some_classes_leave_out_what_is_in_no_split():
    kept = some_classes([0, 1, 2, 3, 4], ["train"] * 2 + [""] + ["test"] * 2, 9)
    assert kept.tolist() == [True, True, False, True, True]


def label_sets(generator, classes=12, images=60, most=3):
    """A boolean matrix of one to `most` labels an image."""
    matrix = np.zeros((images, classes), bool)
    for row in matrix:
        count = generator.integers(1, most + 1)
        row[generator.choice(classes, count, replace=False)] = True
    return matrix


@pytest.mark.parametrize("seed", range(20))
def test_some_images_stand_for_all_evenly(seed):
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 60, generator.integers(1, 80))
    labels = generator.permutation(np.repeat(np.arange(len(counts)), counts))
    most = int(generator.integers(10, 1200))
    kept = np.bincount(labels[spread_images(labels, most)])
    present = kept[kept > 0]
    counts = counts[: len(kept)][kept > 0]
    full = min(len(labels), most)
    assert kept.sum() <= full
    # As many classes as can have five images each.
    assert len(present) >= min(len(np.unique(labels)), most // 5)
    # All of a class, or as many as the others: one more would be too many.
    largest = present.max()
    np.testing.assert_array_equal(present, np.minimum(counts, largest))
    if (counts > largest).any():
        assert np.minimum(counts, largest + 1).sum() > most


def test_some_images_of_several_labels_are_spread_over_all():
    labels = label_sets(np.random.default_rng(0))
    kept = np.flatnonzero(spread_images(labels, 11))
    assert len(kept) == 11
    assert kept[0] == 0 and kept[-1] == len(labels) - 1
    assert np.ptp(np.diff(kept)) <= 1


def test_no_more_classes_are_held_out_than_can_be_measured():
    labels = np.repeat(np.arange(1000), 3)
    assert len(hold_out_classes(labels, 0.2)) == 200
    assert len(hold_out_classes(labels, 0.2, max_images=600)) == 120
    assert len(hold_out_classes(labels, 0.2, max_images=10)) == 2
    few = hold_out_classes(labels[:300], 0.2, max_images=600)
    np.testing.assert_array_equal(few, hold_out_classes(labels[:300], 0.2))


@pytest.mark.parametrize("seed", range(5))
def test_no_image_with_a_held_out_class_trains(seed):
    labels = label_sets(np.random.default_rng(seed))
    split = class_disjoint(labels, 0.7)
    test = np.arange(9, 12)
    np.testing.assert_array_equal(split == "test", labels[:, test].any(axis=1))
    assert (split == "train").sum() + (split == "test").sum() == len(labels)
    fits = first_half(labels)
    np.testing.assert_array_equal(fits, ~labels[:, 6:].any(axis=1))


def test_an_image_with_a_class_in_neither_list_is_left_out():
    labels = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]], bool)
    split = class_disjoint(labels, train_classes=[0], test_classes=[1])
    assert split.tolist() == ["train", "test", "", ""]


@pytest.mark.parametrize("seed", range(5))
def test_a_matrix_of_single_labels_splits_as_the_labels_do(seed):
    labels = np.random.default_rng(seed).integers(0, 25, 80)
    matrix = np.eye(25, dtype=bool)[labels]
    for split in (class_disjoint, first_half, hold_out_classes, within_classes):
        np.testing.assert_array_equal(split(labels), split(matrix))
    np.testing.assert_array_equal(
        some_classes(labels, class_disjoint(labels), 6),
        some_classes(matrix, class_disjoint(matrix), 6),
    )


def test_a_share_of_every_label_is_split_off():
    labels = label_sets(np.random.default_rng(0), classes=8, images=400)
    split = within_classes(labels, 0.75)
    assert set(split) == {"train", "test"}
    shares = labels[split == "train"].sum(axis=0) / labels.sum(axis=0)
    np.testing.assert_allclose(shares, 0.75, atol=0.08)
