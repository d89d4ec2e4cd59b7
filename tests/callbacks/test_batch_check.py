import warnings

import numpy as np
import pytest

from keras_dml.callbacks import BatchCheck
from keras_dml.errors import UsageError
from tests.callbacks.small_trainer import batches, build, fit


def labels_of(*epochs):
    return lambda epoch: epochs[epoch]


def test_good_batches_pass():
    check = BatchCheck(
        lambda epoch: [labels for _, labels in batches()], num_classes=4
    )
    history = fit(build()[0], 2, [check])
    assert len(history["loss"]) == 2


def test_a_batch_without_positives_warns_once_and_says_how_to_sample():
    check = BatchCheck(labels_of([[0, 0], [0, 1]], [[2, 3]]))
    with pytest.warns(UserWarning, match="Batch 1 of epoch 0 holds 2 rows"):
        check.on_epoch_begin(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check.on_epoch_begin(1)


def test_the_warning_goes_where_it_is_wanted():
    messages = []
    check = BatchCheck(labels_of([[0, 1]]), warn=messages.append)
    check.on_epoch_begin(0)
    assert len(messages) == 1
    assert "no positive pair" in messages[0]
    assert "kind: balanced" in messages[0]


def test_a_matrix_of_pairs_may_stand_for_the_labels():
    pair = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    none = np.eye(3, dtype=int)
    check = BatchCheck(labels_of([pair], [none]), num_classes=2)
    check.on_epoch_begin(0)
    with pytest.warns(UserWarning, match="Batch 0 of epoch 1 holds 3 rows"):
        check.on_epoch_begin(1)


def test_a_pair_that_does_not_count_is_no_positive():
    pair = np.array([[1, -1], [-1, 1]])
    check = BatchCheck(labels_of([pair]), num_classes=2)
    with pytest.warns(UserWarning, match="no positive pair"):
        check.on_epoch_begin(0)


def test_proxy_losses_need_no_positives():
    BatchCheck(labels_of([[0, 1]]), positives=False).on_epoch_begin(0)


@pytest.mark.parametrize("labels", [[0, 0, 4], [0, 0, -1]])
def test_labels_out_of_range_are_an_error(labels):
    check = BatchCheck(labels_of([[0, 0], labels]), num_classes=4)
    with pytest.raises(UsageError, match="between 0 and 3.*batch 1 of epoch 0"):
        check.on_epoch_begin(0)


def test_the_range_is_checked_after_the_warning_too():
    check = BatchCheck(labels_of([[0, 1]], [[9]]), num_classes=4)
    with pytest.warns(UserWarning, match="no positive pair"):
        check.on_epoch_begin(0)
    with pytest.raises(UsageError, match="from 9 to 9 in batch 0 of epoch 1"):
        check.on_epoch_begin(1)
