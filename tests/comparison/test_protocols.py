import pytest

from keras_dml.comparison.protocols import get_protocol
from keras_dml.config import resolve
from keras_dml.config.plan_sections import ProtocolConfig

PAPER = resolve("proxynca_pp", "cub200")  # two stages, the second replays
OURS = resolve("hbn", "omniglot")  # 12 epochs and 3 heated ones


TWO_STAGE = get_protocol(ProtocolConfig(kind="two_stage"))


def test_recipe_is_left_alone():
    assert get_protocol(ProtocolConfig(kind="recipe")).applied(PAPER) == PAPER


@pytest.mark.parametrize("config", [PAPER, OURS])
@pytest.mark.parametrize(
    ("protocol", "data"),
    [
        (ProtocolConfig(kind="oracle"), {"validation": "test"}),
        (
            ProtocolConfig(kind="fixed_validation", fraction=0.2),
            {"validation": "classes", "validation_fraction": 0.2},
        ),
        (
            ProtocolConfig(
                kind="cross_validation", folds=4, split="contiguous"
            ),
            {"folds": 4, "fold": 2, "fold_split": "contiguous"},
        ),
    ],
)
def test_one_stage_on_classes_that_do_not_validate(config, protocol, data):
    fold = 2 if protocol.kind == "cross_validation" else None
    changed = get_protocol(protocol).applied(config, fold)
    (stage,) = changed.stages
    assert (stage.classes, stage.replay) == ("fit", None)
    # Of two stages the one that follows the validation is kept.
    assert stage.phases == config.stages[0].phases
    for key, value in data.items():
        assert getattr(changed.data, key) == value
    restored = changed.model_copy(
        update={"data": config.data, "stages": config.stages}
    )
    assert restored == config


def test_two_stages_of_any_recipe():
    search, final = TWO_STAGE.applied(OURS).stages
    assert (search.classes, search.replay) == ("first_half", None)
    assert (final.classes, final.replay) == ("all", search.name)
    assert search.phases == final.phases == OURS.stages[0].phases


def test_two_stages_of_proxynca_pp_are_its_own():
    assert TWO_STAGE.applied(PAPER) == PAPER


def test_folds():
    assert get_protocol(ProtocolConfig(kind="oracle")).folds == (None,)
    tenfold = ProtocolConfig(kind="cross_validation")
    assert get_protocol(tenfold).folds == tuple(range(10))


def test_in_words():
    assert (
        "test classes themselves"
        in get_protocol(ProtocolConfig(kind="oracle")).in_words
    )
    crossed = ProtocolConfig(kind="cross_validation", concatenated=True)
    assert "10-fold" in get_protocol(crossed).in_words
    assert "concatenated" in get_protocol(crossed).in_words
