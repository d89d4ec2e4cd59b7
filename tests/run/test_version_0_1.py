"""A run folder that version 0.1 wrote still opens, and trains again.

Its weights are set to 0.01, so that the file is small.
"""

from pathlib import Path

import yaml

import keras_dml
from keras_dml.config.resolve import again
from keras_dml.run.final import final_config
from keras_dml.run.folder import RunFolder

FOLDER = Path(__file__).parent / "version_0_1"


def test_the_run_opens():
    run = keras_dml.Run(FOLDER)
    (term,) = run.config.loss
    loss = keras_dml.losses.get(term.name, **term.arguments)
    assert type(loss).__name__ == "ArcFace"
    assert run.metrics["recipe"] == "arcface"
    assert len(run.history) == 1
    assert run.embedder.output_shape == (None, 4)
    assert "digits, recipe arcface: 896 queries" in str(run)


def test_its_settings_come_back_in_the_spelling_of_today(tmp_path):
    config = RunFolder(FOLDER).load_config()
    RunFolder(FOLDER).check_config(config)
    again = RunFolder(tmp_path / "again")
    again.create(config)
    assert again.load_config() == config


def test_it_trains_again_with_changes():
    changes = ["model.dim=2", "seed=4"]
    config = again(FOLDER / "config.yaml", overrides=changes)
    assert (config.model.dim, config.seed) == (2, 4)
    stored = yaml.safe_load((FOLDER / "config.yaml").read_text())
    assert config.data.source == stored["data"]["source"]


def test_it_trains_once_more_on_all_classes():
    """Version 0.1 knew no whitening, and no way back to the start."""
    run = keras_dml.Run(FOLDER)
    final = final_config(run.config, run.metrics, run.history)
    assert final.data.all_classes
    assert final.model.whitening == final.evaluation.interpolate == []
    # Half of the images trained for an epoch.
    assert [one.epochs for one in final.stages[0].phases] == [2]
