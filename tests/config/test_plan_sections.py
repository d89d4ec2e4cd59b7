import pytest

from keras_dml.config.plans import (
    dump_plan,
    load_plan,
    parse_plan,
    plan_names,
)
from keras_dml.config.yaml_files import parse_yaml
from keras_dml.errors import UsageError

SCALES = {"model.scale": [4, 8]}
RATES = {"optimizer.backbone.lr": {"low": 0.001, "high": 0.1, "log": True}}


def test_an_arm_adds_to_what_all_search():
    plan = parse_plan(
        {
            "title": "T",
            "sources": ["digits"],
            "arms": [
                {"name": "a", "recipe": "ln"},
                {"name": "b", "recipe": "bn", "space": RATES},
            ],
            "tuning": {"space": SCALES},
        }
    )
    spaces = [
        list(plan.tuning.with_space(arm.space).space) for arm in plan.arms
    ]
    assert spaces == [["model.scale"], ["model.scale", *RATES]]
    assert parse_plan(parse_yaml(dump_plan(plan))) == plan


def test_a_plan_is_read_back_as_it_was_written():
    for name in plan_names():
        plan = load_plan(name)
        assert parse_plan(parse_yaml(dump_plan(plan))) == plan


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"recipe": ["ln"]}, "Unknown configuration key `recipe`.*'recipes'"),
        ({"recipes": []}, "needs `recipes` or `arms`"),
        ({"recipes": ["ln", "ln"]}, r"twice: ln\."),
        ({"recipes": ["ln"], "seeds": [1, 1]}, r"`seeds` name twice: 1\."),
        ({"recipes": ["ln"], "dims": [8, 8]}, r"`dims` name twice: 8\."),
        ({"recipes": ["ln"], "seeds": []}, "`seeds`"),
        ({"recipes": ["ln"], "protocol": {"kind": "best"}}, "`protocol.kind`"),
        ({"recipes": ["ln"], "grid": {"model.dim": []}}, "`grid.model.dim`"),
        (
            {"recipes": ["ln", "bn"], "arms": [{"name": "wide"}]},
            "the arms wide name no `recipe`",
        ),
        (
            {"recipes": ["ln", "bn"], "tuning": {"kind": "tpe"}},
            "nothing to tune for ln and bn: ",
        ),
        (
            {"arms": [{"name": "a", "recipe": "ln", "space": SCALES}]},
            "the arms a have a `space`, but the plan has no `tuning`",
        ),
        (
            {
                "recipes": ["ln"],
                "tuning": {"space": SCALES},
                "grid": {"model.scale": [2]},
            },
            r"either tuned or in `grid`; both: model\.scale\.",
        ),
        (
            {
                "arms": [{"name": "a", "recipe": "ln", "space": RATES}],
                "tuning": {"kind": "grid", "space": SCALES},
            },
            "a grid takes lists of values only",
        ),
    ],
)
def test_mistakes(values, message):
    with pytest.raises(UsageError, match=f"(?i){message}"):
        parse_plan({"title": "T", "sources": ["digits"], **values})


def test_all_mistakes_at_once():
    with pytest.raises(UsageError) as caught:
        parse_plan({"titel": "T", "sources": [], "recipes": ["ln"], "dims": 3})
    assert len(str(caught.value).splitlines()) == 4


def test_unknown_names(tmp_path):
    with pytest.raises(UsageError, match="Nearest: 'demo'"):
        load_plan("dem")
    with pytest.raises(UsageError, match="There is no plan file"):
        load_plan(tmp_path / "none.yaml")


def test_the_section_of_version_0_1_is_still_read():
    values = {"title": "T", "sources": ["digits"], "recipes": ["ln"]}
    old, new = (
        parse_plan({**values, key: {"space": SCALES}})
        for key in ("search", "tuning")
    )
    assert old == new
    assert "search" not in dump_plan(old)
