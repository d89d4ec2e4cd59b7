"""Searches over stand-ins for trainings: real processes, files and signals."""

import csv
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import yaml

from keras_dml.config.tuning_section import TuningConfig
from keras_dml.errors import PreemptedError, RunError, UsageError
from keras_dml.files import is_locked
from keras_dml.tuning import figures
from keras_dml.tuning.study import TuningStudy
from tests.tuning.command import (
    GRID,
    TPE,
    make_config,
    peak,
    search,
    starter,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def changes(result):
    return [trial.parameters for trial in result.trials]


def states(result):
    return [trial.state for trial in result.trials]


def notes(folder, name):
    """What the stand-ins noted, by run: their starts or their epochs."""
    return {
        file.parent.name: file.read_text().split("\n")[:-1]
        for file in (folder / "runs").glob(f"*/{name}.txt")
    }


def command(folder, section, **options):
    """The same search in a process of its own."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.tuning.command"),
            *(folder, json.dumps(section), json.dumps(options)),
        ],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )


def wait_for(condition, seconds=240.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    """Pictures take a second each time; `tpe` has some."""
    monkeypatch.setattr(figures, "draw_tuning", lambda *_: [])


@pytest.fixture(scope="module")
def tpe(tmp_path_factory):
    """An undisturbed search: its folder and its result."""
    folder = tmp_path_factory.mktemp("tpe") / "search"
    return folder, search(folder, TPE)


def test_a_grid_is_exactly_the_product(tmp_path):
    result = search(tmp_path / "s", GRID, processes=3)
    assert changes(result) == [
        {"model.scale": scale, "model.dim": dim}
        for scale in (4.0, 8.0, 16.0)
        for dim in (64, 128)
    ]
    assert states(result) == ["complete"] * 6
    assert [trial.number for trial in result.trials] == list(range(6))


def test_a_part_of_a_grid_is_drawn_without_repetition(tmp_path):
    result = search(tmp_path / "s", {**GRID, "trials": 4})
    points = {tuple(point.values()) for point in changes(result)}
    assert len(points) == 4


def test_the_best_epoch_decides_and_the_files_say_so(tpe):
    folder, result = tpe
    best = max(result.trials, key=lambda trial: trial.value)
    assert result.best == best
    config = make_config(best.parameters, best.number)
    assert best.value == pytest.approx(peak(config) * (1 - 0.5**2))
    with open(folder / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["model.dim"]) for row in rows] == [
        point["model.dim"] for point in changes(result)
    ]
    assert {row["state"] for row in rows} == {"complete"}
    assert all(float(row["seconds"]) == 1.0 for row in rows)
    read = yaml.safe_load((folder / "best.yaml").read_text())
    assert read == best.parameters
    assert sum(result.importances.values()) == pytest.approx(1.0)
    for name in ("history", "slices", "importances"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 10_000


def test_the_same_seed_draws_the_same_trials(tpe, tmp_path):
    again = search(tmp_path / "again", TPE)
    other = search(tmp_path / "other", {**TPE, "seed": 4})
    assert changes(again) == changes(tpe[1])
    assert changes(other)[0] != changes(tpe[1])[0]


def test_a_finished_search_starts_nothing(tpe):
    folder, result = tpe
    before = notes(folder, "starts")
    assert search(folder, TPE).trials == result.trials
    assert notes(folder, "starts") == before


def test_without_the_run_folders_the_best_trial_stays(tmp_path):
    """The study has the values; the runs of the plan have the settings."""
    folder = tmp_path / "s"
    best = starter(peak=lambda config: config.model.scale / 20)
    section = {"kind": "grid", "space": {"model.scale": [4.0, 8.0, 16.0]}}
    first = search(folder, section, start=best)
    assert first.best.parameters == {"model.scale": 16.0}
    read = (folder / "best.yaml").read_text()
    shutil.rmtree(folder / "runs")
    again = search(folder, section)
    assert again.best.parameters == first.best.parameters
    values = [trial.value for trial in first.trials]
    assert [trial.value for trial in again.trials] == values
    assert (folder / "best.yaml").read_text() == read


def test_more_trials_go_on(tmp_path):
    search(tmp_path / "s", {**TPE, "trials": 3})
    longer = search(tmp_path / "s", TPE)
    assert len(longer.trials) == 6
    starts = notes(tmp_path / "s", "starts")
    assert [len(lines) for lines in starts.values()] == [1] * 6


def test_killed_it_repeats_nothing_and_draws_the_same(tpe, tmp_path):
    folder = tmp_path / "s"
    killed = command(folder, TPE, pause=0.3)
    # In the middle of the third training, which outlives the search.
    wait_for(lambda: len(notes(folder, "epochs")) == 3)
    killed.kill()
    killed.wait()
    result = search(folder, TPE)
    assert changes(result) == changes(tpe[1])
    epochs = notes(folder, "epochs")
    assert len(epochs) == 6
    assert all(lines == ["0", "1"] for lines in epochs.values())


def test_two_processes_never_train_the_same(tmp_path):
    folder = tmp_path / "s"
    section = {**GRID, "space": {**GRID["space"], "model.dim": [32, 64, 128]}}
    other = command(folder, section, pause=0.1)
    wait_for((folder / "tuning.yaml").exists)
    result = search(folder, section, start=starter(pause=0.1))
    assert other.wait(240) == 0
    assert states(result) == ["complete"] * 9
    starts = notes(folder, "starts")
    assert [len(lines) for lines in starts.values()] == [1] * 9
    # Both had their share.
    with sqlite3.connect(folder / "study.sqlite3") as record:
        workers = record.execute(
            "SELECT DISTINCT value_json FROM trial_user_attributes "
            "WHERE key = 'worker'"
        ).fetchall()
    record.close()
    assert len(workers) == 2


def test_processes_that_end_together_write_one_after_the_other(
    tmp_path, monkeypatch
):
    """They write the same files, under the same temporary names."""
    draw, free = figures.draw_tuning, []

    def draw_noting(result, section, folder):
        free.append(not is_locked(tmp_path / "s" / "workers" / "all.lock"))
        draw(result, section, folder)

    monkeypatch.setattr(figures, "draw_tuning", draw_noting)
    search(tmp_path / "s", {**GRID, "trials": 1})
    assert free == [False]


def test_a_stopped_search_saves_its_training_and_goes_on(tmp_path):
    folder = tmp_path / "s"
    section = {**GRID, "trials": 1}

    def terminate():
        wait_for(lambda: notes(folder, "epochs"))
        os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=terminate)
    killer.start()
    with pytest.raises(PreemptedError, match="Run the same command again"):
        search(folder, section, start=starter(3, pause=0.3))
    killer.join()
    result = search(folder, section, start=starter(3))
    assert states(result) == ["complete"]
    (epochs,) = notes(folder, "epochs").values()
    assert epochs == ["0", "1", "2"]


def test_a_training_stopped_from_outside_goes_on(tmp_path):
    folder = tmp_path / "s"
    processes = []

    def start_run(*arguments):
        processes.append(starter(3, pause=0.2)(*arguments))
        return processes[-1]

    def terminate():
        wait_for(lambda: notes(folder, "epochs"))
        processes[0].terminate()

    killer = threading.Thread(target=terminate)
    killer.start()
    result = search(folder, {**GRID, "trials": 1}, start=start_run)
    killer.join()
    assert states(result) == ["complete"]
    assert len(processes) == 2
    (epochs,) = notes(folder, "epochs").values()
    assert epochs == ["0", "1", "2"]


@pytest.mark.parametrize("stubborn", [False, True])
def test_pruning_stops_a_hopeless_training(tmp_path, stubborn):
    """Also one that does not listen to SIGTERM."""
    folder = tmp_path / "s"
    section = {
        "kind": "grid",
        "space": {"model.scale": [16.0, 8.0, 4.0]},
        "prune": {"trials": 2, "epochs": 1},
    }

    def start_run(config, *arguments):
        hopeless = config.model.scale == 4.0
        start = starter(
            epochs=40 if hopeless else 3,
            pause=0.1 if hopeless else 0.0,
            peak=lambda config: config.model.scale / 20,
            stubborn=stubborn and hopeless,
        )
        return start(config, *arguments)

    result = search(folder, section, start=start_run, grace=0.3)
    assert states(result) == ["complete", "complete", "pruned"]
    pruned = result.trials[2]
    assert 2 <= pruned.epochs < 20
    assert pruned.value == pytest.approx(0.2 * (1 - 0.5**pruned.epochs))
    assert len(notes(folder, "epochs")[pruned.run]) == pruned.epochs
    assert result.best.parameters == {"model.scale": 16.0}
    # A stopped training stays stopped.
    assert search(folder, section).trials == result.trials


def test_a_failed_training_is_reported_and_tried_again(tmp_path):
    folder = tmp_path / "s"

    def fails(config):
        return 1 if config.model.scale == 8.0 else 0

    told = []
    result = search(
        folder,
        GRID,
        start=starter(code=fails),
        progress=lambda trial, trials: told.append((trial.state, trials)),
    )
    assert states(result).count("failed") == 2
    failed = result.trials[2]
    assert failed.reason == "the loss is not finite."
    assert told[2] == ("failed", 6)
    # Whatever it was is gone.
    again = search(folder, GRID)
    assert states(again) == ["complete"] * 6
    assert changes(again) == changes(result)
    assert [len(x) for x in notes(folder, "starts").values()].count(2) == 2


def test_a_process_may_join_while_a_trial_fails(tmp_path, monkeypatch):
    """It enqueues what failed again, and the first attempt no longer counts."""
    section = {**GRID, "trials": 2}

    def tell(study, trial, state, *outcome, **notes):
        ended = as_before(study, trial, state, *outcome, **notes)
        if state == "FAIL":
            joined = TuningConfig.model_validate(section)
            TuningStudy(tmp_path / "s", joined).close()
        return ended

    as_before = TuningStudy.tell
    monkeypatch.setattr(TuningStudy, "tell", tell)
    told = []
    codes = iter([1, 0, 0])
    failing = starter(code=lambda config: next(codes))
    result = search(
        tmp_path / "s",
        section,
        start=failing,
        progress=lambda trial, trials: told.append((trial.number, trial.state)),
    )
    assert told == [(0, "failed"), (1, "complete"), (0, "complete")]
    assert states(result) == ["complete"] * 2


def test_what_has_failed_may_be_left_so(tmp_path):
    """The runs of a plan already have the settings that were found."""

    def fails(config):
        return int(config.model.scale == 8)

    failing = starter(code=fails)
    first = search(tmp_path / "s", GRID, start=failing)
    again = search(tmp_path / "s", GRID, retry=False)
    assert again.trials == first.trials
    assert states(again).count("failed") == 2


def test_all_failed(tmp_path):
    failing = starter(code=lambda config: 1)
    with pytest.raises(RunError, match="All 2 .* loss is not finite"):
        search(tmp_path / "s", {**GRID, "trials": 2}, start=failing)


def test_a_killed_training_is_named(tmp_path):
    def start_run(*arguments):
        process = starter(pause=5.0)(*arguments)
        process.kill()
        return process

    with pytest.raises(RunError, match="killed by SIGKILL"):
        search(tmp_path / "s", {**GRID, "trials": 1}, start=start_run)


def test_a_full_disk_stops_the_search_which_goes_on_later(tmp_path):
    folder = tmp_path / "s"
    full = starter(code=lambda config: 74 * (config.model.dim == 128))
    with pytest.raises(RunError, match="disk is full"):
        search(folder, GRID, start=full)
    result = search(folder, GRID)
    assert states(result) == ["complete"] * 6
    assert len(notes(folder, "epochs")) == 6


def test_settings_that_do_not_go_together_fail_alone(tmp_path):
    def picky(changes, number):
        if changes == {"model.scale": 16.0, "model.dim": 128}:
            raise UsageError("These two exclude each other.")
        return make_config(changes, number)

    from keras_dml.config.tuning_section import TuningConfig
    from keras_dml.tuning.loop import tune

    result = tune(
        TuningConfig.model_validate(GRID),
        picky,
        tmp_path / "s",
        start=starter(),
        poll=0.02,
    )
    assert states(result) == ["complete"] * 5 + ["failed"]
    assert result.trials[5].reason == "These two exclude each other."


def test_a_small_space_ends_when_all_is_tried(tmp_path):
    section = {
        "kind": "tpe",
        "trials": 20,
        "space": {"model.scale": [4.0, 8.0], "model.dim": [64, 128]},
    }
    result = search(tmp_path / "s", section, start=starter(1))
    points = {tuple(point.values()) for point in changes(result)}
    assert len(result.trials) == len(points) == 4


def test_values_that_are_no_scalars(tmp_path):
    section = {
        "kind": "tpe",
        "trials": 3,
        "space": {"augmentation.scale": [[0.8, 1.2], [1.0, 1.0], [0.9, 1.0]]},
    }
    result = search(tmp_path / "s", section, start=starter(1))
    assert sorted(x["augmentation.scale"] for x in changes(result)) == [
        [0.8, 1.2],
        [0.9, 1.0],
        [1.0, 1.0],
    ]
    read = yaml.safe_load((tmp_path / "s" / "best.yaml").read_text())
    assert read == result.best.parameters


def test_an_unknown_key_fails_before_the_first_trial(tmp_path):
    section = {
        "space": {"model.scal": [4.0], "model.dmi": [64], "model.k": [0]}
    }
    with pytest.raises(UsageError) as error:
        search(tmp_path / "s", section)
    message = str(error.value)
    assert "`model.scal`. Nearest: 'scale'" in message
    assert "`model.dmi`. Nearest: 'dim'" in message
    assert "`model.k`" in message
    assert not (tmp_path / "s").exists()


def test_both_ends_of_a_range_are_checked(tmp_path):
    section = {"space": {"data.validation_fraction": {"low": 0.1, "high": 2}}}
    with pytest.raises(UsageError, match="less than 1. Received: 2"):
        search(tmp_path / "s", section)


@pytest.mark.parametrize(
    "space, message",
    [
        ({"data.validation": ["test"]}, "`data.validation` is 'test'"),
        ({"data.validation": ["none"]}, "`data.validation: classes`"),
        ({"stages.0.classes": ["all"]}, "`stages.0.classes: fit`"),
    ],
)
def test_a_run_without_validation_classes_is_refused(tmp_path, space, message):
    with pytest.raises(UsageError, match=message):
        search(tmp_path / "s", {"space": space})
    assert not (tmp_path / "s").exists()


def test_a_training_without_validation_values_ends_the_search(tmp_path):
    other = starter(column="val_recall@1")
    with pytest.raises(UsageError, match="no validation values `val_map@r`"):
        search(tmp_path / "s", GRID, start=other)
    assert len(notes(tmp_path / "s", "starts")) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 9},
        {"monitor": "recall@1"},
        {"space": {"model.dim": [64, 128]}},
        {"prune": True},
    ],
)
def test_another_search_in_the_folder_is_refused(tpe, change):
    with pytest.raises(UsageError, match="was started with other settings"):
        search(tpe[0], {**TPE, **change})


def test_another_configuration_in_the_folder_is_refused(tpe, monkeypatch):
    monkeypatch.setattr(
        "tests.tuning.command.make_config",
        lambda changes, number: make_config(
            {**changes, "model.scale": 7.0}, number
        ),
    )
    with pytest.raises(UsageError, match="`run.model.scale` was"):
        search(tpe[0], TPE)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UsageError, match="not the folder of a tuning"):
        search(tmp_path, GRID)
    with pytest.raises(UsageError, match="not the folder of a tuning"):
        search(tmp_path / "thesis.txt", GRID)
    assert [item.name for item in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_damaged_record_is_named(tmp_path):
    folder = tmp_path / "s"
    search(folder, {**GRID, "trials": 1})
    (folder / "study.sqlite3").write_bytes(b"no database" * 1000)
    with pytest.raises(RunError, match="record of the tuning could not be"):
        search(folder, {**GRID, "trials": 1})


def test_odd_folder_names(tmp_path):
    folder = tmp_path / "ä b#c?d%e{f}"
    assert states(search(folder, {**GRID, "trials": 1})) == ["complete"]
    assert (folder / "study.sqlite3").stat().st_size > 0


def test_without_optuna(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"keras-dml\[tuning\]"):
        search(tmp_path / "s", GRID)


def test_processes_must_be_positive(tmp_path):
    with pytest.raises(UsageError, match="`processes` must be a positive"):
        search(tmp_path / "s", GRID, processes=0)


def test_says_nothing_but_its_own_lines(tmp_path, caplog, capfd):
    caplog.set_level("INFO")
    search(tmp_path / "s", GRID)
    assert {record.name for record in caplog.records} <= {"keras_dml"}
    assert len(caplog.records) == 6
    assert "Trial 1 of 6: model.scale=4.0, model.dim=64" in caplog.text
    printed = capfd.readouterr()
    assert printed.out == printed.err == ""
