import pytest

from keras_dml.config.plans import (
    dump_plan,
    load_plan,
    parse_plan,
    plan_names,
)
from keras_dml.config.yaml_files import parse_yaml
from keras_dml.errors import UsageError


def test_a_plan_is_read_back_as_it_was_written():
    for name in plan_names():
        plan = load_plan(name)
        assert parse_plan(parse_yaml(dump_plan(plan))) == plan


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"recipe": ["ln"]}, "Unknown configuration key `recipe`.*'recipes'"),
        ({"recipes": []}, "needs `recipes` or `arms`"),
        ({"recipes": ["ln", "ln"]}, r"twice: \['ln'\]"),
        ({"recipes": ["ln"], "seeds": [1, 1]}, "a seed is given twice"),
        ({"recipes": ["ln"], "seeds": []}, "`seeds`"),
        ({"recipes": ["ln"], "protocol": {"kind": "best"}}, "`protocol.kind`"),
        ({"recipes": ["ln"], "grid": {"model.dim": []}}, "`grid.model.dim`"),
        (
            {"recipes": ["ln", "bn"], "arms": [{"name": "wide"}]},
            r"\['wide'\] name no `recipe`",
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
        load_plan(str(tmp_path / "none.yaml"))
