"""The commands that a command ends with."""

import shlex
from pathlib import Path

from keras_dml.cli import next_steps
from keras_dml.cli.next_steps import steps_after_export
from keras_dml.export import ExportResult

ROWS = [
    {"artifact": name, "recall@1": 0.5}
    for name in ("embedder", "saved_model", "litert")
]


def commands_after(rows, folder, given):
    """The words of each command that is named after an export."""
    steps = steps_after_export(ExportResult(rows, folder), given)
    return [shlex.split(line.replace("\\\n", "")) for _, line in steps]


def test_an_export_names_what_else_it_may_be(tmp_path):
    out = tmp_path / "phone"
    again = ["keras-dml", "export", "run", "--output"]
    litert = [f"{out}-int8", "--format", "litert", "--quantize", "int8"]
    served = [f"{out}-index", "--format", "saved_model", "--with-index"]
    assert commands_after(ROWS, out, {"run": "run"}) == [
        [*again, *litert],
        [*again, *served],
    ]
    indexed = [one | {"index_recall@1": 1.0} for one in ROWS]
    found = commands_after(indexed, out, {"run": "run"})
    assert found == [[*again, *litert]]


def test_a_further_export_has_the_options_of_the_first():
    given = {
        "run": "runs/shoes",
        "formats": ["saved_model", "litert"],
        "output": "out",
        "data_dir": "my photos",
        "dim": 32,
        "max_false_match_rate": 0.01,
        "decision": "nearest",
        "max_drop": 0.0,
        "references": True,
        "max_pixels": 100,
        "with_index": False,
        "dynamic_batch": False,
    }
    again = ["keras-dml", "export", "runs/shoes", "--data-dir", "my photos"]
    again += ["--dim", "32", "--max-false-match-rate", "0.01"]
    again += ["--decision", "nearest", "--max-drop", "0.0"]
    litert = [*again, "--with-references", "--output", "out-int8"]
    served = [*again, "--max-pixels", "100", "--output", "out-index"]
    assert commands_after(ROWS, Path("out"), given) == [
        [*litert, "--format", "litert", "--quantize", "int8"],
        [*served, "--format", "saved_model", "--with-index"],
    ]


def test_the_folder_of_a_gallery_is_not_that_of_the_run():
    """It was taken for the run's own photos, which had moved."""
    given = {
        "run": "runs/shoes",
        "data_dir": "data",
        "with_index": True,
        "gallery": "cub200",
    }
    words = commands_after(ROWS, Path("out"), given)[0]
    assert "--data-dir" not in words


def test_what_is_there_is_not_named_again(tmp_path):
    rows = [*ROWS, {"artifact": "litert-int8", "recall@1": 0.4, "map@r": 0.4}]
    rows = [{"map@r": 0.5, **one} for one in rows]
    (half, *_) = commands_after(rows, tmp_path, {"run": "run"})
    assert half[-1] == "float16"
    rows.append({"artifact": "litert-float16", "recall@1": 0.5, "map@r": 0.5})
    for words in commands_after(rows, tmp_path, {"run": "run"}):
        assert words[-1] != "float16"


def test_a_folder_named_like_a_data_set_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert next_steps._from_here(str(tmp_path / "digits")) == "./digits"
    assert next_steps._from_here(str(tmp_path / "-x")) == "./-x"
    assert next_steps._from_here(str(tmp_path / "shoes")) == "shoes"
    assert next_steps._from_here("/elsewhere") == "/elsewhere"
