import csv

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.report import charts
from keras_dml.report.charts import (
    drawn_epochs,
    similarity_shares,
    training_curves,
)
from keras_dml.run.history import read_history


@pytest.mark.parametrize(
    "logarithmic, epochs", [(True, [0, 2]), (False, [0, 1, 2])]
)
def test_what_has_no_place_on_the_axis_is_not_drawn(logarithmic, epochs):
    values = np.array([0.1, 0.0, 0.2, np.nan])
    assert drawn_epochs(values, logarithmic).tolist() == epochs


def test_no_epochs_are_no_chart(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("stage,phase,epoch,loss\n")
    assert training_curves(read_history(path), "val_map@r", True) == (0, [])


def test_one_chart_for_each_kind_of_column(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(
        "stage,phase,epoch,loss,val_map@r,learning_rate_head\n"
        "search,warm,0,3.0,,0.1\n"
        "search,train,0,2.5,0.9,0.1\n"
        "main,train,0,1.5,0.4,0.1\n"
        "main,train,1,0.9,0.5,0.01\n"
    )
    history = read_history(path)
    epochs, curves = training_curves(history, "val_map@r", selected=True)
    assert epochs == 4
    names = [curve["name"] for curve in curves]
    assert names == ["Loss", "Validation", "Learning rates"]
    assert curves[0]["alt"] == "loss goes from 3 to 0.9."
    assert curves[1]["alt"] == "val_map@r goes from 0.9 to 0.5."


def test_of_many_groups_some_are_drawn(tmp_path):
    """A rate for each block of a network: the legend hid the lines."""
    path = tmp_path / "history.csv"
    names = [f"learning_rate_block_{number}" for number in range(19)]
    path.write_text(
        f"stage,phase,epoch,{','.join(names)}\nmain,train,0{',0.1' * 19}\n"
    )
    (curve,) = training_curves(read_history(path), "val_map@r", True)[1]
    assert curve["meaning"].endswith(" Drawn are 8 of 19.")
    assert curve["alt"].count("goes from") == 8
    assert "block_0 " in curve["alt"] and "block_18 " in curve["alt"]


@pytest.mark.parametrize("long", ["x" * 300, "a\nb" * 60])
def test_long_names_leave_room_for_the_axes(tmp_path, long):
    path = tmp_path / "history.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [
                ["stage", "phase", "epoch", "loss", f"loss_{long}"],
                ["main", long, 0, 1.5, 0.4],
                ["main", "b", 0, 1.2, 0.5],
            ]
        )
    history = read_history(path)
    (curve,) = training_curves(history, "val_map@r", selected=True)[1]
    assert curve["name"] == "Loss"


RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(5), 7)
ROWS = RNG.normal(size=(35, 4)) + 3 * RNG.normal(size=(5, 4))[LABELS]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("rows_at_a_time", [4, 256])
def test_shares_are_those_of_all_pairs(monkeypatch, normalize, rows_at_a_time):
    monkeypatch.setattr(charts, "ROWS_AT_A_TIME", rows_at_a_time)
    edges, positive, negative = similarity_shares(
        EmbeddingSet(ROWS, LABELS), normalize
    )
    values = {True: [], False: []}
    for i in range(35):
        for j in range(35):
            if i != j:
                one, other = ROWS[i], ROWS[j]
                value = -np.linalg.norm(one - other)
                if normalize:
                    value = one @ other / np.linalg.norm(one)
                    value /= np.linalg.norm(other)
                values[bool(LABELS[i] == LABELS[j])].append(value)
    for shares, expected in ((positive, True), (negative, False)):
        counts = np.histogram(values[expected], edges)[0]
        np.testing.assert_allclose(
            shares, counts / len(values[expected]), atol=2e-3
        )
        assert shares.sum() == pytest.approx(1)


def test_one_class_has_no_pair_of_two():
    _, positive, negative = similarity_shares(
        EmbeddingSet(ROWS, np.zeros(35, int)), True
    )
    assert positive.sum() == pytest.approx(1)
    assert negative.sum() == 0


def test_equal_rows_far_from_the_origin():
    rows = EmbeddingSet(np.full((4, 2), 1e3), [0, 0, 1, 1])
    edges, positive, negative = similarity_shares(rows, normalize=False)
    assert edges[0] < 0
    assert positive[-1] == negative[-1] == 1
