import numpy as np
import pytest

from keras_dml.comparison.records import Experiment
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.wording import (
    counted,
    duration,
    filled,
    listed,
    metric_meaning,
    metric_title,
    roughly,
    slug,
    source_title,
    spanned,
)


@pytest.mark.parametrize(
    "metric, title",
    [
        ("recall@1", "R@1"),
        ("recall@1000", "R@1000"),
        ("precision@5", "P@5"),
        ("map@10", "MAP@10"),
        ("map@r", "MAP@R"),
        ("r_precision", "R-precision"),
        ("something@new", "something@new"),
    ],
)
def test_metrics_are_named_as_papers_do(metric, title):
    assert metric_title(metric) == title


def test_every_metric_of_an_evaluation_is_explained():
    rows = np.random.default_rng(0).normal(size=(20, 4))
    extra = ("map@3", "precision@3", "map")
    labels = np.arange(20) % 4
    result = evaluate_retrieval(
        rows, labels, clustering=True, extra_metrics=extra
    )
    meanings = {name: metric_meaning(name) for name in result.metrics}
    assert {"mrr", "ami_geometric", *extra} <= {*meanings}
    assert all(meanings.values()), meanings
    assert len({*meanings.values()}) == len(meanings)
    assert metric_meaning("something@new") == metric_meaning("loss") == ""


@pytest.mark.parametrize(
    "source, title",
    [
        ("omniglot", "omniglot"),
        ("tfds:mnist", "tfds:mnist"),
        ("/data/shoes", "shoes"),
        ("/data/shoes/images", "shoes/images"),
        ("shoes/train.csv", "shoes/train.csv"),
        ("images", "images"),
    ],
)
def test_data_are_named_after_a_folder_that_says_something(source, title):
    assert source_title(source) == title


def test_counts_and_lists():
    assert counted(1, "run") == "1 run"
    assert counted(0, "run") == "0 runs"
    assert listed([]) == ""
    assert listed("ab") == "a and b"
    assert listed("abc") == "a, b and c"
    assert spanned([3, 3]) == "3"
    assert spanned([3, 1, 2]) == "1 to 3"


def test_paths_are_not_shown():
    experiment = Experiment("/data/of/mine/shoes", "resnet50", "imagenet", 64)
    assert experiment.title == (
        "shoes, resnet50, weights `imagenet`, embeddings of 64 numbers"
    )


def test_slugs_are_file_names():
    assert slug("R@1 by", "model.scale/é") == "r-1-by-model-scale"
    assert slug("é") == "unnamed"


@pytest.mark.parametrize(
    "seconds, words",
    [
        (3.4, "3 s"),
        (60, "1 min"),
        (100, "1 min 40 s"),
        (3599.6, "1 h"),
        (5400, "1 h 30 min"),
        (86400, "1 day"),
        (100_000, "1 day 3 h"),
        (0, "0 s"),
    ],
)
def test_durations_have_two_units_at_most(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0.2, "1 s"),
        (99.6, "100 s"),
        (113, "110 s"),
        (119, "2 min"),
        (308, "5 min"),
        (1538, "26 min"),
        (8000, "2 h"),
        (36 * 3600, "36 h"),
        (2_492_127 * 3600, "100,000 days"),
    ],
)
def test_estimates_have_two_digits_at_most(seconds, words):
    assert roughly(seconds) == words


def test_commands_are_not_wrapped():
    """A command that is cut in two cannot be copied."""
    words = "Forty columns hold this; `keras-dml search RUN PHOTO.jpg` not."
    assert filled(words, 40, "- ", "  ").splitlines() == [
        "- Forty columns hold this;",
        "  `keras-dml search RUN PHOTO.jpg` not.",
    ]
