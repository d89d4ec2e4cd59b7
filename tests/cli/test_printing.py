"""What the commands print of results that are made up here."""

import pytest

from keras_dml.cli import printing
from keras_dml.export.exporting import ExportResult


def row(artifact, **values):
    return {"artifact": artifact, "images": 264, "megabytes": 1.5, **values}


def printed(capsys, folder, **values):
    rows = [row("embedder", **values), row("saved_model", **values)]
    printing.print_artifacts(ExportResult(rows, folder))
    return capsys.readouterr().out


def test_a_path_is_never_cut_over_two_lines(capsys, monkeypatch):
    monkeypatch.setattr(printing.output, "_force_terminal", True)
    monkeypatch.setattr(printing.output, "_width", 80)
    folder = f"/{'a folder/' * 20}phone"
    assert f"Exported to {folder}\n" in printed(capsys, folder)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("ann_recall@10", "share of the 10 nearest found"),
        ("ann_recall@1", "share of the nearest found"),
        ("index_recall@1", "R@1 by the index"),
        ("recall@1", "R@1"),
        ("mean_cosine", "cosine to the embedder, mean"),
    ],
)
def test_measures_are_put_into_words(capsys, key, words):
    text = printed(capsys, "phone", **{key: 0.5})
    assert f" {words} " in text
    assert "_recall" not in text
