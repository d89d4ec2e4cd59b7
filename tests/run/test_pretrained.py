"""Runs of a pretrained network: planned, trained again, resumed, undone."""

import dataclasses

import numpy as np
import pytest
from PIL import Image

from keras_dml.config import flags_of, load_run_config, resolve
from keras_dml.config.resolve import again
from keras_dml.embed.embedder import ImageEmbedder
from keras_dml.models.weights import build_with_weights
from keras_dml.run import fit as training
from keras_dml.run import minutes
from keras_dml.run import training as steps
from keras_dml.run.history import read_history
from keras_dml.run.pace import TrainingPace
from keras_dml.run.phases import StageTrainer
from keras_dml.run.trained_run import TrainedRun
from tests.run.made_up import pretrained_photos


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return pretrained_photos(tmp_path_factory.mktemp("photos"))


def settings(source, *overrides, **flags):
    arguments = {
        "backbone": "small_cnn",
        "weights": source / "small_cnn.weights.h5",
        **flags,
    }
    return resolve(
        "norm_softmax",
        str(source / "images"),
        flags=flags_of(arguments),
        overrides=[
            "model.dim=8",
            "sampling.batch_size=16",
            "sampling.steps_per_epoch=3",
            "evaluation.k=[1]",
            *overrides,
        ],
    )


@pytest.fixture(name="steady")
def at_a_steady_pace(monkeypatch):
    """A step takes a second, and the command nothing else."""
    monkeypatch.setattr(minutes, "EXPORT_SECONDS", 0.0)
    monkeypatch.setattr(
        steps, "measure_pace", lambda *_: TrainingPace(step=1.0, image=0.0)
    )
    monkeypatch.setattr(steps.time, "perf_counter", lambda: 0.0)


def epochs_of(folder):
    return len(read_history(folder / "history.csv"))


@pytest.mark.slow
def test_the_plan_is_written_and_trained_again_as_long(
    source, steady, tmp_path, monkeypatch
):
    """12 seconds are 2 epochs of 3 steps, and 2 of the refit, at any pace."""
    first, second = tmp_path / "first", tmp_path / "second"
    metrics = training.fit(settings(source, minutes=0.2), first)
    stored = load_run_config(first / "config.yaml")
    assert stored.minutes == 0.2
    assert [one.epochs for one in stored.stages[0].phases] == [2]
    assert stored.evaluation.every == 1
    assert epochs_of(first) == 2 * (1 + metrics["refit"])
    assert metrics["shrinkage"] in stored.model.whitening
    assert metrics["interpolation"].keys() >= {"share", "kept", "values"}
    assert metrics["seconds"].keys() >= {
        *("start", "read", "build", "features", "baselines", "pace"),
        *("tracing", "steps", "validation", "choice", "test"),
    }

    # It must not be measured again.
    monkeypatch.delattr(steps, "measure_pace")
    training.fit(again(first / "config.yaml"), second)
    assert load_run_config(second / "config.yaml") == stored
    assert epochs_of(second) == epochs_of(first)


@pytest.mark.slow
def test_a_resumed_run_keeps_its_plan(source, steady, tmp_path, monkeypatch):
    """The run is interrupted after its first phase, and then at any pace.

    16 seconds are 2 epochs of 4 steps, longer than the recipe's, twice.
    """
    folder, config = tmp_path / "run", settings(source, minutes=16.5 / 60)
    stop = StageTrainer._finish_phase

    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(StageTrainer, "_finish_phase", interrupted)
    with pytest.raises(KeyboardInterrupt):
        training.fit(config, folder)
    monkeypatch.setattr(StageTrainer, "_finish_phase", stop)
    monkeypatch.setattr(
        steps, "measure_pace", lambda *_: TrainingPace(step=0.1, image=0.0)
    )
    metrics = training.fit(config, folder, resume=True)
    assert epochs_of(folder) == 2 * (1 + metrics["refit"])
    stored = load_run_config(folder / "config.yaml")
    assert stored.sampling.steps_per_epoch == 4


@pytest.mark.slow
def test_images_that_would_take_most_of_the_minutes_are_smaller(
    source, steady, tmp_path, monkeypatch
):
    """And stay so in a run of the same settings, on whatever machine."""
    weights = tmp_path / "mobilenet_v2.weights.h5"
    network = build_with_weights("mobilenet_v2", (32, 32, 3), "none")
    network.save_weights(weights)
    monkeypatch.setattr(minutes, "LEAST_TRAIN_SIZE", 32)
    monkeypatch.setattr(steps, "embedding_seconds", lambda *_: 1.0)
    config = settings(
        source, backbone="mobilenet_v2", weights=weights, minutes=0.1
    )
    first, second = tmp_path / "first", tmp_path / "second"
    training.fit(config, first)
    stored = load_run_config(first / "config.yaml")
    assert stored.data.image_size == stored.augmentation.resize == 32
    said = "Images have 32 pixels instead of 64"
    assert said in (first / "log.txt").read_text()

    monkeypatch.delattr(steps, "embedding_seconds")
    training.fit(again(first / "config.yaml"), second)
    assert load_run_config(second / "config.yaml") == stored
    assert said not in (second / "log.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("devices", [None, "cpu:2"])
def test_no_open_length_reaches_training(source, tmp_path, devices):
    """A real pace, on one device and on two replicas."""
    strategy = "mirrored" if devices else "none"
    config = settings(
        source,
        "sampling.steps_per_epoch=1",
        strategy=strategy,
        devices=devices,
        minutes=1,
    )
    metrics = training.fit(config.changed(passes=1), tmp_path / "run")
    stored = load_run_config(tmp_path / "run" / "config.yaml")
    (phase,) = stored.stages[0].phases
    assert phase.epochs == epochs_of(tmp_path / "run")
    assert stored.evaluation.every is not None
    assert 0 < metrics["after"]["map@r"] <= 1


@pytest.mark.slow
def test_given_epochs_are_validated_four_to_eight_times(source, tmp_path):
    config = settings(source, "sampling.steps_per_epoch=1", epochs=9)
    training.fit(config, tmp_path / "run")
    assert epochs_of(tmp_path / "run") == 9
    stored = load_run_config(tmp_path / "run" / "config.yaml")
    assert stored.evaluation.every == 3


@pytest.fixture(name="faint", scope="module")
def photos_in_all_lights(source):
    """Photos of faint colors, which the light hides from the features."""
    rng = np.random.default_rng(0)
    folder = source / "faint"
    for label in range(48):
        (folder / str(label)).mkdir(parents=True)
        color = rng.normal(size=3) * 12
        for number in range(10):
            light = rng.uniform(-80, 80)
            pixels = 128 + color + light + rng.normal(size=(28, 28, 3)) * 4
            picture = Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))
            picture.save(folder / str(label) / f"{number}.png")
    return folder


def shuffled(data):
    """The same images under labels that mean nothing."""
    rng = np.random.default_rng(0)
    return dataclasses.replace(
        data,
        train=dataclasses.replace(
            data.train, labels=rng.permutation(data.train.labels)
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize("shuffles", [True, False])
def test_shuffled_labels_keep_the_network_and_say_so(
    source, faint, tmp_path, monkeypatch, shuffles
):
    """The same training on true labels is not kept."""
    read = training.load_run_data
    if shuffles:
        monkeypatch.setattr(
            training, "load_run_data", lambda config: shuffled(read(config))
        )
    config = settings(source, epochs=2)
    config = config.changed(data={"source": str(faint)})
    training.fit(config, tmp_path / "run")
    run = TrainedRun(tmp_path / "run")
    chosen = run.metrics["interpolation"]
    assert chosen["kept"] is shuffles
    log = (tmp_path / "run" / "log.txt").read_text()
    assert ("Training is discarded" in log) is shuffles
    # The features have 128 numbers, and `model.dim` says 8.
    assert run.metrics["dim"] == (128 if shuffles else 8)
    assert run.embedder.output_shape == (None, run.metrics["dim"])
    if shuffles:
        assert chosen["share"] == 0.0
        # Two neighbors of one of the 240 queries may be equally near.
        pretrained = pytest.approx(run.metrics["pretrained"], abs=1.5 / 240)
        assert run.metrics["after"] == pretrained
    (photo, *_) = faint.rglob("*.png")
    rows = ImageEmbedder(tmp_path / "run")(photo)
    assert rows.shape == (1, run.metrics["dim"])


@pytest.mark.slow
def test_a_harmful_training_ends_at_the_start(source, tmp_path):
    """Rates of 100 destroy the weights."""
    rates = [
        f"optimizer.{group}.{key}"
        for group in ("backbone", "head", "proxies")
        for key in ("lr=100", "schedule=constant", "warmup_steps=0")
    ]
    config = settings(source, *rates, epochs=2)
    metrics = training.fit(config, tmp_path / "run")
    values = metrics["interpolation"]["values"]
    assert values["1"] < values["0"]
    assert metrics["interpolation"]["share"] == 0.0
