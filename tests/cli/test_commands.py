"""The command line: what it prints, and how it refuses mistakes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from keras_dml import api
from keras_dml.cli.app import app
from keras_dml.errors import RunError
from keras_dml.version import __version__
from tests.cli.refusals import refused
from tests.images import image_folder

QUICK = [
    "--set=stages.0.phases.0.epochs=1",
    "--set=sampling.steps_per_epoch=8",
    "--set=model.dim=16",
]
TOO_MANY_CLASSES = [
    *("fit", "digits", "--recipe", "proxynca_pp"),
    *("--set", "sampling.classes=11"),
]


@pytest.mark.parametrize(
    "arguments", [["--help"], ["fit", "--help"], ["export", "--help"]]
)
def test_help_answers_without_loading_keras(arguments):
    script = (
        f"import sys; sys.argv = ['keras-dml', *{arguments}]\n"
        "from keras_dml.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'keras', 'tensorflow', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_fit_then_evaluate_and_export(command, tmp_path):
    images = image_folder(tmp_path / "images")
    run = tmp_path / "run"
    fit = command(
        "fit", images, "--backbone", "small_cnn", "--output", run, *QUICK
    )
    assert fit.code == 0, fit.err
    assert "Optimizers of" not in fit.err
    commands = re.sub(r" \\\n +", " ", fit.out)
    assert "MAP@R" in fit.out and f"keras-dml search {run}" in commands
    assert "Worst queries" in (run / "report.html").read_text()
    metrics = json.loads((run / "metrics.json").read_text())

    again = command("evaluate", run, "--k", "1,3", "--json")
    assert again.code == 0, again.err
    printed = json.loads(again.out)
    assert printed["map@r"] == pytest.approx(metrics["after"]["map@r"])
    assert "recall@3" in printed

    shown = command("evaluate", run, "--clustering")
    assert "nmi_geometric" in shown.out

    exported = command("export", run, "--format", "litert")
    assert exported.code == 0, exported.err
    assert list((run / "export" / "litert").glob("*.tflite"))


@pytest.mark.slow
def test_verbose_shows_the_optimizers_and_json_is_alone(command, tmp_path):
    arguments = ("fit", "digits", "--no-report", "--no-export", *QUICK)
    run = tmp_path / "run"
    outcome = command(*arguments, "--output", run, "--verbose", "--json")
    assert outcome.code == 0, outcome.err
    metrics = json.loads((run / "metrics.json").read_text())
    assert json.loads(outcome.out) == {"run": str(run), **metrics}
    _, _, shown = outcome.err.partition("Optimizers of main/train:\n")
    block = re.match(r"(?:  .*\n)+", shown)[0]
    assert max(map(len, block.splitlines())) <= 80
    groups = re.findall(r"^  (\w+): [\d,]+ parameters", block, re.MULTILINE)
    assert groups == ["head", "proxies", "backbone"]
    assert block in (run / "log.txt").read_text()
    assert block.count("learning rate") == block.count("weight decay") == 3


@pytest.mark.slow
def test_a_finished_run_is_left_alone_by_resume(command, run):
    arguments = ("fit", "--config", run, "--output", run)
    written = (run / "metrics.json").stat().st_mtime_ns
    refused(command(*arguments), "already holds a finished run", "--resume")
    printed = command(*arguments, "--resume", "--json")
    assert json.loads(printed.out)["run"] == str(run)
    assert "nothing is trained" in printed.err
    assert (run / "metrics.json").stat().st_mtime_ns == written
    other = command(*arguments, "--resume", "--set", "model.dim=8")
    refused(other, "`model.dim` was 16, received 8")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["fit"], ["needs the `source`", "`--config`"]),
        (["fit", "--config", "absent"], ["`--config` must be", "'absent'"]),
        (["fit", "digit"], ["digit", "digits"]),
        (["fit", "./absent"], ["absent", "Received"]),
        (["fit", "digits", "--recipe", "proxynca_p"], ["'proxynca_pp'"]),
        (["fit", "digits", "--recipe", "mine.yaml"], ["no recipe file"]),
        (["fit", "digits", "--backbone", "resnet5"], ["'resnet50'"]),
        (["fit", "digits", "--weights", "w.h5"], ["w.h5"]),
        (["fit", "digits", "--set", "model.dimm=3"], ["Nearest: 'dim'"]),
        (["fit", "digits", "--epochs", "0"], ["`--epochs` must be at least 1"]),
        (["fit", "digits", "--freeze", "x"], ["`--freeze` must be 'none',"]),
        (
            ["fit", "digits", "--set", "stages.main.train.epochs=0"],
            ["`stages.0.phases.0.epochs` must be at least 1"],
        ),
        (["compare", "./absent"], ["no folder or plan file ./absent"]),
        (TOO_MANY_CLASSES, ["11 classes"]),
        (["fit", "digits", "--strategy", "mirored"], ["'mirrored'"]),
        (["fit", "cars196", "--data-dir", "absent"], ["absent"]),
        (["evaluate", "absent"], ["There is no run folder absent"]),
        (["export", "absent"], ["There is no run folder absent"]),
        (["prepare", "cars", "--data-dir", "x"], ["cars196"]),
    ],
)
def test_mistakes_end_with_2_and_leave_no_folder(
    command, tmp_path, monkeypatch, arguments, parts
):
    monkeypatch.chdir(tmp_path)
    refused(command(*arguments), *parts)
    assert not list(tmp_path.iterdir())


def test_a_number_that_is_none(command):
    outcome = command("fit", "digits", "--epochs", "many")
    assert outcome.code == 2
    assert "'--epochs': it must be a whole number" in outcome.err


def test_a_full_disk_ends_with_1_and_says_what_to_do(command, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device", "last.npz")

    monkeypatch.setattr(api, "fit_config", full)
    outcome = command("fit", "digits")
    refused(outcome, "disk is full", "last.npz", "--resume", code=1)


def test_a_run_that_fails_ends_with_1(command, monkeypatch):
    def fail(*args, **kwargs):
        raise RunError("The loss is nan in epoch 3 at step 7.")

    monkeypatch.setattr(api, "fit_config", fail)
    refused(command("fit", "digits"), "epoch 3 at step 7", code=1)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["fits", "digits"], "fit"),
        (["fit", "digits", "--sede", "3"], "--seed"),
        # The help of an option knows more words than its name.
        (["fit", "digits", "--learning-rate", "3"], "--lr"),
        (["fit", "digits", "--network", "x"], "--backbone"),
        # Other tools call them so; letters would find another option.
        (["fit", "digits", "--model", "x"], "--backbone"),
        (["fit", "digits", "--bs", "8"], "--batch-size"),
        (["fit", "digits", "--embedding-size", "8"], "--dim"),
        (["compare", "digits", "--recipe", "ln"], "--recipes"),
        (["search", "run", "a.jpg", "--top-k", "3"], "--k"),
        (["compare", "demo", "--lr", "1"], "--set optimizer.backbone.lr=..."),
        (["compare", "demo", "--image-size", "1"], "--set data.image_size=..."),
    ],
)
def test_a_mistyped_name_finds_the_right_one(command, arguments, meant):
    outcome = command(*arguments)
    assert outcome.code == 2
    assert meant in outcome.err.partition("No such")[2]


def test_a_command_of_any_length_is_named_in_short(command):
    outcome = command("x" * 5000)
    assert outcome.code == 2
    assert "No such command" in outcome.err and "xx..." in outcome.err
    assert len(outcome.err) < 1500


TYPES = r"<\w+(\[.*\])?>|\b(TEXT|INTEGER|FLOAT|BOOLEAN|CHOICE)\b"


def commands():
    return [*typer.main.get_command(app).commands]


@pytest.mark.parametrize("name", [None, *commands()])
def test_the_help_has_groups_and_an_example_and_no_types(command, name):
    shown = command(*([name] if name else []), "-h").out
    example = f"Example: keras-dml {name}" if name else "keras-dml fit FOLDER"
    assert example in shown
    assert not re.search(TYPES, shown)
    groups = re.findall(r"╭─ ([^─]+) ─", shown)
    assert "Options" in groups and len(groups) == len(set(groups))
    if name is None:
        assert {"Train", "Use what was trained", "Look up"} < {*groups}
        listed = re.findall(r"^│ ([a-z-]+) ", shown, re.MULTILINE)
        assert {*commands()} <= {*listed}
    else:
        assert len(groups) >= 2


def test_the_longest_helps_group_their_options(command):
    for name in ("fit", "config", "compare", "export"):
        assert command(name, "-h").out.count("╭─") >= 3


@pytest.mark.skipif(shutil.which("bash") is None, reason="There is no bash.")
def test_bash_gets_a_script_that_completes_commands(tmp_path):
    script = (
        "import sys; sys.argv[0] = 'keras-dml'\n"
        "from keras_dml.cli import main; main()"
    )
    program = tmp_path / "keras-dml"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)

    def bash(line):
        # Not the last command, or bash would become the program.
        done = subprocess.run(
            ["bash", "--norc", "-c", f"{line}\ntrue"],
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    completion = bash("keras-dml --show-completion")
    assert "complete -o default -F" in completion
    found = bash(
        f"{completion}\nCOMP_WORDS=(keras-dml ex) COMP_CWORD=1\n"
        "_keras_dml_completion keras-dml\necho ${COMPREPLY[@]}"
    )
    assert found.split() == ["export"]


def test_the_version(command):
    assert command("--version").out == f"keras-dml {__version__}\n"


def test_output_that_is_no_run_folder(command, tmp_path):
    (tmp_path / "letter.txt").write_text("keep me")
    outcome = command("fit", "digits", "--output", tmp_path)
    refused(outcome, "exists and is not a run folder")
    assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_with_one_class(command, tmp_path, monkeypatch):
    images = image_folder(tmp_path / "images", classes=1)
    monkeypatch.chdir(tmp_path)
    outcome = command("fit", images, "--backbone", "small_cnn")
    refused(outcome, "at least two sub-folders")
    assert [entry.name for entry in tmp_path.iterdir()] == ["images"]


def test_an_empty_class(command, tmp_path, monkeypatch):
    images = image_folder(tmp_path / "images")
    (images / "class_9").mkdir()
    monkeypatch.chdir(tmp_path)
    refused(command("fit", images, "--backbone", "small_cnn"), "class_9")


def test_many_unreadable_images(command, tmp_path, monkeypatch):
    images = image_folder(tmp_path / "images")
    (images / "class_0" / "0.jpg").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    outcome = command("fit", images, "--backbone", "small_cnn")
    refused(outcome, "unreadable", str(Path("class_0") / "0.jpg"))


@pytest.mark.slow
def test_few_unreadable_images_are_skipped_and_counted(command, tmp_path):
    images = image_folder(tmp_path / "images", classes=4, images=30)
    (images / "class_3" / "07.jpg").write_bytes(b"not a photo")
    run = tmp_path / "run"
    outcome = command(
        *("fit", images, "--backbone", "small_cnn", "--output", run),
        *("--no-export", "--no-report", *QUICK),
    )
    assert outcome.code == 0, outcome.err
    assert "07.jpg" in outcome.err
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["skipped_images"] == 1
