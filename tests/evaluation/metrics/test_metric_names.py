import re

import numpy as np
import pytest

from keras_dml import evaluation
from keras_dml.errors import UsageError
from keras_dml.evaluation import PositiveRanks, metric_function

RANKS = PositiveRanks([1, 3, 5, 4], [0, 3, 3, 4], num_references=6)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("recall@3", evaluation.recall_at_k(RANKS, 3)),
        ("recall@10", evaluation.recall_at_k(RANKS, 10)),
        ("precision@1", evaluation.precision_at_k(RANKS, 1)),
        ("precision@4", evaluation.precision_at_k(RANKS, 4)),
        ("map@2", evaluation.map_at_k(RANKS, 2)),
        ("map@r", evaluation.map_at_r(RANKS)),
        ("r_precision", evaluation.r_precision(RANKS)),
        ("mrr", evaluation.reciprocal_rank(RANKS)),
        ("map", evaluation.average_precision(RANKS)),
    ],
)
def test_names(name, expected):
    np.testing.assert_array_equal(metric_function(name)(RANKS), expected)


@pytest.mark.parametrize(
    "name",
    [
        "recall",
        "recall@",
        "recall@0",
        "recall@01",
        "recall@1.5",
        "mrr@1",
        5,
        [],
    ],
)
def test_refuses_other_names(name):
    with pytest.raises(UsageError, match=re.escape(f"Received: {name!r}")):
        metric_function(name)
