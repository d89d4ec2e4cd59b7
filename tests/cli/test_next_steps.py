"""The commands that a command ends with."""

import shlex
from pathlib import Path

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
