"""Which plan the arguments of `compare` mean."""

import pytest

from keras_dml.comparison.compare import compare
from keras_dml.comparison.plans import make_plan
from keras_dml.config.plans import dump_plan, load_plan, parse_plan
from keras_dml.errors import UsageError


def test_recipes_on_data():
    plan, name = make_plan("photos", {"recipes": ["ln", "bn"], "seeds": 3})
    assert (plan.sources, plan.recipes, plan.seeds, name) == (
        ["photos"],
        ["ln", "bn"],
        [0, 1, 2],
        "photos-comparison",
    )
    plan, name = make_plan(["a/x", "b/y"], {"recipes": ["ln"], "seeds": [4]})
    assert (plan.sources, plan.seeds) == (["a/x", "b/y"], [4])
    assert name == "x-y-comparison"
    # As `fit` names them: the two versions shared a folder.
    plan, name = make_plan("photos/shoes.v1", {"recipes": "ln,bn"})
    assert (plan.recipes, name) == (["ln", "bn"], "shoes.v1-comparison")


def test_every_option_changes_the_plan():
    plan, _ = make_plan(
        load_plan("demo"),
        {
            "arms": ["triplet"],
            "backbones": ["small_cnn"],
            "dims": (8, 16),
            "weights": "none",
            "protocol": "cross_validation:3",
            "epochs": 2,
            "steps_per_epoch": 5,
            "source": "omniglot",
            "data_dir": "data",
            "set": {"model.scale": 4.0},
            "seeds": None,
        },
    )
    assert [arm.name for arm in plan.arms] == ["triplet"]
    assert (plan.backbones, plan.dims) == (["small_cnn"], [8, 16])
    assert (plan.weights, plan.sources) == ("none", ["omniglot"])
    assert (plan.protocol.kind, plan.protocol.folds) == ("cross_validation", 3)
    assert (plan.budget.epochs, plan.budget.steps_per_epoch) == (2, 5)
    assert plan.data_dir == "data"
    assert plan.set["model.scale"] == 4.0
    assert plan.seeds == load_plan("demo").seeds


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        ("demo", {"arms": ["tripplet"]}, "`arms` .*you mean 'triplet'"),
        (
            "demo",
            {"protocol": "cross_validation:x"},
            "`protocol` must be a kind",
        ),
        (
            "demo",
            {"protocol": "fixed_validation:5"},
            "`protocol` must be a kind, or cross_validation and its folds",
        ),
        ("demo", {"seeds": 0}, "`seeds`"),
        (["a", "b"], {}, "`recipes` must name what"),
        (load_plan("demo"), {"recipes": ["ln"]}, "`plan` is a plan"),
    ],
)
def test_mistakes(plan, options, message):
    with pytest.raises(UsageError, match=message):
        make_plan(plan, options)


def test_arms_keep_what_is_said_of_their_rows():
    finding = {"claim": "C", "better": ["ln, dim 8"], "than": ["bn, dim 8"]}
    table = {"where": "W", "source": "digits"}
    printed = {name: {"map@r": 0.5} for name in ("bn, dim 4", "ln", "triplet")}
    plan = parse_plan(
        {
            "title": "T",
            "sources": ["digits"],
            "recipes": ["ln", "bn", "triplet"],
            "grid": {"model.dim": [4, 8]},
            "findings": [finding],
            "paper_values": [table | {"values": printed}],
        }
    )
    names = ["ln", "bn", "triplet"]
    every = make_plan(plan, {"arms": names})[0]
    assert every.findings == plan.findings
    assert every.paper_values == plan.paper_values
    two = make_plan(plan, {"arms": names[:2]})[0]
    assert two.findings == plan.findings
    assert [*two.paper_values[0].values] == ["bn, dim 4", "ln"]
    one = make_plan(plan, {"arms": names[1:2]})[0]
    assert one.findings == []
    assert [*one.paper_values[0].values] == ["dim 4"]


def test_an_unknown_option():
    with pytest.raises(TypeError, match="`seed` .*Nearest: 'seeds'"):
        compare("demo", seed=3)


def test_a_folder_stands_for_its_plan(tmp_path):
    plan = load_plan("demo")
    (tmp_path / "plan.yaml").write_text(dump_plan(plan))
    assert make_plan(tmp_path) == (plan, str(tmp_path))
    more, _ = make_plan(str(tmp_path), {"recipes": ["ln"], "seeds": 3})
    assert (more.recipes, more.seeds) == (["ln"], [0, 1, 2])
    assert more.budget == plan.budget
    assert make_plan(tmp_path, {"source": "omniglot"})[0].sources == [
        "omniglot"
    ]


@pytest.mark.parametrize("source", ["digits", "photos", "x.csv", "tfds:cars"])
def test_data_without_recipes_say_what_is_missing(
    source, tmp_path, monkeypatch
):
    (tmp_path / "photos").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="`recipes` must name what to comp"):
        make_plan(source)
    with pytest.raises(UsageError, match="Received: none"):
        make_plan([source, "digits"])
