"""Runs of recipes with another length."""

import inspect
import typing

import pytest

from keras_dml import layers, losses
from keras_dml.comparison.budget import (
    budget_in_words,
    lengths_of_phases,
    within_budget,
)
from keras_dml.config import Explanation, RunConfig, explain
from keras_dml.config.plan_sections import BudgetConfig
from keras_dml.config.values import Scheduled, Section

OURS = explain("hbn", "omniglot")  # 12 epochs and 3 heated ones
# Numbers of epochs, steps or validations that no other length moves, and why.
UNMOVED = {
    "sampling.steps_per_epoch": "it is half of the budget",
    "stages.phases.epochs": "each keeps its share",
    "stages.phases.refresh_bn": "as many batches as statistics need",
    "stages.phases.stop_patience": "it counts validations",
    "stages.phases.plateau.patience": "it counts validations",
    "stages.drops_one_epoch_late": "it is no number",
    "evaluation.every": "it says how often to look, not how to train",
    **dict.fromkeys(
        (
            f"optimizer.{group}.step_factor"
            for group in ("backbone", "head", "proxies")
        ),
        "it says how far a rate falls",
    ),
}
WORDS = ("epoch", "step", "every", "patience", "warm", "refresh")


def lengths(config):
    return [phase.epochs for phase in config.stages[0].phases]


def test_phases_keep_their_shares_of_a_budget():
    changed = within_budget(OURS, BudgetConfig(epochs=10))
    assert lengths(OURS.config) == [12, None]  # A quarter of the first.
    assert lengths(changed) == [8, 2]


@pytest.mark.parametrize("epochs", [2, 3, 7, 40])
def test_no_phase_is_lost_and_the_sum_is_right(epochs):
    changed = lengths(within_budget(OURS, BudgetConfig(epochs=epochs)))
    assert sum(changed) == epochs
    assert min(changed) >= 1


def test_heating_moves_with_its_phase():
    paper = explain("hbn", "cars196")  # heated in epoch 61 of 80
    heat = within_budget(paper, BudgetConfig(epochs=40)).stages[0].phases[0]
    assert heat.heat.epoch == 30
    gradual = explain("hbn:gradual", "cars196")  # every 10 of 80
    phase = within_budget(gradual, BudgetConfig(epochs=16)).stages[0].phases[0]
    assert phase.heat.every == 2


def test_warm_up_keeps_its_share_of_the_steps():
    changed = within_budget(OURS, BudgetConfig(epochs=3, steps_per_epoch=50))
    before = OURS.config.optimizer.backbone.warmup_steps
    assert before == 100
    # 150 of 1,500 steps.
    assert changed.optimizer.backbone.warmup_steps == 10
    longer = within_budget(OURS, BudgetConfig(epochs=150))
    assert longer.optimizer.backbone.warmup_steps == before


def test_no_budget_changes_nothing():
    assert within_budget(OURS, BudgetConfig()) == OURS.config
    assert budget_in_words(BudgetConfig()) == ""
    words = budget_in_words(BudgetConfig(epochs=10, steps_per_epoch=20))
    assert words == "10 epochs, 20 steps an epoch for every run"


def test_the_memory_of_proxy_isa_keeps_its_place():
    """Epochs 2 and 3 of 100 in the authors' code, one after the other."""

    def memory(budget, **settings):
        published = explain("proxy_isa", "cub200", overrides=settings)
        proxies = within_budget(published, budget).model.proxies.sample_aware
        return proxies["memory_epoch"], proxies["filter_epoch"]

    assert memory(BudgetConfig()) == (2, 3)
    assert memory(BudgetConfig(epochs=50)) == (1, 2)
    assert memory(BudgetConfig(epochs=8)) == (0, 1)
    assert memory(BudgetConfig(epochs=200)) == (4, 6)
    together = {"model.proxies.sample_aware.filter_epoch": 2}
    assert memory(BudgetConfig(epochs=50), **together) == (1, 2)


def test_drops_of_the_rate_keep_their_share():
    published = explain("proxy_isa", "cub200")
    for epochs, step in ((100, 5), (40, 2), (8, 1)):
        config = within_budget(published, BudgetConfig(epochs=epochs))
        for _, group in config.optimizer:
            assert group.step_epochs == step


def test_a_cross_batch_memory_keeps_its_warm_up():
    memory = {"size": 64, "warm_up_steps": 300}
    loss = [{"name": "contrastive", "memory": memory}]
    explained = explain(
        "triplet",
        "digits",
        flags={"loss": loss, "sampling": {"steps_per_epoch": 100}},
    )
    (phase,) = explained.config.stages[0].phases
    budget = BudgetConfig(epochs=phase.epochs, steps_per_epoch=20)
    (term,) = within_budget(explained, budget).loss
    assert (term.memory.size, term.memory.warm_up_steps) == (64, 60)


@pytest.mark.parametrize(
    ("source", "warm_up"),
    [
        # Of 100 epochs of 5,864 images in batches of 80.
        ("cub200", 500 * 200 / (100 * 5864 / 80)),
        # So many images as nobody knows: 100 epochs of 100 steps.
        ("photos", 500 * 200 / 10_000),
    ],
)
def test_a_warm_up_ends_if_an_epoch_was_a_pass_over_the_images(source, warm_up):
    """4 epochs of 50 steps are fewer than the 500 steps of the warm-up."""
    published = explain("contrastive:memory", "cub200").config
    config = published.changed(
        sampling={"batch_size": 80}, data={"source": source}
    )
    assert config.sampling.steps_per_epoch is None
    (term,) = config.loss
    assert term.memory.warm_up_steps == 500
    short = BudgetConfig(epochs=4, steps_per_epoch=50)
    (term,) = within_budget(Explanation(config, {}), short).loss
    assert term.memory.warm_up_steps == round(warm_up)
    # Whatever a pass is, half of the epochs have half of the steps.
    (term,) = within_budget(
        Explanation(config, {}), BudgetConfig(epochs=50)
    ).loss
    assert term.memory.warm_up_steps == 250


def test_arms_of_one_budget_warm_up_for_equal_lengths():
    """Also if the phases of one are open, as many as they are."""
    budget = BudgetConfig(epochs=10, steps_per_epoch=50)
    network = {"model": {"backbone": "mobilenet_v2"}}
    found = set()
    for recipe in ("norm_softmax", "hln"):
        explained = explain(recipe, "photos", flags=network)
        assert lengths(explained.config)[0] is None
        found.add(
            within_budget(explained, budget).optimizer.backbone.warmup_steps
        )
    assert found == {15}  # 30 of 20 usual epochs of 50 steps


def test_an_open_phase_has_its_share_of_the_settled_ones():
    config = explain("hbn", "omniglot").config
    (stage,) = config.stages
    first, then = stage.phases
    phases = [
        first.changed(epochs=6, share=0.5),
        then.changed(epochs=None, share=1.0),
    ]
    stage = stage.changed(phases=phases)
    assert lengths_of_phases(stage) == [6, 12]
    explained = Explanation(config.changed(stages=[stage]), {})
    changed = within_budget(explained, BudgetConfig(epochs=9))
    assert lengths(changed) == [3, 6]
    assert changed.optimizer.backbone.warmup_steps == 50


def test_what_a_plan_sets_itself_is_meant_for_its_budget():
    explained = explain(
        "proxy_isa",
        "cub200",
        overrides={
            "optimizer.backbone.step_epochs": 10,
            "model.proxies.sample_aware.memory_epoch": 2,
            "model.proxies.sample_aware.filter_epoch": 4,
        },
    )
    config = within_budget(explained, BudgetConfig(epochs=8))
    # Head and proxies take what they do not have from the backbone.
    for _, group in config.optimizer:
        assert group.step_epochs == 10
    memory = config.model.proxies.sample_aware
    assert (memory["memory_epoch"], memory["filter_epoch"]) == (2, 4)
    warm_up = {"optimizer.backbone.warmup_steps": 7}
    warmed = explain("hbn", "omniglot", overrides=warm_up)
    config = within_budget(warmed, BudgetConfig(epochs=8))
    assert {group.warmup_steps for _, group in config.optimizer} == {7}
    heated = explain(
        "hbn", "cars196", overrides={"stages.main.train.heat.epoch": 3}
    )
    phase = within_budget(heated, BudgetConfig(epochs=8)).stages[0].phases[0]
    assert (phase.epochs, phase.heat.epoch) == (8, 3)


TAIL = {"epochs": 100, "stop_patience": 5, "stop_tail": 20}


@pytest.mark.parametrize(
    ("epochs", "tail", "moved"),
    [(10, 20, 2), (10, 3, 1), (10, 0, 0), (200, 20, 40), (100, 20, 20)],
)
def test_the_tail_of_a_stop_moves_with_its_phase(epochs, tail, moved):
    """A tail as long as the training would never let it stop."""
    phase = {**TAIL, "stop_tail": tail}
    explained = explain(
        "norm_softmax", "digits", flags={"stages": [{"phases": [phase]}]}
    )
    explained = Explanation(explained.config, {})
    changed = within_budget(explained, BudgetConfig(epochs=epochs))
    phase = changed.stages[0].phases[0]
    assert (phase.epochs, phase.stop_patience) == (epochs, 5)
    assert phase.stop_tail == moved


def test_the_tail_that_a_plan_sets_stays():
    explained = explain(
        "norm_softmax",
        "digits",
        flags={"stages": [{"phases": [TAIL]}]},
        overrides={"stages.main.train.stop_tail": 4},
    )
    changed = within_budget(explained, BudgetConfig(epochs=10))
    assert changed.stages[0].phases[0].stop_tail == 4


def sections(kind):
    """Yields every section that stands anywhere in an annotation."""
    if inspect.isclass(kind) and issubclass(kind, Section):
        yield kind
    for part in typing.get_args(kind):
        yield from sections(part)


def numbers(section, path=()):
    """Yields the key and the field of every value of a section."""
    for name, field in section.model_fields.items():
        inner = [*sections(field.annotation)]
        for one in inner:
            yield from numbers(one, (*path, name))
        if not inner:
            yield ".".join((*path, name)), field


def test_every_key_like_a_schedule_is_declared_or_says_why_not():
    declared, named = set(), set()
    for key, field in numbers(RunConfig):
        if any(isinstance(mark, Scheduled) for mark in field.metadata):
            declared.add(key)
        if any(word in key.rpartition(".")[2] for word in WORDS):
            named.add(key)
    assert "loss.memory.warm_up_steps" in declared
    assert not declared & {*UNMOVED}
    assert named - declared == {*UNMOVED}


def test_every_argument_like_a_schedule_is_declared():
    """Those of the losses, and of the layers that recipes give arguments."""
    marks = RunConfig.model_fields["model"].default.proxies
    (mark,) = type(marks).model_fields["sample_aware"].metadata
    expected = {
        "SampleAwareProxies": {*mark.keys},
        "CrossBatchMemory": {"warm_up_steps"},  # of `loss.memory`
    }
    for package in (losses, layers):
        for name in package.__all__:
            made = getattr(package, name)
            if inspect.isclass(made):
                arguments = inspect.signature(made).parameters
                found = {
                    one
                    for one in arguments
                    if any(word in one for word in ("epoch", "step", "every"))
                }
                assert found == expected.get(name, set()), name


def test_a_pace_is_measured_without_origins():
    config = within_budget(
        Explanation(OURS.config, {}), BudgetConfig(epochs=2, steps_per_epoch=3)
    )
    assert lengths(config) == [1, 1]
