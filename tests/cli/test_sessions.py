"""Whole sessions as a person at a terminal, or a program, sees them, as text.

They are on photos of groceries, in a pseudo-terminal or a pipe.
`python -m tests.cli.test_sessions` writes the files anew.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import zygote
from tests.terminal import COLORS, Terminal, masked, plain_environment, visible
from tests.thorough import ALL
from tests.zygote import ROOT

SESSIONS = Path(__file__).parent / "sessions"
FIT = [
    *("fit", "groceries", "--backbone", "small_cnn", "--output", "run"),
    *("--epochs", "2", "--dim", "16", "--set", "sampling.steps_per_epoch=12"),
    *("--set", "sampling.batch_size=64", "--image-size", "48"),
    *("--set", "evaluation.every=2", "--set", "data.validation_from=6"),
    *("--set", "data.validation_fraction=0.25"),
]
WEIGHTS = "mobilenet_v2.weights.h5"
FIT_PRETRAINED = [
    *("fit", "groceries", "--backbone", "mobilenet_v2", "--weights", WEIGHTS),
    *("--output", "run", "--epochs", "2", "--image-size", "64"),
    *("--set", "sampling.steps_per_epoch=4", "--set", "sampling.batch_size=32"),
    *("--set", "data.validation_from=6"),
    *("--set", "data.validation_fraction=0.25"),
]
BROKEN = "groceries/class_69/11.jpg"
SEARCH = [
    *(
        "search",
        "run",
        "groceries/class_60/00.jpg",
        "groceries/class_39/04.jpg",
    ),
    *("--k", "3"),
]
EXPORT = ["export", "run", "--format", "litert", "--output", "phone"]
COMPARE = [
    *("compare", "groceries", "--recipes", "norm_softmax,triplet"),
    "--dry-run",
    *("--backbones", "small_cnn", "--epochs", "2"),
    *("--set", "data.validation_from=6"),
]
PLAN = """
title: Groceries
sources: [groceries]
recipes: [norm_softmax]
arms:
  - name: usual rates
  - name: no rates
    set:
      optimizer.backbone.lr: 0.0
      optimizer.head.lr: 0.0
      optimizer.proxies.lr: 0.0
backbones: [small_cnn]
budget: {epochs: 2, steps_per_epoch: 12}
set:
  data.validation_from: 6
  data.image_size: 48
  model.dim: 16
  sampling.batch_size: 64
"""
RUN_PLAN = ["compare", "plan.yaml", "--output", "plan", "--no-estimate"]
# The environment of a terminal with colors, and without.
KINDS = {"color": {}, "plain": {"NO_COLOR": "1"}}
QUICK = ["--no-export", "--no-report", "--set", "evaluation.k=[1]"]


# Classes far apart in the list of groceries, so that few are alike.
CLASSES, EACH = range(0, 72, 3), 12


def photos(folder, data):
    """24 classes; 12 train, three of them validate. One file is no image.

    Classes and files get names of one length: which ones a search finds must
    not change the width of its table.
    """
    folders = sorted((data / "grocery81_96" / "images").iterdir())
    for number in CLASSES:
        copied = folder / "groceries" / f"class_{number:02}"
        copied.mkdir(parents=True)
        for place, photo in enumerate(sorted(folders[number].iterdir())[:EACH]):
            shutil.copyfile(photo, copied / f"{place:02}.jpg")
    (folder / BROKEN).write_bytes(b"no photo")


def piped(arguments, folder):
    """Returns both outputs together."""
    return zygote.run(
        *("keras_dml", *arguments),
        together=True,
        cwd=folder,
        env=plain_environment(),
    ).stdout


def piped_by_a_shell(arguments, folder):
    """The same in a process of its own: also what is logged at its start."""
    environment = plain_environment()
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.run(
        [sys.executable, "-m", "keras_dml", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment,
    ).stdout


def on_terminals(name, arguments, folder, widths, left=None):
    """Yields sessions of these widths, each with colors and without.

    `left` is what a session leaves and the next one must not find.
    """
    for columns in widths:
        for kind, extra in KINDS.items():
            if left is not None:
                shutil.rmtree(folder / left, ignore_errors=True)
            screen = Terminal(*arguments, cwd=folder, columns=columns, **extra)
            yield f"{name}_{columns}", kind, screen.read()


def sessions(folder, data, wide=True):
    """Yields name, kind and output of every session, one after another.

    Sessions of one name show the same words. `wide` is whether all are also
    shown at 110 columns, and the fit at 80 without colors.
    """
    widths = (80, 110) if wide else (80,)
    photos(folder, data)
    (weights,) = (data / "mobilenetv2_imagenet").glob("*.weights.h5")
    (folder / WEIGHTS).symlink_to(weights)
    yield "fit_piped", "piped", piped([*FIT, *QUICK], folder)
    shutil.rmtree(folder / "run")
    pretrained = Terminal(*FIT_PRETRAINED, *QUICK, cwd=folder)
    yield "fit_pretrained_80", "color", pretrained.read()
    shutil.rmtree(folder / "run")
    if wide:
        screen = Terminal(
            *(*FIT, *QUICK), cwd=folder, columns=110, **KINDS["plain"]
        )
        yield "fit_110", "plain", screen.read()
        shutil.rmtree(folder / "run")
        screen = Terminal(*FIT, cwd=folder, columns=80, **KINDS["plain"])
        yield "fit_80", "plain", screen.read()
        shutil.rmtree(folder / "run")
    yield "fit_80", "color", Terminal(*FIT, cwd=folder).read()
    (folder / BROKEN).unlink()
    changed = Terminal(*SEARCH, cwd=folder)
    yield "search_changed_80", "color", changed.read()
    yield from on_terminals("search", SEARCH, folder, widths)
    yield "search_piped", "piped", piped(SEARCH, folder)
    yield from on_terminals("export", EXPORT, folder, widths, "phone")
    shutil.rmtree(folder / "phone")
    yield "export_piped", "piped", piped_by_a_shell(EXPORT, folder)
    (folder / "plan.yaml").write_text(PLAN)
    yield "compare_trains_80", "color", Terminal(*RUN_PLAN, cwd=folder).read()
    # All runs are there: nothing is trained.
    yield from on_terminals("compare", RUN_PLAN, folder, widths)
    yield "compare_piped", "piped", piped(RUN_PLAN, folder)
    # Where its lines end depends on how long the trainings may take.
    yield "compare_dry_piped", "piped", piped(COMPARE, folder)


def shown(text):
    """Returns what a person sees of an output, without what differs."""
    seen = visible(text) if "\x1b" in text or "\r" in text else text
    # A loss of about 10 has two digits on some machines.
    return re.sub(r"(?<=loss )#+(?=\.)", "#", masked(seen))


def write():
    data = os.environ.get("KERAS_DML_TEST_DATA", ROOT.parent / "shared/data")
    with tempfile.TemporaryDirectory() as folder:
        for name, _, text in sessions(Path(folder), Path(data)):
            (SESSIONS / f"{name}.txt").write_text(shown(text), "utf-8")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory, test_data):
    folder = tmp_path_factory.mktemp("sessions")
    return list(sessions(folder, test_data, wide=ALL))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    sorted(
        path.stem
        for path in SESSIONS.glob("*.txt")
        if ALL or not path.stem.endswith("110")
    ),
)
def test_a_session_is_the_one_that_was_looked_at(recorded, name):
    expected = (SESSIONS / f"{name}.txt").read_text("utf-8")
    found = {kind: text for one, kind, text in recorded if one == name}
    assert found
    for kind, text in found.items():
        assert shown(text) == expected, kind


@pytest.mark.slow
def test_the_lines_fit_a_terminal_and_a_pipe_has_no_controls(recorded):
    for name, kind, text in recorded:
        if kind == "piped":
            assert not re.search(r"[\x00-\x09\x0b-\x1f]", text), name
            assert "steps/s" not in text, name
        else:
            columns = 110 if name.endswith("110") else 80
            assert max(map(len, visible(text).splitlines())) <= columns, name


@pytest.mark.slow
def test_colors_are_shown_on_terminals_unless_they_are_unwanted(recorded):
    for name, kind, text in recorded:
        assert bool(COLORS.search(text)) == (kind == "color"), (name, kind)


@pytest.mark.slow
def test_a_training_on_a_terminal_shows_a_bar(recorded):
    texts = {name: text for name, _, text in recorded}
    for name in ("fit_80", "fit_110") if ALL else ("fit_80",):
        bars = re.findall(r"[^\r\n]*steps/s[^\r\n]*", texts[name])
        assert bars, name
        # The end of the line is there: nothing was cut to fit the window.
        assert all("left" in bar or "12/12" in bar for bar in bars), name
        assert "━" in bars[0], name


@pytest.mark.slow
def test_a_search_says_once_why_it_embeds_again(recorded):
    """A photo is gone that was there when the run was trained."""
    (text,) = (one for name, _, one in recorded if name == "search_changed_80")
    assert text.count("have changed since its images") == 1


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path, test_data):
    photos(tmp_path, test_data)
    long = [*FIT, *QUICK, "--set", "sampling.steps_per_epoch=400"]
    screen = Terminal(*long, cwd=tmp_path)
    screen.read(until=r"epoch 1/2 .* steps/s")
    screen.press_ctrl_c()
    screen.read()
    assert screen.code == 130
    said = visible(screen.text)
    assert "Stopping after this step" in said
    step = int(re.search(r"from epoch 1, step (\d+)/400", said)[1])
    assert re.search(
        r"keras-dml fit groceries .* --resume", " ".join(said.split())
    )
    log = tmp_path / "run" / "log.txt"
    assert f"step {step}/400" in log.read_text("utf-8")
    # Nothing of colors without a wish for them.
    again = Terminal(*long, "--resume", cwd=tmp_path, NO_COLOR="1")
    again.read(until=r"steps/s")
    assert not COLORS.search(again.text)
    again.press_ctrl_c()
    again.read()
    assert again.code == 130


if __name__ == "__main__":
    write()
