import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.models import refresh_bn, synchronize_batch_norm

RNG = np.random.default_rng(0)
DATA = (RNG.standard_normal((64, 4)) * 3 + 5).astype("float32")


def build():
    keras.utils.set_random_seed(0)
    x = keras.Input((4,))
    h = keras.layers.BatchNormalization(momentum=0.5, name="bn")(x)
    h = keras.layers.Dropout(0.5)(h)
    h = keras.layers.BatchNormalization(trainable=False, name="frozen")(h)
    return keras.Model(x, keras.layers.Dense(2)(h))


def values(model):
    return {v.path: np.array(v.numpy()) for v in model.variables}


def batches(size=16):
    return tf.data.Dataset.from_tensor_slices((DATA, DATA[:, 0])).batch(size)


def test_only_the_moving_statistics_change():
    model = build()
    before = values(model)
    assert refresh_bn(model, batches()) == 4
    after = values(model)
    changed = {
        path for path in before if not np.array_equal(before[path], after[path])
    }
    assert changed == {"bn/moving_mean", "bn/moving_variance"}


def test_statistics_are_those_of_the_data():
    model = build()
    refresh_bn(model, [DATA] * 30)
    after = values(model)
    np.testing.assert_allclose(
        after["bn/moving_mean"], DATA.mean(axis=0), rtol=1e-4
    )
    np.testing.assert_allclose(
        after["bn/moving_variance"], DATA.var(axis=0), rtol=1e-4
    )


def test_each_step_keeps_its_share():
    model = build()
    assert refresh_bn(model, batches(), steps=1) == 1
    np.testing.assert_allclose(
        values(model)["bn/moving_mean"],
        0.5 * DATA[:16].mean(axis=0),
        rtol=1e-5,
    )


def test_a_model_without_batch_norm_is_left_alone():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dropout(0.5)])
    assert refresh_bn(model, batches()) == 0


@pytest.mark.parametrize("data, steps", [(batches(), 5), ([], None)])
def test_too_few_batches_are_an_error(data, steps):
    with pytest.raises(ValueError, match=f"Received: .* steps={steps}"):
        refresh_bn(build(), data, steps)


def test_a_model_of_two_replicas_gets_the_statistics_of_one(strategy):
    alone = build()
    refresh_bn(alone, batches())
    with strategy.scope():
        shared = build()
    synchronize_batch_norm(shared)
    refresh_bn(shared, batches())
    for expected, found in zip(alone.weights, shared.weights, strict=True):
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(found), expected, rtol=1e-5
        )
