import json

import keras
import pytest

from keras_dml import layers
from keras_dml.optimizers import PerVariable, TorchAdam, group_table
from keras_dml.optimizers.decay_to_zero import DecayToZero


@pytest.fixture
def variables():
    x = keras.Input((6,))
    h = keras.layers.Dense(3, name="backbone")(x)
    h = layers.EmbeddingHead(5, name="head")(h)
    model = keras.Model(x, layers.Proxies(4, name="proxies")(h))
    return model.trainable_variables


def optimizer():
    schedule = keras.optimizers.schedules.CosineDecay(0.5, 100)
    return PerVariable(
        keras.optimizers.Adam(1e-3, name="backbone", weight_decay=1e-4),
        {
            "head/.*": keras.optimizers.SGD(schedule, name="head"),
            "proxies/.*": TorchAdam(400.0, l2=0.5, clipvalue=10.0, name="p"),
        },
    )


def test_rows(variables):
    head, proxies, backbone = group_table(optimizer(), variables)
    assert head == (
        "head", "head/.*", 2, 20, "SGD", 0.5, "CosineDecay", "none", "none",
    )  # fmt: skip
    assert proxies == (
        "p", "proxies/.*", 1, 20, "TorchAdam", 400.0, "constant", "value 10",
        "coupled 0.5",
    )  # fmt: skip
    assert backbone.learning_rate == pytest.approx(1e-3)
    assert backbone.variables == 2 and backbone.parameters == 21
    assert backbone.decay == "decoupled 0.0001" and backbone.rule == ""


@keras.saving.register_keras_serializable(package="tests")
def falling():
    return 0.1


def test_rates_that_a_schedule_reaches_or_ends_with_are_named(variables):
    def schedule_of(rate):
        (row,) = group_table(keras.optimizers.SGD(rate), variables)
        return row.schedule

    schedules = keras.optimizers.schedules
    cosine = schedules.CosineDecay(1e-4, 9, warmup_target=1e-2, warmup_steps=3)
    rising = schedules.PolynomialDecay(1e-3, 10, 1e-2)
    assert schedule_of(cosine) == "CosineDecay by way of 0.01"
    assert schedule_of(rising) == "PolynomialDecay to 0.01"
    tail = f"{schedule_of(cosine)}, then DecayToZero"
    assert schedule_of(DecayToZero(cosine, 3)) == tail
    assert schedule_of(DecayToZero(0.1, 3)) == "DecayToZero"
    assert schedule_of(falling) == "function tests>falling"


def test_groups_without_variables_are_left_out(variables):
    assert len(group_table(optimizer(), variables[2:])) == 2


def test_rows_can_be_saved(variables):
    rows = [row._asdict() for row in group_table(optimizer(), variables)]
    assert json.loads(json.dumps(rows)) == rows


def test_wrapped_and_plain_optimizers(variables):
    inner = optimizer()
    wrapped = keras.optimizers.LossScaleOptimizer(inner)
    assert group_table(wrapped, variables) == group_table(inner, variables)
    (row,) = group_table(keras.optimizers.SGD(0.5, clipnorm=2.0), variables)
    assert row.parameters == 61 and row.clip == "norm 2"


@pytest.mark.skipif(
    not hasattr(keras.optimizers, "MultiOptimizer"), reason="Keras before 3.15"
)
def test_another_optimizer_of_several_is_refused(variables):
    rules = keras.optimizers.OptimizerMap(keras.optimizers.SGD(0.1))
    several = keras.optimizers.MultiOptimizer(rules)
    with pytest.raises(ValueError, match="`optimizer` must be.*MultiOptimizer"):
        group_table(several, variables)


def test_the_rate_after_the_warm_up_is_shown(variables):
    schedule = keras.optimizers.schedules.CosineDecay(
        1e-4, 100, warmup_target=1e-2, warmup_steps=10
    )
    (row,) = group_table(keras.optimizers.SGD(schedule), variables)
    assert row.schedule == "CosineDecay by way of 0.01"
