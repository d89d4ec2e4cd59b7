"""How the options of `compare` change a plan."""

from pathlib import Path

import pytest

from keras_dml.comparison.plans import make_plan
from keras_dml.config.plan_sections import ProtocolConfig
from keras_dml.config.plans import dump_plan, load_plan, parse_plan
from keras_dml.errors import UsageError


@pytest.mark.parametrize(
    ("name", "protocol", "changes"),
    [
        ("reality_check", "cross_validation:7", {"folds": 7}),
        ("reality_check", "cross_validation", {}),
        ("omniglot_search", "fixed_validation", {}),
    ],
)
def test_a_protocol_of_the_same_kind_keeps_its_other_keys(
    name, protocol, changes
):
    """Split, fraction and concatenation are not what the option names."""
    before = load_plan(name).protocol
    plan, _ = make_plan(name, {"protocol": protocol})
    assert plan.protocol == before.changed(**changes)
    other, _ = make_plan(name, {"protocol": "oracle"})
    assert other.protocol == ProtocolConfig(kind="oracle")


CHANGED = {
    "title": "T",
    "sources": ["digits", "glyphs"],
    "recipes": ["norm_softmax"],
    "arms": [
        {"name": "plain"},
        {"name": "own", "set": {"model": {"dim": 8}}},
    ],
    "grid": {"model.k": [1, 2]},
    "cases": [
        {"sources": ["glyphs"], "set": {"optimizer.backbone": {"lr": 0.1}}}
    ],
    "tuning": {"space": {"model.scale": [4.0, 8.0]}},
    "set": {"evaluation.every": 2},
}


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("model.k=3", "the `grid`"),
        ("model.dim=4", "the arm `own`"),
        ("optimizer.backbone.lr=0.2", "a case"),
        ("model.scale=3", "the tuning"),
    ],
)
def test_a_setting_that_would_have_no_effect_is_refused(setting, place):
    plan = parse_plan(CHANGED)
    with pytest.raises(UsageError) as caught:
        make_plan(plan, {"set": [setting]})
    assert f"{place} of the plan sets it" in str(caught.value)
    assert f"Received: set={setting.partition('=')[0]}" in str(caught.value)


def test_settings_that_have_an_effect_are_taken():
    plan = parse_plan(CHANGED)
    given = ["evaluation.every=5", "optimizer.proxies.lr=0.2"]
    assert make_plan(plan, {"set": given})[0].set == {
        "evaluation.every": 5,
        "optimizer.proxies.lr": 0.2,
    }
    # What the other options leave out sets nothing.
    given = {"set": ["model.dim=4", "optimizer.backbone.lr=0.2"]}
    few = make_plan(plan, {"arms": ["plain"], "source": "digits", **given})[0]
    assert few.set["model.dim"] == 4


@pytest.mark.parametrize(
    ("option", "changes"),
    [
        ({"dims": [16]}, {"set": {"model.dim": 8}}),
        ({"seeds": 3}, {"set": {"seed": 5}}),
        ({"backbones": ["resnet50"]}, {"grid": {"model.backbone": ["vgg16"]}}),
        (
            {"weights": "none"},
            {"arms": [{"name": "a", "set": {"model": {"weights": "auto"}}}]},
        ),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(option, changes):
    base = {"title": "T", "sources": ["digits"], "recipes": ["ln"]}
    plan = parse_plan(base | changes)
    (name,) = option
    with pytest.raises(UsageError, match=f"`{name}` must name what the plan"):
        make_plan(plan, option)


def test_a_path_that_is_no_text_is_no_traceback():
    plan = parse_plan(CHANGED)
    made, _ = make_plan(plan, {"set": ["model.weights=5"]})
    assert made.set["model.weights"] == 5


def test_an_option_that_holds_for_some_arms_is_taken():
    plan = parse_plan(CHANGED)
    assert make_plan(plan, {"dims": [16]})[0].dims == [16]


def test_paths_are_whole_and_names_stay_names(tmp_path, monkeypatch):
    """The folder of a plan reads the same images from every directory."""
    for name in ("shoes", "files", "cub200"):
        (tmp_path / name).mkdir()
    (tmp_path / "own.weights.h5").touch()
    (tmp_path / "mine.yaml").touch()
    monkeypatch.chdir(tmp_path)
    claim = {"claim": "C", "better": ["ln"], "than": ["bn"]}
    (tmp_path / "plan.yaml").write_text(
        dump_plan(
            parse_plan(
                {
                    "title": "T",
                    "sources": ["shoes", "digits", "cub200", "no/such"],
                    "recipes": ["ln", "bn"],
                    "arms": [
                        {
                            "name": "own",
                            "recipe": "mine.yaml",
                            "set": {"distillation.teacher": "files"},
                        }
                    ],
                    "data_dir": "cub200",
                    "weights": "own.weights.h5",
                    "cases": [
                        {"sources": ["shoes"], "weights": "own.weights.h5"}
                    ],
                    "findings": [{**claim, "sources": ["shoes", "digits"]}],
                    "paper_values": [
                        {"where": "W", "source": "shoes", "values": {}}
                    ],
                }
            )
        )
    )
    shoes = str(tmp_path / "shoes")
    weights = str(tmp_path / "own.weights.h5")
    plan, _ = make_plan("plan.yaml")
    assert plan.sources == [shoes, "digits", "cub200", "no/such"]
    assert (plan.data_dir, plan.weights) == (str(tmp_path / "cub200"), weights)
    (arm,) = plan.arms
    assert arm.recipe == str(tmp_path / "mine.yaml")
    assert arm.set == {"distillation.teacher": str(tmp_path / "files")}
    (case,), (finding,) = plan.cases, plan.findings
    assert (case.sources, case.weights) == ([shoes], weights)
    assert finding.sources == [shoes, "digits"]
    assert plan.paper_values[0].source == shoes
    # The cases and findings of data that are named in another way stay.
    for source in ("./shoes", Path("shoes"), ("shoes", "digits")):
        plan, _ = make_plan("plan.yaml", {"source": source})
        assert (plan.sources[0], plan.cases[0].sources) == (shoes, [shoes])
    given = {"recipes": ["ln"], "weights": "own.weights.h5"}
    assert make_plan("digits", given)[0].weights == weights
    monkeypatch.chdir(shoes)
    plan, name = make_plan(".", {"recipes": ["ln"]})
    assert (plan.sources, plan.title) == ([shoes], "ln on shoes")
    assert name == "shoes-comparison"
