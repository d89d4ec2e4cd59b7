"""Hostile folders of images are embedded and trained on, or refused."""

import csv
import shutil

import numpy as np
import pytest
from PIL import Image

from keras_dml.data import decoding, readers, verification
from keras_dml.errors import RunError
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.folder import RunFolder
from tests.commands import run_command
from tests.hostile.images.cases import CASES, FIT
from tests.hostile.mutations import mutated
from tests.hostile.runner import check_outcome, limited, table
from tests.images import image_folder, turned_file

KINDS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")
FILES = 60


@pytest.fixture
def copied(tmp_path, images):
    """A copy of the images, for a test to damage."""
    folder = tmp_path / "images"
    shutil.copytree(images, folder)
    return folder


@pytest.mark.parametrize("case", table(CASES))
def test_a_hostile_folder(case, finished_run, copied, capsys, monkeypatch):
    case.harm(copied)
    out = copied.parent / "out"
    places = {"run": finished_run, "images": copied, "out": out}
    case.check(capsys, monkeypatch, **places)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_image_is_decoded_or_refused(kind, tmp_path):
    """In the way of training and in that of `embed`: neither takes another."""
    whole = turned_file(6, kind)
    paths = [tmp_path / f"{number}.jpg" for number in range(FILES)]
    for seed, path in enumerate(paths):
        path.write_bytes(mutated(whole, seed))
    manifest = readers.Manifest(
        "mutated",
        np.zeros(FILES, int),
        ["a"],
        [path.name for path in paths],
        paths,
    )
    with limited():
        found = verification.verify(manifest)
    assert len(found.rows) + len(found.bad) == FILES
    for row in found.rows:
        image = decoding.decode(paths[row].read_bytes())
        assert image.dtype == "uint8" and image.shape[-1] == 3
    assert all(reason and "\n" not in reason for _, reason in found.bad)


def test_an_image_that_vanishes_is_named(finished_run, copied):
    from keras_dml.run.trained_run import TrainedRun

    run = TrainedRun(finished_run)
    manifest = readers.read(str(copied))
    (copied / "class_00" / "00.png").unlink()
    with pytest.raises(RunError, match=r"1 images changed.*00\.png \(no such"):
        run.embed_images(manifest)
    (copied / "class_01" / "00.png").write_bytes(b"\xff\xd8\xff")
    with pytest.raises(RunError, match="2 images changed or vanished"):
        run.embed_images(manifest)


@pytest.mark.slow
def test_a_training_goes_on_after_an_image_vanished(
    tmp_path, capsys, monkeypatch
):
    """One image of each class is away from the second epoch on."""
    images, away = tmp_path / "images", tmp_path / "away"
    image_folder(images, classes=12, images=6, size=16, suffix=".png")
    command = [str(images) if word == "<images>" else word for word in FIT[:2]]
    command += [*FIT[4:], "--epochs=3", "--output"]
    whole = run_command(capsys, monkeypatch, *command, tmp_path / "whole")
    assert whole.code == 0, whole.err
    write = RunFolder.write_history

    def losing(folder, history):
        write(folder, history)
        if not away.exists():
            for path in sorted(images.glob("*/0.png")):
                gone = away / path.relative_to(images)
                gone.parent.mkdir(parents=True)
                path.rename(gone)

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write_history", losing)
        stopped = run_command(
            capsys, monkeypatch, *command, tmp_path / "stopped"
        )
    said = r"12 images changed or vanished.*/0\.png \(no such.*--resume"
    check_outcome(stopped, 1, said)
    shutil.copytree(away, images, dirs_exist_ok=True)
    again = (*command, tmp_path / "stopped", "--resume")
    outcome = run_command(capsys, monkeypatch, *again)
    assert outcome.code == 0, outcome.err
    expected, found = (
        load_checkpoint(tmp_path / name / "checkpoints" / "last.npz").values
        for name in ("whole", "stopped")
    )
    for group in expected:
        for a, b in zip(found[group], expected[group], strict=True):
            np.testing.assert_array_equal(a, b)


def test_ghostscript_is_never_started(tmp_path, monkeypatch):
    """Pillow would start the program for the very same bytes."""
    from tests.hostile.images.cases import EPS

    program = tmp_path / "gs"
    program.write_text(f"#!/bin/sh\n: > {tmp_path}/ran\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "a.jpg"
    path.write_bytes(EPS)
    with pytest.raises(OSError), Image.open(path) as image:
        image.load()
    assert (tmp_path / "ran").exists()
    (tmp_path / "ran").unlink()
    reason = verification.reason_refused(path)
    assert reason == "it is not an image of a known format"
    assert not (tmp_path / "ran").exists()


def test_bad_images_are_listed_with_their_reasons(
    finished_run, copied, command
):
    from tests.hostile.images import cases

    for harm in (cases.pipe, cases.device, cases.huge, cases.postscript):
        harm(copied)
    out = copied.parent / "out"
    outcome = command("embed", finished_run, copied, "--output", out)
    assert outcome.code == 0, outcome.err
    with open(out / "bad.csv", newline="", encoding="utf-8") as file:
        reasons = {
            row["id"].split("/")[-1]: row["reason"]
            for row in csv.DictReader(file)
        }
    assert reasons == {
        "pipe.png": "it is no regular file",
        "zero.png": "it is no regular file",
        "huge.png": "it has 1,099,511,627,776 bytes, more than the limit of "
        "536,870,910",
        "eps.jpg": "it is not an image of a known format",
    }
