import pytest

from keras_dml.comparison.protocols import (
    budget_in_words,
    get_protocol,
    within_budget,
)
from keras_dml.config import resolve
from keras_dml.config.plan_sections import BudgetConfig, ProtocolConfig

PAPER = resolve("proxynca_pp", "cub200")  # two stages, the second replays
OURS = resolve("hbn", "omniglot")  # 12 epochs and 3 heated ones


TWO_STAGE = get_protocol(ProtocolConfig(kind="two_stage"))


def lengths(config):
    return [phase.epochs for phase in config.stages[0].phases]


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


def test_phases_keep_their_shares_of_a_budget():
    changed = within_budget(OURS, BudgetConfig(epochs=10))
    assert lengths(OURS) == [12, 3]
    assert lengths(changed) == [8, 2]


@pytest.mark.parametrize("epochs", [2, 3, 7, 40])
def test_no_phase_is_lost_and_the_sum_is_right(epochs):
    changed = lengths(within_budget(OURS, BudgetConfig(epochs=epochs)))
    assert sum(changed) == epochs
    assert min(changed) >= 1


def test_heating_moves_with_its_phase():
    paper = resolve("hbn", "cars196")  # heated in epoch 61 of 80
    heat = within_budget(paper, BudgetConfig(epochs=40)).stages[0].phases[0]
    assert heat.heat.epoch == 30
    gradual = resolve("hbn:gradual", "cars196")  # every 10 of 80
    phase = within_budget(gradual, BudgetConfig(epochs=16)).stages[0].phases[0]
    assert phase.heat.every == 2


def test_warm_up_keeps_its_share_of_the_steps():
    changed = within_budget(OURS, BudgetConfig(epochs=3, steps_per_epoch=50))
    before = OURS.optimizer.backbone.warmup_steps
    assert before == 100
    # 150 of 1,500 steps.
    assert changed.optimizer.backbone.warmup_steps == 10
    longer = within_budget(OURS, BudgetConfig(epochs=150))
    assert longer.optimizer.backbone.warmup_steps == before


def test_no_budget_changes_nothing():
    assert within_budget(OURS, BudgetConfig()) == OURS
    assert budget_in_words(BudgetConfig()) == ""


def test_in_words():
    assert (
        "test classes themselves"
        in get_protocol(ProtocolConfig(kind="oracle")).in_words
    )
    crossed = ProtocolConfig(kind="cross_validation", concatenated=True)
    assert "10-fold" in get_protocol(crossed).in_words
    assert "concatenated" in get_protocol(crossed).in_words
    words = budget_in_words(BudgetConfig(epochs=10, steps_per_epoch=20))
    assert words == "10 epochs, 20 steps an epoch for every run"
