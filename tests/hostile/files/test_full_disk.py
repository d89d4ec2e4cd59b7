"""A full disk: said in a sentence, and with room again the work goes on.

The disks are small file systems in memory, which only an administrator may
mount.
"""

import shutil
import subprocess

import pytest

from keras_dml.models import BACKBONES
from tests.checkpoints import write_googlenet
from tests.hostile.runner import check_outcome, limited, run_command
from tests.thorough import ALL

FULL = "The disk is full"


@pytest.fixture
def disk(tmp_path):
    """An empty disk of one MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def _mount(*words):
    done = subprocess.run(["mount", *words], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"No disk can be mounted here: {done.stderr.strip()}")


def resize(disk, size, files=None):
    options = f"remount,size={size}" + (f",nr_inodes={files}" if files else "")
    subprocess.run(["mount", "-o", options, disk], check=True)


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


@pytest.mark.parametrize("pages", [0, 1, 4])
def test_a_disk_that_is_full_from_the_start(pages, disk, images, call):
    """Of 4 KiB each: none for `config.yaml`, or none for what follows it."""
    filler = disk / "filler"
    filler.write_bytes(bytes(2**20 - 4096 * pages))
    command = fit(images, disk / "run", *QUIET)
    call(1, FULL, *command)
    filler.unlink()
    resize(disk, "64m")
    call(0, "", *command)


@pytest.mark.parametrize("files", [2, 3, 4])
def test_a_disk_that_takes_no_more_folders(files, disk, images, call):
    """The run folder, `checkpoints/`, or the lock cannot be made."""
    resize(disk, "64m", files)
    command = fit(images, disk / "run", *QUIET)
    call(1, FULL, *command)
    resize(disk, "64m", 1000)
    call(0, "", *command)


# Of 15 MB that a run leaves: none for the first checkpoint, for the second one
# next to it, and for what follows the training.
SIZES = [500, 10_000, 14_000] if ALL else [500]


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", SIZES)
def test_a_disk_that_fills_up_in_a_training(kilobytes, disk, images, call):
    resize(disk, f"{kilobytes}k")
    command = fit(images, disk / "run")
    call(1, FULL, *command)
    resize(disk, "256m")
    call(0, "", *command, "--resume")
    assert (disk / "run" / "report.html").is_file()
    assert not list((disk / "run").glob("**/*partial*"))


@pytest.mark.parametrize("kind", ["saved_model", "litert", "onnx"])
def test_an_export_to_a_full_disk(kind, disk, finished_run, call):
    if kind == "onnx":
        pytest.importorskip("tf2onnx", reason="ONNX is not installed.")
    output = disk / "export"
    command = ("export", finished_run, "--format", kind, "--output", output)
    for kilobytes in (8, 100):
        resize(disk, f"{kilobytes}k")
        call(1, FULL, *command)
        assert not output.exists()
    resize(disk, "256m")
    call(0, "", *command)


def test_a_report_on_a_full_disk(disk, run, call):
    moved = disk / "run"
    resize(disk, "64m")
    shutil.copytree(run, moved)
    before = sorted(moved.rglob("*"))
    filler = disk / "filler"
    with open(filler, "wb") as file, pytest.raises(OSError):
        while True:
            file.write(bytes(2**16))
            file.flush()
    call(1, FULL, "report", moved)
    assert [path for path in before if not path.exists()] == []
    filler.unlink()
    call(0, "", "report", moved)


def test_weights_for_a_full_disk(disk, tmp_path, call):
    """HDF5 writes them, which has errors of its own."""
    network = BACKBONES["googlenet"].builder(input_shape=(32, 32, 3))
    write_googlenet(tmp_path / "googlenet.npz", network)
    output = disk / "googlenet.weights.h5"
    words = ("--network", "googlenet", "--output", output)
    call(1, FULL, "convert-weights", tmp_path / "googlenet.npz", *words)
    assert list(disk.iterdir()) == []
    resize(disk, "64m")
    call(0, "", "convert-weights", tmp_path / "googlenet.npz", *words)
    assert list(disk.iterdir()) == [output]
