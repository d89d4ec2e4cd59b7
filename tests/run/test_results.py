"""What `metrics.json` must hold; `tests/hostile/files` damages it further."""

import json
from pathlib import Path

import pytest

from keras_dml.errors import UsageError
from keras_dml.files import check_fields
from keras_dml.run.results import Results

PLACE = Path("run/metrics.json")


@pytest.fixture
def results():
    """Results of version 0.1, which are read as they are."""
    path = Path(__file__).parent / "version_0_1" / "metrics.json"
    return json.loads(path.read_text())


def test_results_of_version_0_1_are_whole(results):
    assert check_fields(results, Results, PLACE, "results") is results


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda it: it.clear(), "`dataset`: Field required"),
        (lambda it: it["after"].pop("map@r"), "the same metrics, map@r"),
        (lambda it: it["after"].update(mrr=7), "`after.mrr`: .* less than"),
        (
            lambda it: it.update(groups={"map@r": 0.1}),
            "hold recall@1 and map@r",
        ),
        (
            lambda it: it.update(several_labels=2),
            "`several_labels`: .* boolean",
        ),
        (lambda it: it.update(seed=-1), "`seed`: .* greater than"),
        (lambda it: it.update(seen="no"), "`seen`: .* boolean"),
        (lambda it: it.update(recipe="\ud800"), "surrogates not allowed"),
        (lambda it: it.update(gains={"pretrained": {}}), "`gains` needs"),
        (
            lambda it: it.update(worse_classes={"worse": 1}),
            "`worse_classes.classes`: Field required",
        ),
    ],
)
def test_other_content_is_refused_by_its_first_field(results, change, message):
    change(results)
    with pytest.raises(UsageError, match=message) as refusal:
        check_fields(results, Results, PLACE, "results")
    assert str(refusal.value).startswith("run/metrics.json must hold")
