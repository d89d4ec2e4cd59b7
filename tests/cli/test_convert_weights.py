"""`keras-dml convert-weights`: from a public checkpoint to a backbone."""

import numpy as np
import pytest

from keras_dml.models.conversion import LAYOUTS
from keras_dml.models.weights import build_with_weights
from tests.checkpoints import changed_googlenet, write_googlenet
from tests.cli.refusals import refused
from tests.conformance import to_numpy


@pytest.fixture(scope="module")
def googlenet():
    return changed_googlenet()


@pytest.fixture(scope="module")
def checkpoint(googlenet, tmp_path_factory):
    """Its weights as torchvision names and lays them out."""
    path = tmp_path_factory.mktemp("public") / "googlenet.npz"
    write_googlenet(path, googlenet)
    return path


@pytest.mark.slow
def test_converts_what_weights_takes(command, googlenet, checkpoint, tmp_path):
    output = tmp_path / "new" / "googlenet.weights.h5"
    arguments = ["--network", "googlenet", "--output", output]
    outcome = command("convert-weights", checkpoint, *arguments)
    assert outcome.code == 0, outcome.err
    assert "5,614,464 values of googlenet" in outcome.out
    assert "left out: 1 entries" in outcome.out
    assert [one.name for one in output.parent.iterdir()] == [output.name]
    # Another size than that of the conversion.
    loaded = build_with_weights("googlenet", (67, 48, 3), str(output))
    for given, weight in zip(googlenet.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(given), to_numpy(weight))

    before = output.read_bytes()
    refused(
        command("convert-weights", checkpoint, *arguments),
        "`--output` is there already",
        "--force",
    )
    assert output.read_bytes() == before
    outcome = command("convert-weights", checkpoint, *arguments, "--force")
    assert outcome.code == 0, outcome.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "output", "parts"),
    [
        ("googlnet", "a.weights.h5", ["'googlnet'", "mean 'googlenet'"]),
        ("mobilenet_v2", "a.weights.h5", ["must be one of"]),
        ("googlenet", "a.h5", ["must end in .weights.h5"]),
        ("resnet50_v1_5", "a.weights.h5", ["not one of 'resnet50_v1_5'"]),
    ],
)
def test_mistakes(network, output, parts, command, checkpoint, tmp_path):
    output = tmp_path / output
    refused(
        command(
            "convert-weights",
            checkpoint,
            "--network",
            network,
            "--output",
            output,
        ),
        *parts,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["folder.weights.h5", "file/a.weights.h5"])
def test_an_output_that_cannot_be_written(name, command, checkpoint, tmp_path):
    (tmp_path / "folder.weights.h5").mkdir()
    (tmp_path / "file").touch()
    outcome = command(
        "convert-weights",
        checkpoint,
        "--network",
        "googlenet",
        "--output",
        tmp_path / name,
        "--force",
    )
    refused(outcome, "`--output` cannot be written")
    left = sorted(one.name for one in tmp_path.iterdir())
    assert left == ["file", "folder.weights.h5"]


def test_a_file_that_is_not_there(command, tmp_path):
    output = tmp_path / "a.weights.h5"
    arguments = ["--network", "googlenet", "--output", output]
    refused(
        command("convert-weights", tmp_path / "absent.pth", *arguments),
        "There is no file",
        "absent.pth",
    )


def test_the_help_names_every_network(command):
    outcome = command("convert-weights", "--help")
    assert all(network in outcome.out for network in LAYOUTS)


def test_backbones_lists_every_network(command):
    outcome = command("backbones")
    assert all(network in outcome.out for network in LAYOUTS)
