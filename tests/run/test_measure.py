"""What is measured on the test images, class by class."""

import dataclasses
import logging
import types

import numpy as np
import pytest

from keras_dml.data import Manifest
from keras_dml.run.folder import RunFolder
from keras_dml.run.measure import gains, worse_classes, write_per_query

BEFORE = np.array([1, 0, 1, 1, 0, 1, 0, np.nan])
AFTER = np.array([1, 1, 0, 1, 1, 0, 0, np.nan])
LABELS = np.array([0, 0, 1, 1, 2, 2, 3, 4])


def result(values):
    return types.SimpleNamespace(per_query={"recall@1": values})


def manifest(labels=LABELS, **fields):
    count = len(labels)
    return Manifest(
        name="made up",
        labels=labels,
        class_names=list("abcde"),
        ids=[str(row) for row in range(count)],
        images=np.zeros((count, 2, 2, 1), np.uint8),
        **fields,
    )


@pytest.fixture
def folder(tmp_path):
    made = RunFolder(tmp_path)
    made.checkpoints.mkdir()
    path = made.baseline("off_the_shelf")
    write_per_query(path, manifest(), result(BEFORE))
    return made


def test_classes_that_are_worse_are_counted_by_their_mean(folder):
    """Of a: .5 and 1; b: 1 and .5; c: .5 and .5; d: 0 and 0; e is lone."""
    found = worse_classes(result(AFTER), manifest(), folder)
    assert found == {"worse": 1, "classes": 4}
    same = worse_classes(result(BEFORE), manifest(), folder)
    assert same == {"worse": 0, "classes": 4}


def test_equal_results_have_no_gain(folder):
    """Thirds differed from those of the file by the digits it lacks."""
    thirds = result(np.full(len(LABELS), 1 / 3))
    write_per_query(folder.baseline("off_the_shelf"), manifest(), thirds)
    found = gains(thirds, manifest(), folder)["off_the_shelf"]["recall@1"]
    assert found == {"gain": 0.0, "low": 0.0, "high": 0.0}


def test_queries_are_compared_with_themselves(folder, caplog):
    """A deleted test image shifted all pairs after it."""
    whole = gains(result(AFTER), manifest(), folder)["off_the_shelf"]
    rows = np.array([7, 5, 4, 3, 2, 1, 0])
    some = manifest().select(rows)
    found = gains(result(AFTER[rows]), some, folder)["off_the_shelf"]
    # The query that is gone was right before and after.
    assert found["recall@1"]["gain"] == pytest.approx(
        np.nanmean(AFTER[rows]) - np.nanmean(BEFORE[rows])
    )
    assert found != whole
    assert "7 queries are compared" in caplog.text
    counted = worse_classes(result(AFTER[rows]), some, folder)
    assert counted == {"worse": 1, "classes": 3}


def test_the_gallery_does_not_count(folder):
    labels = np.append(LABELS, [0, 1])
    role = ["query"] * len(LABELS) + ["gallery"] * 2
    found = worse_classes(result(AFTER), manifest(labels, role=role), folder)
    assert found == {"worse": 1, "classes": 4}


def test_without_both_results_nothing_is_said(folder, caplog):
    empty = types.SimpleNamespace(per_query={})
    assert worse_classes(empty, manifest(), folder) is None
    others = dataclasses.replace(manifest(), ids=list("stuvwxyz"))
    with caplog.at_level(logging.WARNING):
        assert worse_classes(result(AFTER), others, folder) is None
        assert gains(result(AFTER), others, folder) == {}
    assert "Restore the images" in caplog.text
    folder.baseline("off_the_shelf").unlink()
    assert worse_classes(result(AFTER), manifest(), folder) is None
