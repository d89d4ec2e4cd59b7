import subprocess
import sys
import time

import numpy as np
import pytest

from keras_dml.data import sampling
from keras_dml.data.sampling import balanced_batches
from keras_dml.data.weighted_sampling import inverse_frequency_batches
from keras_dml.errors import UsageError


def random_labels(generator, classes, largest):
    """Shuffled labels of classes of 1 to `largest` images, with gaps."""
    names = generator.choice(1000, classes, replace=False)
    labels = np.repeat(names, generator.integers(1, largest + 1, classes))
    return generator.permutation(labels)


@pytest.mark.parametrize("seed", range(25))
def test_balanced_batches_laws(seed):
    generator = np.random.default_rng(seed)
    labels = random_labels(generator, int(generator.integers(2, 40)), 9)
    num_classes = len(np.unique(labels))
    classes = int(generator.integers(1, num_classes + 1))
    images = int(generator.integers(1, 7))
    steps = int(generator.integers(1, 30))
    batches = balanced_batches(labels, classes, images, seed, 3, steps)
    assert batches.shape == (steps, classes * images)
    assert batches.dtype == np.int64
    groups = labels[batches].reshape(steps, classes, images)
    assert (groups == groups[:, :, :1]).all(), "not grouped by class"
    counts = dict(zip(*np.unique(labels, return_counts=True), strict=True))
    for batch, group in zip(batches, groups, strict=True):
        assert len(set(group[:, 0])) == classes, "a class twice in a batch"
        for rows, name in zip(
            batch.reshape(classes, images), group[:, 0], strict=True
        ):
            times = np.unique(rows, return_counts=True)[1]
            assert len(times) == min(images, counts[name])
            assert times.max() <= -(-images // counts[name])


@pytest.mark.parametrize("seed", range(10))
def test_classes_do_not_repeat_within_a_pass(seed):
    labels = np.repeat(np.arange(13), 4)
    batches = balanced_batches(labels, 4, 2, seed, 0, steps=9)
    drawn = labels[batches][:, ::2].reshape(3, -1)
    for one_pass in drawn:
        assert len(set(one_pass)) == 12
    assert not (drawn[0] == drawn[1]).all()


@pytest.mark.parametrize("seed", range(10))
def test_images_do_not_repeat_within_a_pass(seed):
    labels = np.repeat([0, 1], [7, 9])
    batches = balanced_batches(labels, 2, 3, seed, 0, steps=20)
    for label, turns in ((0, 2), (1, 3)):
        drawn = batches[labels[batches] == label]
        passes = drawn[: len(drawn) // (3 * turns) * 3 * turns]
        for one_pass in passes.reshape(-1, 3 * turns):
            assert len(set(one_pass)) == 3 * turns
        # Over twenty batches every image has had its turn.
        assert set(drawn) == set(np.flatnonzero(labels == label))


def test_batches_depend_on_seed_and_epoch_only():
    labels = np.repeat(np.arange(20), 6)
    first = balanced_batches(labels, 5, 3, 7, 2)
    np.testing.assert_array_equal(first, balanced_batches(labels, 5, 3, 7, 2))
    assert (first != balanced_batches(labels, 5, 3, 7, 3)).any()
    assert (first != balanced_batches(labels, 5, 3, 8, 2)).any()


def test_classes_and_images_are_drawn_uniformly():
    labels = np.repeat(np.arange(6), 5)
    rows = np.concatenate(
        [balanced_batches(labels, 4, 2, 0, epoch) for epoch in range(1000)]
    )
    times = np.bincount(rows.ravel(), minlength=30)
    expected = rows.size / 30
    assert np.abs(times - expected).max() < 5 * np.sqrt(expected)


@pytest.mark.parametrize(("count", "steps"), [(5864, 183), (32, 1), (64, 1)])
def test_default_steps(count, steps):
    labels = np.arange(count) % 8
    assert len(balanced_batches(labels, 8, 4, 0, 0)) == steps


def test_a_class_with_one_image_is_repeated():
    batches = balanced_batches([0, 1, 1, 1], 2, 3, 0, 0)
    assert (batches == 0).sum() == 3


def test_many_classes_are_fast():
    labels = np.random.default_rng(0).integers(0, 11318, 59551)
    start = time.perf_counter()
    batches = balanced_batches(labels, 64, 3, 0, 0)
    assert time.perf_counter() - start < 1
    assert batches.shape == (310, 192)


def test_check_names_what_cannot_be():
    labels = [0, 0, 0, 1, 2, 2]
    assert sampling.check([0, 0, 1, 1], 2, 2) == []
    single, short = sampling.check(labels, 2, 3)
    assert "1 of 3 classes have a single image (first: label 1)" in single
    assert "1 of 3 classes have fewer than 3 images" in short
    (one,) = sampling.check([0, 0, 1, 1], 2, 1)
    assert "no positive pair" in one


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: balanced_batches([0, 0, 1], 3, 2, 0, 0),
            "A batch needs 3 classes, but there are 2",
        ),
        (
            lambda: balanced_batches([0, 1], 0, 2, 0, 0),
            "`classes` must be a positive integer",
        ),
        (
            lambda: balanced_batches([0, 1], 1, 0, 0, 0),
            "`images` must be a positive integer",
        ),
        (
            lambda: balanced_batches([0, 1], 1, 1, 0, 0, steps=0),
            "`steps` must be a positive integer",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_imports_without_tensorflow():
    code = (
        "import sys; sys.argv = ['keras-dml']\n"
        "sys.modules['tensorflow'] = None; sys.modules['keras'] = None\n"
        "import keras_dml.data\n"
        "print(keras_dml.data.random_batches(3, 3, 0, 0)[0].shape)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert result.stdout.strip() == "(3,)", result.stderr


def pair_of_labels(generator, images=120, classes=10):
    """A boolean matrix of one or two labels an image."""
    matrix = np.zeros((images, classes), bool)
    for row in matrix:
        count = generator.integers(1, 3)
        row[generator.choice(classes, count, replace=False)] = True
    return matrix


@pytest.mark.parametrize("seed", range(10))
def test_balanced_batches_of_label_sets(seed):
    """Every group shares a class, and no image is in a batch twice."""
    matrix = pair_of_labels(np.random.default_rng(seed))
    batches = balanced_batches(matrix, 5, 3, seed, 2, steps=12)
    for batch in batches:
        groups = matrix[batch].reshape(5, 3, -1).all(axis=1)
        assert groups.any(axis=1).all(), "a group without a class in common"
        assert len(set(batch.tolist())) == 15
    again = balanced_batches(matrix, 5, 3, seed, 2, steps=12)
    np.testing.assert_array_equal(batches, again)


def test_a_class_all_of_whose_images_were_drawn_repeats_them():
    matrix = np.array([[1, 1], [1, 1]], bool)
    (batch,) = balanced_batches(matrix, 2, 2, 0, 0, steps=1)
    assert sorted(batch.tolist()) == [0, 0, 1, 1]


def test_a_matrix_of_single_labels_is_drawn_as_the_labels_are():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(9), 5))
    matrix = np.eye(9, dtype=bool)[labels]
    drawn = [balanced_batches(one, 4, 2, 1, 3) for one in (labels, matrix)]
    np.testing.assert_array_equal(*drawn)
    assert sampling.check(matrix, 4, 6) == sampling.check(labels, 4, 6)


@pytest.mark.parametrize("seed", range(5))
def test_classes_of_a_group_follow_each_other(seed):
    """In each pass: a batch is cut out of whole groups, in random order."""
    labels = np.repeat(np.arange(24), 4)
    group = labels % 6
    batches = balanced_batches(labels, 6, 2, seed, 1, steps=12, groups=group)
    orders = labels[batches][:, ::2].reshape(3, 24)
    for order in orders:
        assert len(set(order)) == 24
        changes = np.count_nonzero(np.diff(order % 6)) + 1
        assert changes == 6, "a group that does not stand together"
    assert not (orders[0] == orders[1]).all()
    again = balanced_batches(labels, 6, 2, seed, 1, steps=12, groups=group)
    np.testing.assert_array_equal(batches, again)


def test_a_class_in_two_groups_is_refused():
    with pytest.raises(UsageError, match=r"groups \[4, 5\] for label 7"):
        balanced_batches([3, 7, 7, 3], 2, 1, 0, 0, groups=[4, 4, 5, 4])


@pytest.mark.parametrize("groups", [[0, 1], [0, 0, 1, 1, 1]])
def test_groups_are_of_the_images(groups):
    with pytest.raises(UsageError, match="`groups` must"):
        balanced_batches([3, 3, 7, 7], 2, 1, 0, 0, groups=groups)


def test_rare_classes_are_drawn_as_often_as_others():
    labels = np.repeat([0, 1, 2], [400, 80, 20])
    batches = inverse_frequency_batches(labels, 4, 0, 0, steps=3000)
    shares = np.bincount(labels[batches].ravel()) / batches.size
    # A little less for few images, which a batch holds once.
    np.testing.assert_allclose(shares, 1 / 3, atol=0.03)
    assert all(len(set(batch)) == 4 for batch in batches.tolist())
    times = np.bincount(batches.ravel())[:400]
    assert times.std() < 2 * np.sqrt(times.mean())


def test_inverse_frequencies_of_label_sets():
    matrix = np.array([[1, 0]] * 6 + [[1, 1]] * 2, bool)
    batches = inverse_frequency_batches(matrix, 1, 0, 0, steps=4000)
    # 1 / 8 for the first six and (1 / 8 + 1 / 2) / 2 for the others.
    share = (batches >= 6).mean()
    assert share == pytest.approx(0.625 / (0.75 + 0.625), abs=0.03)


def test_a_batch_of_inverse_frequencies_is_drawn_image_after_image():
    """Each with its probability among those that the batch lacks."""
    labels = [0, 0, 0, 1]
    batches = inverse_frequency_batches(labels, 2, 0, 0, steps=20_000)
    pairs = np.bincount(batches @ [4, 1], minlength=16) / len(batches)
    # The images of three weigh 1 / 6, the single one 1 / 2.
    for first, second in np.ndindex(4, 4):
        weights = np.array([1 / 6, 1 / 6, 1 / 6, 1 / 2])
        share = weights[first] * weights[second] / (1 - weights[first])
        wanted = 0 if first == second else share
        assert pairs[4 * first + second] == pytest.approx(wanted, abs=0.015)


def test_images_without_a_label_are_never_drawn():
    matrix = np.array([[0, 0], [1, 0], [0, 0], [0, 1], [1, 1], [0, 0]], bool)
    batches = inverse_frequency_batches(matrix, 2, 0, 0, steps=50)
    assert set(batches.ravel()) == {1, 3, 4}
    assert inverse_frequency_batches(matrix, 5, 0, 0).shape == (1, 3)


@pytest.mark.parametrize("labels", [[], np.zeros((3, 2), bool)])
def test_inverse_frequencies_need_a_label(labels):
    with pytest.raises(UsageError, match="`labels` must be the labels of"):
        inverse_frequency_batches(labels, 4, 0, 0)


def test_inverse_frequencies_of_many_images_are_fast():
    """Each batch drew a number for every image: 36 seconds an epoch."""
    labels = np.random.default_rng(0).integers(0, 5000, 200_000)
    start = time.process_time()
    batches = inverse_frequency_batches(labels, 32, 0, 0)
    assert time.process_time() - start < 5
    assert batches.shape == (6250, 32)


def test_inverse_frequencies_depend_on_seed_and_epoch_only():
    labels = np.repeat([0, 1], [30, 5])
    first = inverse_frequency_batches(labels, 8, 3, 4)
    assert first.shape == (4, 8)
    np.testing.assert_array_equal(
        first, inverse_frequency_batches(labels, 8, 3, 4)
    )
    for seed, epoch in ((3, 5), (4, 4)):
        other = inverse_frequency_batches(labels, 8, seed, epoch)
        assert (first != other).any()
    assert inverse_frequency_batches(labels, 50, 0, 0).shape == (1, 35)


def test_hard_classes_are_those_most_like_a_drawn_one():
    labels = np.repeat(np.arange(12), 5)
    values = np.random.default_rng(0).normal(size=(12, 12))
    similarity = values + values.T
    batches = balanced_batches(
        labels, 4, 2, seed=1, epoch=3, steps=24, similarity=similarity
    )
    classes = labels[batches].reshape(24, 4, 2)
    assert (classes[..., 0] == classes[..., 1]).all()
    for first, *others in classes[..., 0].tolist():
        order = np.argsort(-similarity[first])
        assert others == [one for one in order if one != first][:3]
    # Each class is drawn as often as any other.
    assert (np.bincount(classes[:, 0, 0]) == 2).all()
    again = balanced_batches(
        labels, 4, 2, seed=1, epoch=3, steps=24, similarity=similarity
    )
    np.testing.assert_array_equal(again, batches)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"similarity": np.eye(2)}, "`similarity`"),
        (
            {"similarity": np.eye(3), "groups": [0, 0, 1, 1, 1, 1]},
            "`groups` must be None with `similarity`",
        ),
    ],
)
def test_similarities_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        balanced_batches([0, 0, 1, 1, 2, 2], 2, 1, 0, 0, **arguments)
