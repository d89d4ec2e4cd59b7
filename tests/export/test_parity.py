"""Retrieval is compared by the metric that a client searches with."""

import numpy as np
import pytest

from keras_dml.evaluation import retrieval_metrics
from keras_dml.export import parity
from tests.conformance import to_numpy

GENERATOR = np.random.default_rng(0)
IMAGES = GENERATOR.uniform(0, 255, (40, 16, 16, 3)).astype("float32")
LABELS = np.arange(40) % 5


@pytest.mark.parametrize("normalize", [True, False])
def test_retrieval_by_the_metric_of_the_index(normalize, make_embedder):
    embedder = make_embedder(normalize=normalize, layer_norm=False)
    (row,) = parity(embedder, {}, IMAGES, LABELS, seconds=0.01)
    rows = to_numpy(embedder(IMAGES))
    expected, other = (
        retrieval_metrics(rows, LABELS, k=1, normalize=one)
        for one in (normalize, not normalize)
    )
    assert row["map@r"] == pytest.approx(expected["map@r"], abs=1e-6)
    assert normalize or row["map@r"] != pytest.approx(other["map@r"], abs=1e-3)
