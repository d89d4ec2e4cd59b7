"""`keras-dml recipes`, `plans`, `datasets` and `backbones`."""

import re
import shlex

import pytest

from keras_dml.backbone_facts import known_backbones
from keras_dml.config import load_recipe, recipe_names
from keras_dml.config.plans import load_plan, plan_names
from keras_dml.config.recipes import GROUPS
from keras_dml.config.settings import parse_settings
from keras_dml.data.facts import known_datasets
from keras_dml.errors import UsageError
from tests.conftest import ROOT

LISTED = {
    "recipes": recipe_names,
    "plans": plan_names,
    "datasets": known_datasets,
    "backbones": known_backbones,
}


@pytest.mark.slow
@pytest.mark.parametrize("command_name", LISTED)
def test_a_list_has_everything_once_in_groups_of_80_columns(
    command, command_name
):
    outcome = command(command_name)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert max(map(len, lines)) <= 80
    names = re.findall(r"^  (\S+)  +\S", outcome.out, re.MULTILINE)
    known = [*LISTED[command_name]()]
    assert sorted(set(names) - {"hub:PRESET"}) == sorted(known)
    assert len(names) == len(set(names))
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert len(titles) >= 4


@pytest.mark.parametrize(
    ("command_name", "name"),
    [
        (command_name, name)
        for command_name, names in LISTED.items()
        for name in names()
    ],
)
def test_one_of_a_list_is_shown_in_80_columns(command, command_name, name):
    outcome = command(command_name, name)
    assert outcome.code == 0, outcome.err
    assert max(map(len, outcome.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("command_name", "name", "close"),
    [("datasets", "omniglott", "omniglot"), ("backbones", "resnet5", "resnet")],
)
def test_a_name_that_is_not_listed_is_refused(
    command, command_name, name, close
):
    outcome = command(command_name, name)
    assert outcome.code == 2
    assert "Did you mean" in outcome.err and close in outcome.err


def test_a_backbone_says_how_to_get_its_weights(command):
    shown = command("backbones", "bn_inception").out
    assert "keras-dml convert-weights FILE" in shown
    # Without them it would be refused.
    assert "--weights bn_inception.weights.h5" in shown
    assert "which Keras downloads" in command("backbones", "mobilenet_v2").out
    assert "from scratch" in command("backbones", "small_cnn").out


def test_a_data_set_says_what_is_trained_and_where_it_is_got(command):
    shown = command("datasets", "cars196").out
    assert "Train: 8,054 images, 98 classes" in shown
    assert "Test: 8,131 images, 98 classes" in shown
    assert "keras-dml prepare cars196 --data-dir DIR" in shown
    assert "prepare" not in command("datasets", "digits").out


@pytest.mark.parametrize(
    ("plan", "needed"),
    [
        ("demo", ""),
        ("grocery", " --source FOLDER"),
        ("omniglot_temperature", " --data-dir FOLDER"),
        (
            "proxy_isa_table3",
            " --data-dir FOLDER --weights FILE.weights.h5",
        ),
    ],
)
def test_the_command_of_a_plan_has_what_it_cannot_do_without(
    command, plan, needed
):
    last = command("plans", plan).out.partition("Run it:\n")[2]
    words = shlex.split(last.replace("\\\n", ""))
    assert words == shlex.split(f"keras-dml compare {plan}{needed}")


def test_a_plan_may_have_a_network_of_keras_hub(command, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: T\nsources: [digits]\nrecipes: [triplet]\n"
        "backbones: ['hub:vit_base_patch16_224_imagenet']\n"
    )
    shown = command("plans", path)
    assert shown.code == 0, shown.err
    assert "keras-dml compare" in shown.out


def test_the_command_of_a_recipe_of_a_file_names_the_file(command, tmp_path):
    path = tmp_path / "my own.yaml"
    path.write_text("base: triplet\n")
    shown = command("recipes", path).out
    assert f"`keras-dml fit FOLDER --recipe '{path}'`" in shown


def test_a_long_setting_of_a_plan_can_be_copied(command):
    """It is cut where YAML allows a new line; its note stands below."""
    lines = command("plans", "reality_check").out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("stages"))
    end = next(n for n in range(start, len(lines)) if "# all arms" in lines[n])
    assert end > start
    copied = "\n".join([*lines[start:end], lines[end].partition("#")[0]])
    assert parse_settings([copied]) == [
        ("stages", load_plan("reality_check").set["stages"])
    ]


def test_a_recipe_says_when_what_it_costs_and_what_it_reached(command):
    outcome = command("recipes", "proxy_anchor")
    found = re.findall(r"^([A-Z][a-z ']+): ", outcome.out, re.MULTILINE)
    assert found[:7] == [
        *("When", "Cost", "Paper", "Reported", "The deck"),
        *("Network for a paper's data", "Measured here"),
    ]
    assert "fit FOLDER --recipe proxy_anchor`" in outcome.out
    assert "MAP@R 0.646 on unseen characters" in outcome.out


@pytest.mark.parametrize("name", ["omniglot_tournament", "grocery_tournament"])
def test_a_tournament_names_the_recipes_that_it_leaves_out(name):
    plan = load_plan(name)
    left_out = {*recipe_names()} - {*plan.recipes}
    assert plan.title.startswith(f"{len(plan.recipes)} recipes on ")
    text = (ROOT / "configs" / "plans" / f"{name}.yaml").read_text()
    comments = re.findall(r"# Not measured yet: ([^.]+)\.", text)
    assert {*re.findall(r"\w+", " ".join(comments))} == left_out, (
        f"A recipe is among `recipes` of {name}.yaml once it was run, and "
        "until then in its comment `# Not measured yet: ... .`"
    )


def test_every_recipe_is_in_a_group_and_says_when_to_take_it():
    for recipe in map(load_recipe, recipe_names()):
        assert recipe.group in GROUPS and recipe.group, recipe.name
        assert recipe.about.endswith(".") and recipe.about.count(". ") == 0
        assert recipe.use.endswith(".") and recipe.cost.endswith(".")


def test_the_numbers_of_recipes_are_those_of_the_results():
    page = (ROOT / "docs" / "lab" / "papers.md").read_text()
    _, _, section = page.partition("## All recipes under one protocol")
    section, _, _ = section.partition("### What the sources claim")
    number = r"\| \**([0-9.]+)(?: ± [0-9.]+)?\** "
    rows = re.findall(rf"`(\w+)` {number}{number}", section)
    measured = {
        name: {"recall@1": float(recall), "map@r": float(mean)}
        for name, recall, mean in rows
    }
    recipes = map(load_recipe, recipe_names())
    shown = {one.name: dict(one.measured) for one in recipes if one.measured}
    assert measured == shown and measured


def test_a_recipe_does_not_inherit_results(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("base: hbn\n")
    recipe = load_recipe(path)
    assert recipe.group == "heated" and not recipe.measured
    path.write_text("base: hbn\ngroup: heatd\n")
    with pytest.raises(UsageError, match="`group` must be one of .*heated"):
        load_recipe(path)
