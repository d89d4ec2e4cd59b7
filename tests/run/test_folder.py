import json
from pathlib import Path

import pytest

from keras_dml.config import resolve
from keras_dml.errors import UsageError
from keras_dml.run.agreement import open_run
from keras_dml.run.folder import RunFolder

VERSION_0_1 = Path(__file__).parent / "version_0_1"


@pytest.fixture(scope="module")
def config():
    return resolve("norm_softmax", "digits")


def test_the_configuration_comes_back(tmp_path, config):
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    assert RunFolder.open(tmp_path / "run").load_config() == config


def test_a_run_is_finished_when_it_has_metrics(tmp_path, config):
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    assert not folder.finished
    with pytest.raises(UsageError, match="unfinished run.*resume=True"):
        folder.read_metrics()
    metrics = json.loads((VERSION_0_1 / "metrics.json").read_text())
    folder.write_metrics(metrics)
    assert folder.finished
    assert folder.read_metrics() == metrics


def test_an_existing_run_needs_resume(tmp_path, config):
    folder = RunFolder(tmp_path / "run")
    folder.check_may_write(resume=False)
    folder.create(config)
    folder.last_checkpoint.touch()
    folder.check_may_write(resume=True)
    with pytest.raises(UsageError, match="already holds an unfinished run"):
        folder.check_may_write(resume=False)


def test_a_run_that_trained_nothing_may_begin_again(tmp_path, config):
    """A full disk before the first checkpoint left such a folder."""
    with RunFolder(tmp_path / "run") as folder:
        folder.lock()
        folder.create(config)
    folder.check_may_write(resume=False)
    other = resolve("norm_softmax", "digits", overrides=["model.dim=7"])
    with RunFolder(tmp_path / "run") as folder:
        assert open_run(folder, other, resume=False) is None
        with (
            pytest.raises(UsageError, match="Another process is writing"),
            RunFolder(tmp_path / "run") as second,
        ):
            open_run(second, other, resume=False)
        with pytest.raises(UsageError, match="`model.dim` was"):
            open_run(folder, other, resume=True)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    for resume in (False, True):
        with pytest.raises(UsageError, match="exists and is not a run folder"):
            RunFolder(tmp_path).check_may_write(resume)
    with pytest.raises(UsageError, match="has no `config.yaml`"):
        RunFolder.open(tmp_path)
    with pytest.raises(UsageError, match="There is no run folder"):
        RunFolder.open(tmp_path / "absent")


def test_an_empty_folder_may_be_used(tmp_path):
    RunFolder(tmp_path).check_may_write(resume=False)


def test_resuming_with_other_settings_is_refused(tmp_path, config):
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    folder.check_config(config)
    # A final training may follow, whatever the measured run was to do.
    folder.check_config(config.changed(final="all"))
    other = resolve("norm_softmax", "digits", overrides=["model.dim=7"])
    with pytest.raises(UsageError, match="`model.dim` was .* received 7"):
        folder.check_config(other)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("data", "max_classes", 4),
        ("optimizer", "backbone", {"clip_value": 1.0}),
        ("sampling", "embed_batch", 8),
    ],
)
def test_a_setting_that_is_none_now_is_another_one(
    tmp_path, config, section, key, value
):
    """Runs went on, and were compared, with the value that had been removed."""
    folder = RunFolder(tmp_path / "run")
    folder.create(config.changed(**{section: {key: value}}))
    with pytest.raises(UsageError, match=rf"`{section}\.{key}.* received"):
        folder.check_config(config)


def test_sizes_that_the_data_settled_may_be_resumed(tmp_path, config):
    folder = RunFolder(tmp_path / "run")
    settled = config.model_copy(
        update={"data": config.data.model_copy(update={"image_size": 8})}
    )
    folder.create(settled)
    folder.check_config(config)


def test_history_has_the_columns_of_all_phases(tmp_path, config):
    folder = RunFolder(tmp_path / "run")
    folder.create(config)
    folder.write_history([{"epoch": 0, "loss": 2.0}, {"epoch": 1, "val": 0.5}])
    assert folder.history.read_text().splitlines() == [
        "epoch,loss,val",
        "0,2.0,",
        "1,,0.5",
    ]


def test_a_planned_length_is_not_another_setting(tmp_path):
    """A run for minutes could not be resumed: its epochs had been settled."""
    opened = resolve(
        "norm_softmax",
        "digits",
        flags={"model": {"weights": "own.weights.h5"}},
    )
    (stage,) = opened.stages
    phase = stage.phases[0]
    assert phase.epochs is None
    planned = opened.changed(
        stages=[stage.changed(phases=[phase.changed(epochs=4)])],
        evaluation={"every": 1},
    )
    folder = RunFolder(tmp_path / "run")
    folder.create(planned)
    folder.check_config(opened)
    # Minutes that are too few leave the refit out.
    for refit in (None, False):
        folder.create(planned.changed(refit=refit))
        folder.check_config(opened)
    # Longer epochs fill them, and a single one that is shorter fits into them.
    once = planned.changed(
        stages=[stage.changed(phases=[phase.changed(epochs=1)])]
    )
    for run, steps, fits in (
        (planned, 61, True),
        (planned, 50, True),
        (planned, 49, False),
        (once, 49, True),
    ):
        folder.create(run.changed(sampling={"steps_per_epoch": steps}))
        if fits:
            folder.check_config(opened)
            continue
        with pytest.raises(UsageError, match="`sampling.steps_per_epoch` was"):
            folder.check_config(opened)
    # Where the length is set, so are its steps.
    folder.create(planned.changed(sampling={"steps_per_epoch": 61}))
    with pytest.raises(UsageError, match="`sampling.steps_per_epoch` was"):
        folder.check_config(planned)
    folder.create(planned)
    other = stage.changed(phases=[phase.changed(epochs=5)])
    with pytest.raises(UsageError, match=r"`stages.main.train.epochs` was 4"):
        folder.check_config(planned.changed(stages=[other]))
