"""A run from start to end: its files, its seeds, its interruptions."""

import csv
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import keras
import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data.manifest import Manifest
from keras_dml.errors import RunError, UsageError
from keras_dml.export import exporter
from keras_dml.run import fit as train
from keras_dml.run import phases
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.data import RunData
from keras_dml.run.stage_checks import check_stages, warn_about_section
from tests.conftest import ROOT
from tests.run.stopping import assert_same_weights, last_checkpoint

pytestmark = pytest.mark.slow  # trainings

CONSTANT_RATES = [
    f"optimizer.{group}.{key}"
    for group in ("backbone", "head", "proxies")
    for key in ("schedule=constant", "warmup_steps=0", "lr=1e-3")
]


def settings(*overrides, recipe="hbn", source="digits", **flags):
    """A run of a few seconds that heats up on the way."""
    return resolve(
        recipe,
        source,
        flags={"model": {"backbone": "small_cnn", "dim": 16}, **flags},
        overrides=[
            "stages=[{phases: [{epochs: 4, heat: "
            "{epoch: 2, scale: 4.0, lr_factor: 0.1}}]}]",
            *CONSTANT_RATES,
            "sampling.steps_per_epoch=12",
            *overrides,
        ],
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return folder, train.fit(settings(), folder, export=exporter())


def test_run_folder_holds_what_the_contract_names(finished):
    folder, _ = finished
    names = {entry.name for entry in folder.iterdir()}
    assert names == {
        "checkpoints",
        "config.yaml",
        "embeddings",
        "embedder.keras",
        "export",
        "history.csv",
        "log.txt",
        "metrics.json",
        "per_query.npz",
        *(["tensorboard"] if find_spec("tensorboard") else []),
    }
    assert {entry.name for entry in (folder / "export").iterdir()} >= {
        "litert",
        "saved_model",
    }


def test_metrics_file_is_what_fit_returns(finished):
    folder, metrics = finished
    assert json.loads((folder / "metrics.json").read_text()) == metrics
    assert metrics["seen"] is True
    assert metrics["oracle"] is False
    for part in ("pretrained", "before", "after"):
        assert all(0 <= value <= 1 for value in metrics[part].values())


def test_training_helps(finished):
    _, metrics = finished
    assert metrics["after"]["map@r"] > metrics["before"]["map@r"] + 0.2


def test_history_has_a_row_per_epoch_and_shows_the_heating(finished):
    folder, _ = finished
    with open(folder / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1", "2", "3"]
    assert {row["stage"] for row in rows} == {"main"}
    temperatures = [float(row["temperature"]) for row in rows]
    np.testing.assert_allclose(temperatures, [1 / 16, 1 / 16, 1 / 4, 1 / 4])
    rates = [float(row["learning_rate_proxies"]) for row in rows]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 1e-4, 1e-4])


def test_log_tells_the_expected_time_before_the_first_epoch(finished):
    folder, _ = finished
    log = (folder / "log.txt").read_text()
    reading, plan, time_line, epoch = (
        log.index(text)
        for text in ("Reading the", "INFO Plan ", "INFO Time ", "epoch 1/4")
    )
    assert reading < plan < time_line < epoch
    assert log.count("of training, by the pace of the first steps") == 1


def test_saved_embedder_gives_unit_rows(finished):
    folder, _ = finished
    embedder = keras.saving.load_model(folder / "embedder.keras")
    rows = embedder.predict(np.zeros((2, *embedder.input_shape[1:])), verbose=0)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


def test_same_seed_gives_the_same_metrics(finished, tmp_path):
    _, first = finished
    second = train.fit(settings(), tmp_path / "run")
    for part in ("pretrained", "before", "after"):
        assert second[part] == first[part]


def test_a_network_in_chunks_learns_the_same(tmp_path):
    losses = []
    for part in ("null", "50"):
        config = settings(
            "model.batch_norm=frozen", f"sampling.embed_batch={part}"
        )
        train.fit(config, tmp_path / part)
        with open(tmp_path / part / "history.csv", newline="") as file:
            losses.append([float(row["loss"]) for row in csv.DictReader(file)])
    assert losses[0][-1] < losses[0][0]
    # Rounding grows from step to step.
    whole, chunks = losses
    assert chunks[0] == pytest.approx(whole[0], rel=1e-3)
    np.testing.assert_allclose(chunks, whole, rtol=0.05)


def test_another_seed_gives_another_model(finished, tmp_path):
    _, first = finished
    second = train.fit(settings("seed=1"), tmp_path / "run")
    assert second["before"] != first["before"]


def start(folder):
    """The same run in its own process, to be killed."""
    script = (
        "import sys\n"
        "from tests.run.test_fit import settings\n"
        "from keras_dml.run import fit as train\n"
        "train.fit(settings(), sys.argv[1], resume=True)\n"
    )
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.Popen(command, cwd=ROOT)


def test_killed_and_resumed_ends_with_the_same_weights(finished, tmp_path):
    """SIGKILL in the first epochs, in a later one, then on to the end."""
    whole, metrics = finished
    folder = tmp_path / "run"
    last = folder / "checkpoints" / "last.npz"
    for kill_after in (1, 3):
        process = start(folder)
        while process.poll() is None:
            if last.is_file():
                epoch = load_checkpoint(last).state["epoch"]
                if epoch >= kill_after:
                    break
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (folder / "metrics.json").exists()
    resumed = train.fit(settings(), folder, resume=True)
    for part in ("pretrained", "before", "after"):
        assert resumed[part] == metrics[part]
    assert_same_weights(last_checkpoint(folder), last_checkpoint(whole))


def test_two_stages_replay_the_search(tmp_path):
    """ProxyNCA++'s protocol: find the schedule, then train on all classes."""
    config = resolve(
        "proxynca_pp",
        "digits",
        overrides=[
            "stages=[{name: search, classes: first_half, phases: ["
            "{name: warm_up, epochs: 1, freeze: weights}, "
            "{name: train, epochs: 3, plateau: {patience: 1}}]}, "
            "{name: final, classes: all, replay: search, phases: ["
            "{name: warm_up, epochs: 1, freeze: weights}, "
            "{name: train, epochs: 3}]}]",
            *CONSTANT_RATES,
            "sampling.steps_per_epoch=12",
            "evaluation.every=1",
        ],
    )
    folder = tmp_path / "run"
    train.fit(config, folder)
    with open(folder / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    search = [row for row in rows if row["stage"] == "search"]
    final = [row for row in rows if row["stage"] == "final"]
    state = last_checkpoint(folder).state
    best = state["records"]["search"]["best_epoch"]
    assert all(row["val_recall@1"] for row in search)
    assert [row["phase"] for row in final] == ["warm_up"] + ["train"] * (
        best + 1
    )


def test_diverging_training_stops_and_keeps_the_last_checkpoint(tmp_path):
    """The rates rise without bound after the first epoch."""
    folder = tmp_path / "run"
    config = settings(
        "stages=[{phases: [{epochs: 3, heat: "
        "{epoch: 1, scale: 4.0, lr_factor: 1e+30}}]}]"
    )
    with pytest.raises(RunError, match="in epoch 2 at step"):
        train.fit(config, folder)
    last = last_checkpoint(folder)
    assert last.state["epoch"] == 1
    assert all(np.isfinite(value).all() for value in last.values["model"])
    assert not (folder / "metrics.json").exists()


def test_a_full_disk_keeps_what_was_written(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    written = []

    def fails_at_the_third(*args, **kwargs):
        written.append(args)
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(args[0]))
        return real(*args, **kwargs)

    real = np.savez
    monkeypatch.setattr(np, "savez", fails_at_the_third)
    with pytest.raises(OSError, match="No space left"):
        train.fit(settings(), folder)
    monkeypatch.undo()
    last = last_checkpoint(folder)
    assert last.state["epoch"] == 2
    train.fit(settings(), folder, resume=True)
    assert (folder / "metrics.json").exists()


@pytest.mark.parametrize("recipe", ["proxynca_pp", "proxy_anchor"])
@pytest.mark.parametrize("network", ["mobilenet_v2", "resnet50"])
def test_paper_settings_with_another_backbone_are_warned_about(
    recipe, network, caplog
):
    """Keras' `resnet50` is another network than torchvision's of the papers."""
    right, other = (
        resolve(recipe, "cub200", flags={"model": {"backbone": backbone}})
        for backbone in ("resnet50_v1_5", network)
    )
    with caplog.at_level(logging.WARNING, "keras_dml"):
        warn_about_section(right)
        assert not caplog.messages
        warn_about_section(other)
    assert f"found with resnet50_v1_5; you train {network}" in caplog.text


def test_the_test_images_train_only_after_a_measured_run(tmp_path):
    """`RUN/final` trained again reported a gain on what it had trained on."""
    config = settings("data.all_classes=true", "data.validation=none")
    with pytest.raises(UsageError, match="`data.all_classes`.*Set `final` to"):
        train.fit(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_phase_that_follows_validation_needs_it(tmp_path):
    config = settings("stages=[{phases: [{plateau: {patience: 1}}]}]")
    with pytest.raises(UsageError, match="no validation classes"):
        train.fit(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_training_that_stalls_ends_with_rates_of_zero(tmp_path):
    """Rates of nothing improve nothing: epoch 2 stalls, and two follow."""
    config = settings(
        "stages=[{phases: [{epochs: 9, stop_patience: 1, stop_tail: 2}]}]",
        *(
            f"optimizer.{group}.lr=1e-12"
            for group in ("backbone", "head", "proxies")
        ),
        *("evaluation.every=1", "model.batch_norm=frozen"),
        *("sampling.batch_size=16", "sampling.steps_per_epoch=2"),
        source="glyphs",
    )
    config = config.changed(data={"max_classes": 12, "validation_from": 4})
    train.fit(config, tmp_path / "run")
    with open(tmp_path / "run" / "history.csv") as file:
        rows = list(csv.DictReader(file))
    rates = [float(row["learning_rate_head"]) for row in rows]
    assert rates[:2] == [rates[0]] * 2
    assert rates[2:] == [pytest.approx(rates[0] / 2), 0.0]


def test_a_tail_needs_a_stop():
    with pytest.raises(UsageError, match="`stop_tail` needs `stop_patience`"):
        settings("stages=[{phases: [{stop_tail: 2}]}]")


def test_a_plateau_needs_rates_that_can_fall(tmp_path):
    config = settings(
        "stages=[{phases: [{plateau: {patience: 1}}]}]",
        "optimizer.backbone.schedule=cosine",
        source="omniglot",
        data={"data_dir": "nowhere"},
    )
    train_images = Manifest(
        "made up",
        np.arange(80) // 2,
        [str(label) for label in range(40)],
        np.arange(80),
        images=np.zeros((80, 8, 8, 1), np.uint8),
    )
    data = RunData(train_images, train_images, False, False, 0)
    with pytest.raises(UsageError, match="schedule of `optimizer.backbone`"):
        check_stages(config, data)


def test_a_memory_in_a_recipe_and_a_batch_without_positives(tmp_path):
    config = settings(
        "stages=[{phases: [{epochs: 2}]}]",
        "sampling.kind=random",
        "sampling.batch_size=3",
        "loss.0.memory={size: 30, warm_up_steps: 2}",
        recipe="contrastive",
    )
    metrics = train.fit(config, tmp_path / "run")
    log = (tmp_path / "run" / "log.txt").read_text()
    assert log.count("no positive pair") == 1
    last = load_checkpoint(tmp_path / "run" / "checkpoints" / "last.npz")
    filled = last.paths["model"].index("memory/filled")
    assert last.values["model"][filled] == 30
    assert 0 < metrics["after"]["map@r"] < 1


def test_a_replay_names_an_earlier_stage(tmp_path):
    config = settings("stages=[{replay: search, phases: [{epochs: 1}]}]")
    with pytest.raises(UsageError, match="no earlier stage"):
        train.fit(config, tmp_path / "run")


def test_a_kill_before_the_table_of_epochs_was_renamed(finished, tmp_path):
    """The checkpoint has the last epoch already."""
    folder = tmp_path / "run"
    shutil.copytree(finished[0], folder)
    (folder / "metrics.json").unlink()
    whole = (folder / "history.csv").read_text()
    shorter = "".join(whole.splitlines(keepends=True)[:-1])
    (folder / "history.csv").write_text(shorter)
    left = folder / ".history.0a1b2c3d.partial.csv"
    left.write_text(whole)
    os.utime(left, (0, 0))
    train.fit(settings(), folder, resume=True)
    assert (folder / "history.csv").read_text() == whole
    assert not left.exists()


def test_class_means_follow_the_statistics_before_the_first_phase_alone(
    tmp_path, monkeypatch
):
    """Later phases refresh too, but their proxies have trained."""
    done = []
    for name in ("refresh", "renew_class_means"):
        monkeypatch.setattr(
            phases, name, lambda *arguments, name=name: done.append(name)
        )
    config = settings(
        "stages=[{phases: [{name: first, epochs: 1, refresh_bn: 2}, "
        "{name: second, epochs: 1, refresh_bn: 2}]}]",
        "sampling.steps_per_epoch=1",
    )
    train.fit(config, tmp_path)
    assert done == ["refresh", "renew_class_means", "refresh"]
