import json
import re

import pytest

from keras_dml.config import dump_run_config, load_run_config, resolve
from keras_dml.run.compiling import fine_tuning_rate
from tests.images import image_folder


def settings(outcome):
    """Each printed setting with its origin; every line fits a terminal."""
    found = {}
    for line in outcome.out.splitlines():
        if "# " in line:
            assignment, _, origin = line.partition("# ")
            found[assignment.strip()] = origin
        assert len(line) <= 80
    return found


def test_a_recipe_alone(command):
    outcome = command("config", "--recipe", "proxy_anchor", "--weights", "none")
    assert outcome.code == 0
    found = settings(outcome)
    assert found["loss.proxy_anchor.margin=0.1"] == "proxy_anchor: common"
    assert found["optimizer.backbone.lr=0.003"] == "proxy_anchor: default"
    assert found["optimizer.head.lr=0.003"] == "optimizer.backbone"
    assert found['model.backbone="mobilenet_v2"'] == "data set default"
    assert found['model.weights="none"'] == "flag"
    assert found["seed=0"] == "built in"
    assert "steps per epoch" not in outcome.out


@pytest.mark.parametrize(
    ("recipe", "setting"),
    [
        ("norm_softmax", "loss.norm_softmax.group_weight=0.5"),
        ("hierarchical_triplet", "loss.hierarchical_triplet.weight=2.0"),
    ],
)
def test_what_needs_the_groups_of_data_is_shown_without(
    command, recipe, setting
):
    outcome = command("config", "--recipe", recipe, "--set", setting)
    assert outcome.code == 0, outcome.err
    assert settings(outcome)[setting] == "override"


def test_a_long_origin_fits_too(command):
    outcome = command("config", "--recipe", "proxy_isa:exceptional_settings")
    found = settings(outcome)
    assert "proxy_isa: presets.exceptional_settings" in found.values()


def test_every_setting_of_fit_is_an_option(command):
    outcome = command("config", "--seed", "3", "--strategy", "none")
    found = settings(outcome)
    assert found["seed=3"] == found['strategy="none"'] == "flag"


def test_what_follows_from_the_data(command):
    outcome = command(
        "config", "digits", "--set", "stages.main.train.epochs=7", "--json"
    )
    found = json.loads(outcome.out)
    settled = found["settings"]["data.image_size"]
    assert settled == {"value": 8, "origin": "data"}
    epochs = found["settings"]["stages.main.train.epochs"]
    assert epochs == {"value": 7, "origin": "override"}
    assert found["seen"]
    assert (found["test_classes"], found["test_images"]) == (10, 896)
    assert found["stages"] == [
        {
            "stage": "main",
            "train_classes": 10,
            "train_images": 901,
            "validation_classes": 0,
            "validation_images": 0,
            "epochs": 7,
            "steps_per_epoch": 100,
            "rates": None,
        }
    ]
    outcome = command("config", "digits")
    assert "901 images, 10 classes" in outcome.out
    assert "Measured on 896 images of 10 classes seen" in outcome.out


def test_differences_of_recipes_and_runs(command, tmp_path):
    config = resolve("bn", "digits", overrides=["model.dim=32"])
    (tmp_path / "config.yaml").write_text(dump_run_config(config))
    outcome = command("config", "digits", "--diff", "bn", tmp_path, "--json")
    assert json.loads(outcome.out) == {"model.dim": [256, 32]}
    outcome = command("config", "digits", "--diff", "ln", "bn")
    assert 'model.normalization: "l2" -> "batch_norm"' in outcome.out
    assert "model.dim" not in outcome.out
    same = tmp_path / "config.yaml"
    assert load_run_config(same) == config
    outcome = command("config", "--diff", same, tmp_path)
    assert outcome.out == "They do not differ.\n"
    outcome = command("config", "--diff", same, "bn", "--set", "model.dim=8")
    assert outcome.code == 2
    assert "is a run, whose settings stay" in " ".join(outcome.err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "triplt"], "`--recipe` .*'triplt'. Nearest: 'triplet'"),
        (["--set", "model.dmi=3"], "`model.dmi`. Nearest: 'dim'"),
        (["--set", "loss.x.margin=3"], "Received: 'x'"),
        (["--set", "dim"], "must be `key=value`"),
        (["--loss", "tripplet"], "Did you mean 'triplet'"),
        (
            ["--recipe", "norm_softmax", "--set", "loss.0.scale=3"],
            "has no argument 'scale'",
        ),
        (["--diff", "bn", "."], "without `config.yaml`"),
        (["--diff", "bn", "ln", "--recipe", "bn"], "Leave `--recipe` out"),
        (["no_such_folder"], "no_such_folder"),
    ],
)
def test_mistakes(command, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = command("config", *arguments)
    assert outcome.code == 2
    assert re.search(message, outcome.err)
    assert "Traceback" not in outcome.err


def test_one_recipe(command):
    outcome = command("recipes", "hbn")
    assert "Heated-up `bn`" in outcome.out
    assert "keras-dml fit FOLDER --recipe hbn`" in outcome.out
    outcome = command("recipes", "proxy_anchor")
    found = settings(outcome)
    assert found["loss.proxy_anchor.scale=32.0"] in (
        "common",
        "presets.deck",
    )
    assert found["optimizer.proxies.lr=0.06"] == "sources.inshop"
    assert "Presets: authors, deck, code" in outcome.out
    assert command("recipes", "proxy_ancor").code == 2


def test_one_plan(command):
    outcome = command("plans", "omniglot_heating")
    assert outcome.code == 0
    assert "Runs: 30" in outcome.out
    assert "Protocol: fixed validation: " in outcome.out
    assert "model.scale=32.0" in outcome.out
    assert all(len(line) <= 80 for line in outcome.out.splitlines())
    assert command("plans", "omniglot_heatin").code == 2


def test_an_open_length_is_settled_from_minutes_or_shown(command, tmp_path):
    # Of three images of a class none validates.
    photos = image_folder(tmp_path / "photos", classes=8, images=3)
    pretrained = ("--backbone", "resnet50", "--weights", "none.weights.h5")
    outcome = command("config", photos, *pretrained)
    table = outcome.out[outcome.out.index("What follows") :]
    assert "`minutes`" in table
    assert "None" not in table
    without = ("--set", "minutes=null", "--set", "sampling.steps_per_epoch=2")
    outcome = command("config", photos, *pretrained, *without, "--json")
    (stage,) = json.loads(outcome.out)["stages"]
    # A batch of 64 holds all 12 images: 40 passes are 40 batches.
    assert stage["epochs"] == 20
    assert stage["rates"] == [fine_tuning_rate(40)]
    shown = command("config", photos, *pretrained, *without).out
    assert f"in main: {stage['rates'][0]:.2g}." in shown
