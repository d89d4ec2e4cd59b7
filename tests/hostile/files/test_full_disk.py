"""A full disk: said in a sentence, and with room again the work goes on."""

import shutil

import pytest

from keras_dml.export import FORMATS
from keras_dml.models import BACKBONES
from tests import disks
from tests.checkpoints import write_googlenet
from tests.disks import KIB, MIB, resize
from tests.hostile.runner import check_outcome, limited, run_command
from tests.thorough import ALL

FULL = "The disk is full"


@pytest.fixture
def disk(tmp_path):
    """An empty disk of one MiB."""
    with disks.disk(tmp_path / "disk") as folder:
        yield folder


@pytest.fixture
def call(capsys, monkeypatch):
    def call(code, message, *arguments):
        with limited(60):
            outcome = run_command(capsys, monkeypatch, *arguments)
        check_outcome(outcome, code, message)
        return outcome

    return call


def fit(images, output, *more):
    return (
        *("fit", images, "--output", output, "--backbone", "small_cnn"),
        *("--epochs", "1", "--set", "sampling.steps_per_epoch=1"),
        *("--set", "model.dim=16", *more),
    )


QUIET = ("--no-export", "--no-report")


@pytest.mark.slow
@pytest.mark.parametrize("pages", [0, 1, 4] if ALL else [1])
def test_a_disk_that_is_full_from_the_start(pages, disk, images, call):
    """Of 4 KiB each: none for `config.yaml`, or none for what follows it."""
    filler = disk / "filler"
    filler.write_bytes(bytes(MIB - 4096 * pages))
    command = fit(images, disk / "run", *QUIET)
    call(1, FULL, *command)
    filler.unlink()
    resize(disk, 64 * MIB)
    call(0, "", *command)


@pytest.mark.slow
@pytest.mark.parametrize("files", [2, 3, 4] if ALL else [3])
def test_a_disk_that_takes_no_more_folders(files, disk, images, call):
    """The run folder, `checkpoints/`, or the lock cannot be made."""
    resize(disk, 64 * MIB, files)
    command = fit(images, disk / "run", *QUIET)
    call(1, FULL, *command)
    resize(disk, 64 * MIB)
    call(0, "", *command)


# Of 15 MB that a run leaves: none for the first checkpoint, for the second one
# next to it, and for what follows the training.
SIZES = [500, 10_000, 14_000] if ALL else [500]


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", SIZES)
def test_a_disk_that_fills_up_in_a_training(kilobytes, disk, images, call):
    resize(disk, kilobytes * KIB)
    command = fit(images, disk / "run")
    call(1, FULL, *command)
    resize(disk, 256 * MIB)
    call(0, "", *command, "--resume")
    assert (disk / "run" / "report.html").is_file()
    assert not list((disk / "run").glob("**/*partial*"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_an_export_to_a_full_disk(kind, disk, finished_run, call):
    if kind == "onnx":
        pytest.importorskip("tf2onnx", reason="ONNX is not installed.")
    output = disk / "export"
    command = ("export", finished_run, "--format", kind, "--output", output)
    for kilobytes in (8, 100) if ALL else (100,):
        resize(disk, kilobytes * KIB)
        call(1, FULL, *command)
        assert not output.exists()
    resize(disk, 256 * MIB)
    call(0, "", *command)


@pytest.mark.slow
def test_a_report_on_a_full_disk(disk, run, call):
    moved = disk / "run"
    resize(disk, 64 * MIB)
    shutil.copytree(run, moved)
    before = sorted(moved.rglob("*"))
    filler = disk / "filler"
    with open(filler, "wb") as file, pytest.raises(OSError):
        while True:
            file.write(bytes(64 * KIB))
            file.flush()
    call(1, FULL, "report", moved)
    assert [path for path in before if not path.exists()] == []
    filler.unlink()
    call(0, "", "report", moved)


@pytest.mark.slow
def test_weights_for_a_full_disk(disk, tmp_path, call):
    """HDF5 writes them, which has errors of its own."""
    network = BACKBONES["googlenet"].builder(input_shape=(32, 32, 3))
    write_googlenet(tmp_path / "googlenet.npz", network)
    output = disk / "googlenet.weights.h5"
    words = ("--network", "googlenet", "--output", output)
    call(1, FULL, "convert-weights", tmp_path / "googlenet.npz", *words)
    assert list(disk.iterdir()) == []
    resize(disk, 64 * MIB)
    call(0, "", "convert-weights", tmp_path / "googlenet.npz", *words)
    assert list(disk.iterdir()) == [output]
