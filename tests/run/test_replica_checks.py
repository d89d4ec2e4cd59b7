import keras
import pytest

from keras_dml.config import RunConfig
from keras_dml.errors import UsageError
from keras_dml.optimizers import PerVariable
from keras_dml.run.replica_checks import check_settings, check_trainer


def compiled(**options):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    # Made here, for their variables belong to the strategy.
    made = {key: make() for key, make in options.items()}
    model.compile(**{"optimizer": "sgd", "loss": "mse", **made})
    return model


def accumulating():
    return keras.optimizers.SGD(gradient_accumulation_steps=2)


def scaling():
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())


REFUSED = [
    ({"jit_compile": lambda: True}, "`jit_compile=True` does.*2 replicas"),
    ({"optimizer": accumulating}, "keras/issues/20582"),
    (
        {"optimizer": scaling},
        "Use `mixed_bfloat16` or one device",
    ),
]


@pytest.mark.parametrize("options, message", REFUSED)
def test_what_replicas_cannot_do_is_refused(strategy, options, message):
    with strategy.scope():
        model = compiled(**options)
    with pytest.raises(UsageError, match=message):
        check_trainer(model)


@pytest.mark.parametrize("options, message", REFUSED)
def test_one_device_can(options, message):
    check_trainer(compiled(**options))


def test_groups_are_looked_into(strategy):
    with strategy.scope():
        rules = {".*bias": accumulating()}
        optimizer = PerVariable(keras.optimizers.SGD(), rules)
        model = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(1, name="dense")]
        )
        model.compile(optimizer, "mse")
        optimizer.build(model.trainable_variables)
    with pytest.raises(UsageError, match="gradient_accumulation_steps=2"):
        check_trainer(model)


def test_plain_training_on_replicas_is_fine(strategy):
    with strategy.scope():
        model = compiled()
    check_trainer(model)
    assert not model.jit_compile


def settings(loss="softmax", **changes):
    stages = [{"phases": [{}]}]
    return RunConfig(loss=[{"name": loss}], stages=stages, **changes)


@pytest.mark.parametrize(
    "config, message",
    [
        (
            settings(
                optimizer={
                    "head": {"arguments": {"gradient_accumulation_steps": 4}}
                }
            ),
            "`optimizer.head` with .*=4.*2 repl",
        ),
        (
            RunConfig(
                loss=[
                    {"name": "keras.losses.Circle", "takes": "unit_embeddings"}
                ],
                stages=[{"phases": [{}]}],
            ),
            "'keras.losses.Circle'.*2 devices",
        ),
        (
            settings(sampling={"embed_batch": 16}),
            "`sampling.embed_batch`.*embed_batch=16, .*2 devices",
        ),
    ],
)
def test_settings_are_refused_before_anything_is_built(config, message):
    check_settings(config, 1)
    with pytest.raises(UsageError, match=message):
        check_settings(config, 2)


def test_chunks_are_for_many_devices_where_batch_norm_is_frozen():
    model = {"batch_norm": "frozen"}
    check_settings(settings(sampling={"embed_batch": 16}, model=model), 2)


def test_a_loss_on_pairs_of_keras_dml_is_for_many_devices():
    check_settings(settings("circle"), 2)
