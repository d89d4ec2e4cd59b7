"""Results print in a few lines, and as a small table in notebooks."""

import functools

import numpy as np
import pytest

from keras_dml.brief import MAX_ROWS, cell
from keras_dml.config import load_recipe, resolve
from keras_dml.config.resolve import explain
from keras_dml.data.image_list import ImageList
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import (
    ExactIndex,
    calibrate_threshold,
    evaluate,
    evaluate_index,
    evaluate_retrieval,
    identification_rates,
    paired_bootstrap,
)
from keras_dml.export.exporting import ExportResult
from keras_dml.export.options import ExportOptions
from keras_dml.run.data import RunData
from keras_dml.run.forecast import forecast
from keras_dml.run.history import History
from keras_dml.tuning.trials import Trial, TuningResult

LABELS = np.repeat(np.arange(40), 10)
ROWS = np.eye(40)[LABELS] + np.random.default_rng(0).normal(0, 0.3, (400, 40))
GALLERY = np.where(np.arange(400) % 2, "gallery", "query")
# They are made when a test runs, not when tests are collected.
NUMBER_OF_MANY, NUMBER_OF_RESULTS = 9, 13


@functools.cache
def everything():
    measured = evaluate(
        ROWS, LABELS, intervals=True, per_class=True, rerank="query_expansion"
    )
    index = ExactIndex().build(ROWS)
    found = evaluate_index(index, ROWS, LABELS, LABELS, query_ids=range(400))
    return [
        measured,
        measured.exact,
        measured.exact.per_class,
        measured.exact.intervals["map@r"],
        evaluate_retrieval(ROWS, LABELS),
        found,
        index,
        ExactIndex(),
        EmbeddingSet(ROWS, LABELS, role=GALLERY),
        EmbeddingSet(ROWS),
        calibrate_threshold(ROWS, LABELS, fmr=0.01),
        identification_rates(ROWS, LABELS, ROWS, LABELS, 0.5),
        paired_bootstrap([1.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
    ]


@functools.cache
def many():
    """What holds thousands of values, and is printed by mistake."""
    manifest = Manifest(
        name="fruit",
        labels=LABELS,
        class_names=[f"class {label}" for label in range(40)],
        ids=[f"{row}.jpg" for row in range(400)],
        paths=[f"fruit/{row}.jpg" for row in range(400)],
    )
    explained = explain("proxy_anchor", "digits")
    history = History(
        ["main/train"] * 900, {f"value_{n}": ROWS[:, 0] for n in range(30)}
    )
    trials = [Trial(n, {"model.dim": n}, "complete", 0.5) for n in range(50)]
    return [
        manifest,
        ImageList([f"{row}.jpg" for row in range(5000)], root="photos"),
        TuningResult("map@r", trials),
        explained,
        load_recipe("proxy_anchor"),
        forecast(explained),
        ExportOptions(calibration=list(np.zeros((9, 8, 8, 3), "uint8"))),
        history,
        ExportResult([{"artifact": "litert", "map@r": 0.5}], "phone"),
    ]


@pytest.mark.parametrize("number", range(NUMBER_OF_MANY))
def test_what_holds_much_prints_little(number):
    thing = many()[number]
    assert len(many()) == NUMBER_OF_MANY
    text = repr(thing)
    assert text.startswith(type(thing).__name__)
    assert len(text.splitlines()) <= MAX_ROWS + 3
    assert max(map(len, text.splitlines())) < 600
    assert len(thing._repr_html_()) < 5000


def test_a_configuration_and_data_print_on_a_line():
    config = resolve("proxy_anchor", "digits")
    assert str(config) == repr(config)
    assert "proxy_anchor" in repr(config) and len(repr(config)) < 160
    manifest = many()[0]
    data = RunData(manifest, manifest, seen=False, partial=False, skipped=0)
    assert len(repr(data)) < 200


@pytest.mark.parametrize("number", range(NUMBER_OF_RESULTS))
def test_every_result_prints_briefly(number):
    result = everything()[number]
    assert len(everything()) == NUMBER_OF_RESULTS
    text = repr(result)
    assert text.startswith(type(result).__name__)
    assert len(text.splitlines()) <= MAX_ROWS + 3
    assert max(map(len, text.splitlines())) < 160
    page = result._repr_html_()
    assert page.startswith("<table>") and page.endswith("</table>")
    assert len(page) < 5000


def test_metrics_have_four_digits():
    result = evaluate_retrieval(ROWS, LABELS)
    title, _, *lines = repr(result).splitlines()
    assert title == "RetrievalResult: 400 queries in 400 references"
    for line in lines:
        name, value = line.split()
        assert value == f"{result.metrics[name]:.4f}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (np.float32(0.25), "0.2500"),
        (2e-7, "2e-07"),
        (3_000_000.0, "3e+06"),
        (7, "7"),
        ("cosine", "cosine"),
        (np.zeros((2, 3)), "float64 array (2, 3)"),
        ([1, 2], "2 entries"),
        (None, "None"),
        (float("nan"), "nan"),
    ],
)
def test_cells_are_short(value, text):
    assert cell(value) == text


def test_markup_in_names_is_escaped():
    table = evaluate(ROWS, [f"<b>{label}" for label in LABELS], per_class=True)
    assert "<b>" not in table.exact.per_class._repr_html_()
