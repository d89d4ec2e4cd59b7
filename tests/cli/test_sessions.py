"""Whole sessions as a person, or a program, sees them, kept as text files.

`python -m tests.cli.test_sessions` writes the files anew.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.images import image_folder
from tests.terminal import COLORS, Terminal, masked, plain_environment, visible

SESSIONS = Path(__file__).parent / "sessions"
FIT = [
    *("fit", "paint", "--backbone", "small_cnn", "--output", "run"),
    *("--epochs", "2", "--dim", "16", "--set", "sampling.steps_per_epoch=8"),
    *("--set", "evaluation.every=2", "--set", "data.validation_from=6"),
    *("--set", "data.validation_fraction=0.25"),
]
BROKEN = "paint/class_23/9.jpg"
SEARCH = [
    *("search", "run", "paint/class_22/0.jpg", "paint/class_13/4.jpg"),
    *("--k", "3"),
]
EXPORT = ["export", "run", "--format", "litert", "--output", "phone"]
COMPARE = [
    *("compare", "paint", "--recipes", "norm_softmax,triplet", "--dry-run"),
    *("--backbones", "small_cnn", "--epochs", "2"),
    *("--set", "data.validation_from=6"),
    *("--set", "data.validation_fraction=0.25"),
]
QUICK = ["--no-export", "--no-report", "--set", "evaluation.k=[1]"]


def photos(folder):
    """24 classes; 12 train, three of them validate. One file is no image."""
    image_folder(folder / "paint", classes=24, images=10)
    (folder / BROKEN).write_bytes(b"no photo")


def piped(arguments, folder):
    """Returns both outputs together."""
    return subprocess.run(
        [sys.executable, "-m", "keras_dml", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=plain_environment(),
        encoding="utf-8",
    ).stdout


def sessions(folder):
    """Yields name and text of every session, one after another."""
    photos(folder)
    yield "fit_piped", piped([*FIT, *QUICK], folder)
    shutil.rmtree(folder / "run")
    yield "fit", visible(Terminal(*FIT, cwd=folder).read())
    (folder / BROKEN).unlink()
    for name, words in (("search", SEARCH), ("export", EXPORT)):
        for columns in (80, 110):
            screen = Terminal(*words, cwd=folder, columns=columns)
            yield f"{name}_{columns}", visible(screen.read())
            shutil.rmtree(folder / "phone", ignore_errors=True)
    # Where its lines end depends on how long the trainings may take.
    yield "compare_piped", piped(COMPARE, folder)


def write():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in sessions(Path(folder)):
            (SESSIONS / f"{name}.txt").write_text(masked(text), "utf-8")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return dict(sessions(tmp_path_factory.mktemp("sessions")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(path.stem for path in SESSIONS.glob("*.txt"))
)
def test_a_session_is_the_one_that_was_looked_at(recorded, name):
    expected = (SESSIONS / f"{name}.txt").read_text("utf-8")
    assert masked(recorded[name]) == expected


@pytest.mark.slow
def test_the_lines_fit_a_terminal_and_a_pipe_has_no_controls(recorded):
    for name, text in recorded.items():
        if name.endswith("piped"):
            assert not re.search(r"[\x00-\x09\x0b-\x1f]", text), name
            assert "steps/s" not in text, name
        else:
            columns = 110 if name.endswith("110") else 80
            assert max(map(len, text.splitlines())) <= columns, name


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    photos(tmp_path)
    long = [*FIT, *QUICK, "--set", "sampling.steps_per_epoch=400"]
    started = time.perf_counter()
    screen = Terminal(*long, cwd=tmp_path)
    screen.read(until="Starting TensorFlow")
    assert time.perf_counter() - started < 3
    screen.read(until=r"epoch 1/2 .* steps/s")
    screen.press_ctrl_c()
    screen.read()
    assert screen.code == 130
    said = visible(screen.text)
    assert "Stopping after this step" in said
    step = int(re.search(r"from epoch 1, step (\d+)/400", said)[1])
    assert re.search(r"keras-dml fit paint .* --resume", " ".join(said.split()))
    log = tmp_path / "run" / "log.txt"
    assert f"step {step}/400" in log.read_text("utf-8")
    # Nothing of colors without a wish for them.
    again = Terminal(*long, "--resume", cwd=tmp_path, NO_COLOR="1")
    again.read(until=r"steps/s")
    assert not COLORS.search(again.text)
    again.press_ctrl_c()
    again.read(until="Stopping after this step")
    again.press_ctrl_c()
    again.read()
    assert again.code == 130


if __name__ == "__main__":
    write()
