"""`keras-dml export`: what it writes, and how it refuses."""

import json
import re

import pytest

from keras_dml.export import open_artifact, read_manifest
from tests import zygote
from tests.cli.refusals import refused
from tests.terminal import Terminal, visible


@pytest.mark.slow
def test_an_index_of_another_folder(command, run, images):
    outcome = command(
        "export",
        run,
        "--format",
        "saved_model",
        "--with-index",
        "--gallery",
        images,
        "--max-k",
        "7",
        "--max-drop",
        "0.01",
    )
    assert outcome.code == 0, outcome.err
    assert "By the index: among the images" in outcome.out
    folder = run / "export" / "saved_model"
    index = json.loads((folder / "manifest.json").read_text())["index"]
    # All 44 classes of the folder, not only the test classes.
    assert index["references"] == 44 * 12
    assert index["max_k"] == 7
    assert open_artifact(folder).search is not None


@pytest.mark.slow
def test_an_export_says_what_it_does_and_what_a_match_is(run):
    """In a process, for LiteRT writes where Python does not look."""
    options = ("--format=litert", "--quantize=none", "--quantize=int8")
    done = zygote.run("keras_dml", "export", run, *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "Starting TensorFlow ...",
        "Exporting litert, for phones and small devices ...",
        "Exporting litert-int8, for phones and small devices ...",
        "Comparing litert and litert-int8 with the trained network on 264 "
        "images ...",
    ]
    assert "Compared on 264 of 264 test images" in done.stdout
    assert "litert-int8" in done.stdout
    manifest = read_manifest(run / "export" / "litert-int8")
    stored = json.loads((run / "thresholds.json").read_text())["thresholds"]
    (entry,) = stored.values()
    score, threshold = entry["threshold"]["score"], manifest["threshold"]
    assert threshold["score"] == score
    assert threshold["distance"] == pytest.approx(1 - score)
    assert threshold["max_false_match_rate"] == 0.01
    assert "of 7 classes" in threshold["meaning"]


@pytest.mark.slow
def test_the_threshold_of_an_export_is_the_one_asked_for(
    command, run, images, tmp_path
):
    words = ("export", run, "--format=onnx", "--output", tmp_path / "out")
    asked = (*words, "--max-false-match-rate=0.4", "--decision=nearest")
    pytest.importorskip("tf2onnx", reason="ONNX is not installed.")
    assert command(*asked).code == 0
    threshold = read_manifest(tmp_path / "out" / "onnx")["threshold"]
    assert threshold["decision"] == "nearest"
    assert threshold["max_false_match_rate"] == 0.4
    photo = images / "class_30" / "03.png"
    found = command("search", run, photo, *asked[-2:], "--json")
    assert json.loads(found.out)["threshold"] == threshold["score"]
    refused(command(*words, "--max-false-match-rate=2"), "a number in (0, 1)")
    refused(command(*words, "--max-false-match-rate=1e-9"), "needs at least")


@pytest.mark.slow
def test_a_quantization_shows_a_bar_and_nothing_of_compiled_code(run):
    options = ("--format", "litert", "--quantize", "int8")
    screen = Terminal("export", "run", *options, cwd=run.parent)
    shown = screen.read()
    assert screen.code == 0, visible(shown)
    assert re.search(r"quantizing to int8 .*━.* 0/\d+", shown)
    lines = visible(shown).splitlines()
    assert lines[:3] == [
        "Starting TensorFlow ...",
        "Exporting litert-int8, for phones and small devices ...",
        "Comparing litert-int8 with the trained network on 264 images ...",
    ]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (
            ["--with-index", "--index", "scan"],
            ["Did you mean 'scann'"],
        ),
        (
            ["--with-index", "--max-k", "0"],
            ["`--max-k` must be a positive"],
        ),
        (["--gallery", "shoes"], ["Pass `--with-index`"]),
        (["--index", "scann"], ["`--index`", "Pass `--with-index`"]),
        (["--max-k", "500"], ["`--max-k`", "Pass `--with-index`"]),
        (
            ["--with-index", "--format", "litert"],
            ["`--with-index` is for a SavedModel"],
        ),
    ],
)
def test_refusals(arguments, parts, command, run, tmp_path):
    output = tmp_path / "out"
    refused(command("export", run, "--output", output, *arguments), *parts)
    assert not output.exists()


@pytest.mark.slow
def test_a_foreign_folder_needs_force(command, run, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "letter.txt").write_text("dear")
    arguments = ["export", run, "--output", output, "--format", "saved_model"]
    refused(command(*arguments), "`--output` is not empty", "--force")
    assert [one.name for one in output.iterdir()] == ["letter.txt"]
    assert command(*arguments, "--force").code == 0
    assert (output / "letter.txt").read_text() == "dear"
