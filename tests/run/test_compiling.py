from typing import get_args

import keras
import numpy as np
import pytest

from keras_dml.config import (
    GroupConfig,
    OptimizerConfig,
    load_recipe,
    recipe_names,
    resolve,
    validate,
)
from keras_dml.models import get_head
from keras_dml.optimizers import RowLazyAdam
from keras_dml.run.checkpoint import load_checkpoint, save_checkpoint
from keras_dml.run.compiling import (
    HEAD_RULE,
    PROXIES_RULE,
    build_optimizer,
    compile_for,
    fine_tuning_rate,
)
from keras_dml.run.models import build_models

NAMES = GroupConfig.model_fields["name"].annotation


def test_the_proxies_may_have_a_row_lazy_optimizer():
    config = OptimizerConfig(
        proxies=GroupConfig(name="row_lazy_adam", weight_decay=0.1)
    )
    optimizer = build_optimizer(
        config, epochs=1, steps_per_epoch=1, head=get_head("logits")
    )
    table = optimizer.rules[PROXIES_RULE]
    assert type(table) is RowLazyAdam
    assert table.weight_decay == 0.1


@pytest.mark.parametrize("name", get_args(NAMES))
@pytest.mark.parametrize("decay", [None, 0.0, 0.1])
def test_a_decay_is_the_one_that_is_set_or_that_of_the_optimizer(name, decay):
    config = OptimizerConfig(
        backbone=GroupConfig(name=name, weight_decay=decay)
    )
    own = 0.004 if name == "adamw" else None
    optimizer = build_optimizer(
        config, epochs=1, steps_per_epoch=1, head=get_head("logits")
    )
    expected = own if decay is None else decay
    assert optimizer.default.weight_decay == expected


# The only decays of recipes, by the optimizer; `None` is its own.
DECAYS = {
    "adam": {None},
    "adamw": {1e-4},
    "muon": {None},
    "sgd": {None, 0.0},
    "torch_adam": {None, 0.0, 1e-4},
}


@pytest.mark.parametrize("source", ["cub200", "cars196", "sop", "./x"])
def test_every_recipe_has_the_decay_that_it_says(source):
    """No recipe takes the decay that Keras gives AdamW."""
    for name in recipe_names():
        for preset in ("", *load_recipe(name).presets):
            config = resolve(f"{name}:{preset}", source)
            for _, group in config.optimizer:
                assert group.weight_decay in DECAYS[group.name], name


def test_an_open_rate_follows_from_the_steps():
    config = OptimizerConfig(
        backbone=GroupConfig(lr=None),
        head=GroupConfig(lr=None),
        proxies=GroupConfig(lr=0.5),
    )

    def rates(**settings):
        optimizer = build_optimizer(config, head=get_head("logits"), **settings)
        return [
            float(one.learning_rate)
            for one in (
                optimizer.default,
                optimizer.rules[HEAD_RULE],
                optimizer.rules[PROXIES_RULE],
            )
        ]

    whole = rates(epochs=12, steps_per_epoch=50)
    np.testing.assert_allclose(whole, [3e-5, 3e-5, 0.5], rtol=1e-6)
    longer = rates(epochs=48, steps_per_epoch=50, learning_rate_factor=0.1)
    np.testing.assert_allclose(longer, [1.5e-6, 1.5e-6, 0.05], rtol=1e-6)
    alone = rates(epochs=48, steps_per_epoch=50, head_alone=True)
    np.testing.assert_allclose(alone, [1e-4, 1e-4, 0.5], rtol=1e-6)


@pytest.mark.parametrize("steps", [10, 30, 31, 59, 60, 500])
def test_the_rate_rises_and_falls_in_the_shortest_training(steps):
    """Thirty steps were all warm-up, and ended at the highest rate."""
    group = GroupConfig(lr=0.5, schedule="cosine", warmup_steps=30)
    optimizer = build_optimizer(
        OptimizerConfig(backbone=group, head=group),
        epochs=1,
        steps_per_epoch=steps,
        head=get_head("logits"),
    ).default
    rates = []
    for step in range(steps + 1):
        optimizer.iterations.assign(step)
        rates.append(float(optimizer.learning_rate))
    highest = int(np.argmax(rates))
    assert highest == min(30, steps // 2)
    assert rates[highest] == pytest.approx(0.5, rel=1e-6)
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("before", [0, 3, 5, 12])
def test_a_step_schedule_counts_from_the_start_of_the_stage(before):
    """As `StepLR` of the authors' codes, which also counts the warm-up."""
    group = GroupConfig(lr=0.5, schedule="step", step_epochs=5, step_factor=0.1)
    optimizer = build_optimizer(
        OptimizerConfig(backbone=group, head=group),
        epochs=20,
        steps_per_epoch=7,
        head=get_head("logits"),
        epochs_before=before,
    ).default
    for step in range(20 * 7):
        optimizer.iterations.assign(step)
        epoch = before + step // 7
        assert float(optimizer.learning_rate) == (
            pytest.approx(0.5 * 0.1 ** (epoch // 5), rel=1e-5)
        )


def test_a_phase_without_a_drop_has_one_rate():
    group = GroupConfig(lr=0.5, schedule="step", step_epochs=5)
    optimizer = build_optimizer(
        OptimizerConfig(backbone=group),
        epochs=4,
        steps_per_epoch=7,
        head=get_head("logits"),
        epochs_before=6,
    ).default
    assert float(optimizer.learning_rate) == pytest.approx(0.05)


def test_twice_the_rate_for_a_quarter_of_the_steps():
    assert fine_tuning_rate(150) == 2 * fine_tuning_rate(600)


def decayed(decay, network, **settings):
    config = validate(
        {
            "loss": [{"name": "softmax"}],
            "stages": [{"phases": [{"epochs": 1}]}],
            "optimizer": {
                "backbone": {"lr": 0.1, "layer_decay": decay, **settings}
            },
        }
    ).optimizer
    return build_optimizer(
        config,
        epochs=2,
        steps_per_epoch=5,
        head=get_head("logits"),
        learning_rate_factor=0.5,
        backbone=network,
    )


def two_blocks():
    x = keras.Input((3,))
    y = keras.layers.Dense(3, name="low")(x)
    return keras.Model(x, keras.layers.Dense(3, name="high")(y))


def test_layer_decay_makes_a_group_of_every_block():
    optimizer = decayed(0.25, two_blocks(), weight_decay=0.1, clip_value=2.0)
    low = optimizer.rules["low/.*"]
    assert float(low.learning_rate) == pytest.approx(0.0125)
    assert float(optimizer.default.learning_rate) == pytest.approx(0.05)
    assert (low.name, low.weight_decay, low.clipvalue) == ("block_0", 0.1, 2.0)
    # Head and proxies have the settings of the backbone, but no blocks.
    assert float(optimizer.rules[HEAD_RULE].learning_rate) == (
        pytest.approx(0.05)
    )


def test_layer_decay_sees_the_blocks_of_a_network_in_chunks():
    config = resolve(
        "norm_softmax",
        "digits",
        flags={"model": {"backbone": "small_cnn", "dim": 8}},
        overrides=[
            "data.image_size=8",
            "sampling.embed_batch=32",
            "optimizer.backbone.layer_decay=0.5",
        ],
    )
    rules = []
    for changed in (config, config.changed(sampling={"embed_batch": None})):
        trainer = build_models(changed, 10).trainer
        (stage,) = changed.stages
        compile_for(trainer, stage.phases[0], changed, 1, 1)
        rules.append(set(trainer.optimizer.rules))
    assert rules[0] == rules[1]
    assert len(rules[0]) > 3


@pytest.mark.parametrize("freeze, rate", [("none", 3e-5), ("all", 1e-4)])
def test_a_frozen_network_leaves_the_head_its_own_rate(freeze, rate):
    config = resolve(
        "norm_softmax",
        "digits",
        flags={"model": {"backbone": "small_cnn", "dim": 8}},
        overrides=[
            "data.image_size=8",
            "optimizer.backbone.lr=null",
            "optimizer.head.lr=null",
            "optimizer.head.schedule=constant",
            "optimizer.head.warmup_steps=0",
        ],
    )
    trainer = build_models(config, 10).trainer
    phase = config.stages[0].phases[0].changed(freeze=freeze)
    compile_for(trainer, phase, config, 12, 50)
    head = trainer.optimizer.rules[HEAD_RULE]
    assert float(head.learning_rate) == pytest.approx(rate)


def test_layer_decay_scales_schedules():
    settings = {"schedule": "cosine", "warmup_steps": 4}
    optimizer = decayed(0.25, two_blocks(), **settings)
    low, high = optimizer.rules["low/.*"], optimizer.default
    for step in range(10):
        for one in (low, high):
            one.iterations.assign(step)
        assert float(low.learning_rate) == pytest.approx(
            0.25 * float(high.learning_rate)
        )


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_features_that_are_kept_leave_no_network_to_decay(decay):
    assert list(decayed(decay, None).rules) == [HEAD_RULE, PROXIES_RULE]


def test_layer_decay_is_for_the_backbone_alone():
    with pytest.raises(ValueError, match="`optimizer.backbone` alone"):
        OptimizerConfig.model_validate({"head": {"layer_decay": 0.5}})
    inherited = OptimizerConfig.model_validate(
        {"backbone": {"layer_decay": 0.5}}
    )
    assert inherited.proxies.layer_decay == 1.0
    saved = inherited.model_dump(mode="json")
    assert OptimizerConfig.model_validate(saved) == inherited


def test_layer_decay_goes_on_from_a_checkpoint(tmp_path):
    """Two steps are the same with a stop between them."""

    def step(network, optimizer):
        variables = network.trainable_variables
        gradients = [0.1 * keras.ops.ones(v.shape) for v in variables]
        optimizer.apply(gradients, variables)

    def build():
        x = keras.Input((3,))
        backbone = two_blocks()
        head = keras.layers.Dense(2, name="head")(backbone(x))
        network = keras.Model(x, keras.layers.Dense(2, name="proxies")(head))
        for variable in network.variables:
            variable.assign(keras.ops.ones(variable.shape))
        optimizer = decayed(0.25, backbone, schedule="cosine")
        optimizer.build(network.trainable_variables)
        return network, optimizer

    whole = build()
    step(*whole)
    groups = {"model": whole[0].variables, "optimizer": whole[1].variables}
    save_checkpoint(tmp_path / "last", groups)
    step(*whole)
    network, optimizer = build()
    last = load_checkpoint(tmp_path / "last")
    last.restore("model", network.variables)
    last.restore("optimizer", optimizer.variables)
    step(network, optimizer)
    for first, second in zip(
        network.variables, whole[0].variables, strict=True
    ):
        np.testing.assert_array_equal(first, second)
