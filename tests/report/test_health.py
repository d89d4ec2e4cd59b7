"""What a page says about the health of embeddings."""

import re

import numpy as np
import pytest

from keras_dml.evaluation import embedding_health
from keras_dml.report.health import health_lines
from keras_dml.run.history import History

EPOCHS = History(
    ["main/train"] * 4,
    {"val_proxy_occupancy": np.array([np.nan, 0.25, 0.75, np.nan])},
)
ROWS = np.array([[3.0, 0.0], [3.0, 0.0], [0.0, 4.0], [1.2, 1.6]])


@pytest.fixture(scope="module")
def lines():
    return health_lines(embedding_health(ROWS, [0, 0, 1, 1]), 2, EPOCHS)


def test_every_line_says_what_its_number_means(lines):
    for line in lines:
        assert re.fullmatch(r"[A-Z].*: .*\d.* \(.{20,}\)\.", line), line


def test_every_number_of_a_training_has_a_line(lines):
    values = dict(line.split(": ", 1) for line in lines)
    assert [*values] == [
        "Effective dimension",
        "Participation ratio",
        "Mean cosine of two images of one class",
        "Mean norm",
        "Proxy occupancy",
        "Duplicates",
    ]
    assert values["Effective dimension"].startswith("1.2 of 2 ")
    assert values["Mean norm"].startswith("3 ")
    assert values["Proxy occupancy"].startswith("75.0 % ")
    assert values["Duplicates"].startswith("25.0 % ")


def test_a_run_without_proxies_or_duplicates_says_nothing_of_them():
    healthy = embedding_health(np.eye(3), [0, 0, 1])
    text = " ".join(health_lines(healthy, 3, History()))
    assert "Proxy" not in text and "Duplicates" not in text
