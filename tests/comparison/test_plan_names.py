"""The names of rows and metrics in a plan."""

import pytest

from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.plan_names import MEASURED
from keras_dml.config.plans import parse_plan
from keras_dml.errors import UsageError
from keras_dml.evaluation import retrieval_metrics


def plan(**values):
    return parse_plan({"title": "T", "sources": ["digits"], **values})


def test_findings_and_paper_values_name_arms():
    finding = {"claim": "C", "better": ["bn"], "than": ["lm"]}
    with pytest.raises(UsageError, match="names the arm 'lm'"):
        make_jobs(plan(recipes=["ln", "bn"], findings=[finding]))
    value = {
        "where": "Table 1",
        "source": "cub200",
        "values": {"hbn": {"recall@1": 0.5}},
    }
    with pytest.raises(UsageError, match="'Table 1' names the arm 'hbn'"):
        make_jobs(plan(recipes=["ln", "bn"], paper_values=[value]))


def test_findings_name_rows_and_printed_values_rows_or_arms():
    """With a grid no row has the name of an arm, so nothing measures it."""
    values = {"recipes": ["ln", "bn"], "grid": {"model.scale": [4.0, 16.0]}}
    finding = {"claim": "C", "better": ["ln"], "than": ["bn, scale 4.0"]}
    with pytest.raises(UsageError) as caught:
        make_jobs(plan(**values, findings=[finding]))
    (line,) = str(caught.value).splitlines()
    assert "finding 'C' names the arm 'ln'" in line
    assert "`ln, scale 4.0`" in line
    finding["better"] = ["ln, scale 16.0"]
    table = {"where": "W", "source": "digits"}
    printed = {"ln": {"map@r": 0.5}, "bn, scale 4.0": {"map@r": 0.4}}
    table["values"] = printed
    jobs = make_jobs(plan(**values, findings=[finding], paper_values=[table]))
    rows = {job.record.arm for job in jobs}
    assert {*finding["better"], *finding["than"]} <= rows


def test_metrics_are_those_that_runs_measure():
    finding = {"claim": "C", "better": ["ln"], "than": ["bn"]}
    table = {"where": "W", "source": "digits"}
    with pytest.raises(UsageError) as caught:
        make_jobs(
            plan(
                recipes=["ln", "bn"],
                metrics=["recal@1", "recall@0", "recall@16", "nmi_geometric"],
                findings=[finding | {"metric": "map@rr"}],
                paper_values=[
                    table
                    | {
                        "values": {"ln": {"r-precision": 0.5}},
                        "pretrained": {"ln": {"mmr": 0.5}},
                    }
                ],
            )
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    assert "`metrics` names 'recal@1'" in lines[0]
    assert "Nearest: 'recall@1'" in lines[0]
    assert "'recall@0'" in lines[1]
    assert "finding 'C' names 'map@rr'" in lines[2]
    assert "'map@r'" in lines[2]
    assert "'W' names 'r-precision'" in lines[3]
    assert "'r_precision'" in lines[3]
    assert "'mrr'" in lines[4]


def test_every_measured_metric_has_a_known_name():
    rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    found = retrieval_metrics(rows, [0, 0, 1, 1], k=1, clustering=True)
    assert {*found} == {"recall@1", *MEASURED}
