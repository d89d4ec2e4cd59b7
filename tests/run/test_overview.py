"""What a run says before its first step."""

import dataclasses

import pytest
import tensorflow as tf

from keras_dml.run import overview
from keras_dml.run.data import RunData
from keras_dml.run.folder import RunFolder
from tests.run import made_up

DATA = RunData(
    train=made_up.manifest(seed=1),
    test=made_up.manifest(seed=2, classes=8),
    seen=False,
    partial=False,
    skipped=0,
)


def settings(*overrides):
    return made_up.settings("evaluation.interpolate=[]", *overrides)


def lines(*overrides, data=DATA, replicas=1):
    config, folder = settings(*overrides), RunFolder("runs/made-up")
    text = overview.overview(config, data, folder, replicas)
    assert max(map(len, text.splitlines())) <= 80
    found: dict[str, str] = {}
    for line in text.splitlines():
        title, value = line[:10].strip(), line[10:]
        last = title or [*found][-1]
        found[last] = f"{found[last]} {value}" if not title else value
    return found


def test_images_network_and_folder():
    found = lines(
        "data.validation_from=6",
        "data.validation_fraction=0.25",
        "evaluation.select=best",
    )
    device = found.pop("Device")
    assert found == {
        "Images": "200 in 20 classes, from omniglot",
        "Train": "90 images of 9 classes; turned by quarters they are further "
        "classes",
        "Validate": "30 images of 3 classes, not trained on: they choose the "
        "epoch to keep",
        "Test": "80 images of 8 classes, not trained on: they measure how it "
        "does on new classes",
        "Recipe": "norm_softmax, the method of training; `keras-dml "
        "recipes norm_softmax` explains it",
        "Size": "photos become squares of 4 x 4 pixels",
        "Network": "small_cnn, weights of file; it turns a photo into 16 "
        "numbers, its embedding; training brings those of like photos together",
        "Folder": "runs/made-up",
    }
    assert device.startswith(("CPU only, ", "GPU 0: "))


@pytest.mark.parametrize(
    ("weights", "origin"),
    [
        ("imagenet", "its ImageNet weights from Keras"),
        ("preset", "its weights from keras-hub"),
        ("none", "trained from scratch"),
        ("shared/trained.weights.h5", "weights of trained.weights.h5"),
    ],
)
def test_where_the_weights_come_from(weights, origin):
    said = lines("model.backbone=mobilenet_v2", f"model.weights={weights}")
    assert said["Network"] == (
        f"mobilenet_v2, {origin}; it turns a photo into 16 numbers, its "
        "embedding; training brings those of like photos together"
    )


@pytest.mark.parametrize(
    ("override", "why"),
    [
        ("data.validation=none", "`data.validation` is `none`"),
        ("data.validation_from=13", "12 classes are too few"),
        (
            "stages=[{name: a, classes: all, phases: [{}]}]",
            "the stage `a` trains on all classes",
        ),
    ],
)
def test_why_nothing_validates(override, why):
    said = lines("data.validation_images=null", override)["Validate"]
    assert said.startswith(f"nothing: {why}")
    assert said.endswith("The network of the last epoch is kept")


@pytest.mark.parametrize(
    ("shares", "kept"),
    [
        ([0.25, 1.0], "The network of the last epoch is kept"),
        (
            [0.0, 0.25, 0.5, 0.75, 1.0],
            "50 % of the way to the network of the last epoch is kept",
        ),
        ([0.5], "50 % of the way to the network of the last epoch is kept"),
        ([0.0], "The network of before the first step is kept"),
    ],
)
def test_what_is_kept_where_nothing_validates(shares, kept):
    said = lines("data.validation=none", f"evaluation.interpolate={shares}")
    assert said["Validate"].endswith(f". {kept}")


def test_of_many_images_some_validate():
    given = ["data.validation_from=6", "data.max_validation_images=20"]
    said = lines(*given, "data.validation_fraction=0.2")["Validate"]
    assert said.startswith("18 of 30 images of 3 classes, not trained on: ")
    said = lines("data.validation_from=6")["Validate"]
    assert said.startswith("30 images of 3 classes, not trained on: ")


def test_classes_that_only_validate_are_not_called_seen():
    seen = dataclasses.replace(DATA, seen=True)
    said = lines("data.validation_from=6", data=seen)["Test"]
    assert "all seen in training but for those that validate: " in said
    said = lines("data.validation=none", data=seen)["Test"]
    assert "all seen in training: " in said


def test_classes_of_one_image_are_not_called_too_few():
    single = dataclasses.replace(DATA, train=made_up.manifest(24, each=1))
    said = lines("data.validation_from=20", data=single)["Validate"]
    assert said.startswith("nothing: too few classes have two images of their")


def test_classes_that_choose_nothing_are_not_said_to():
    given = ["data.validation_from=6", "evaluation.select=last"]
    said = lines(*given)["Validate"]
    assert said.endswith("they show how well it goes; the last epoch is kept")


def test_images_of_trained_classes_validate():
    said = lines("data.validation_from=13", "data.validation_images=0.2")
    assert said["Validate"] == (
        "24 images of 12 classes; other images of these classes train"
    )


def test_what_was_left_out_is_told():
    data = dataclasses.replace(DATA, skipped=3, partial=True)
    assert lines(data=data)["Images"] == (
        "200 in 20 classes, from omniglot; 3 left out as unreadable; the data "
        "set is incomplete"
    )


def test_gpus_have_their_names(monkeypatch):
    """No machine of the tests has one."""
    asked = tf.config
    monkeypatch.setattr(asked, "list_logical_devices", lambda kind: [1, 2])
    monkeypatch.setattr(asked, "list_physical_devices", lambda kind: [1, 2])
    details = {"device_name": "NVIDIA H200"}
    monkeypatch.setattr(
        asked.experimental, "get_device_details", lambda gpu: details
    )
    assert overview.device() == "GPU 0: NVIDIA H200"
    assert overview.device(2) == "GPU 0: NVIDIA H200 and GPU 1: NVIDIA H200"


@pytest.mark.parametrize("windows", [False, True])
@pytest.mark.parametrize(
    ("hidden", "advice"),
    [(None, "tensorflow[and-cuda]"), ("", "CUDA_VISIBLE_DEVICES='' hides")],
)
def test_a_gpu_that_is_not_used_is_explained(
    monkeypatch, tmp_path, hidden, advice, windows
):
    """Linux has a folder for each GPU; Windows lends a library."""
    monkeypatch.setattr(overview, "NVIDIA", tmp_path / "gpus")
    monkeypatch.setattr(overview, "WSL", tmp_path / "libcuda.so.1")
    (tmp_path / "gpus").mkdir()
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert overview._unused_gpu() == ""
    gpu = "libcuda.so.1" if windows else "gpus/0000:01:00.0"
    (tmp_path / gpu).mkdir()
    assert advice in overview._unused_gpu()
