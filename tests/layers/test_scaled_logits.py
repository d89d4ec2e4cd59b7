import keras
import numpy as np
import pytest

from keras_dml.layers import ScaledLogits
from tests.conformance import check_layer

X = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")


@pytest.mark.slow
@pytest.mark.parametrize("use_bias", [False, True])
def test_layer(use_bias, policy, tmp_path):
    arguments = {"scale": 4.0, "use_bias": use_bias}
    check_layer(ScaledLogits, arguments, X, (4, 3), tmp_path)


def test_bias_stands_outside_the_scale():
    layer = ScaledLogits(scale=4.0, use_bias=True)
    np.testing.assert_allclose(layer(X), 4 * X, rtol=1e-6)
    layer.bias.assign([1.0, 2.0, 3.0])
    np.testing.assert_allclose(layer(X), 4 * X + [1, 2, 3], rtol=1e-6)


def test_only_the_bias_is_trained():
    layer = ScaledLogits(use_bias=True, name="logits")
    layer.build(X.shape)
    assert [v.path for v in layer.trainable_variables] == ["logits/bias"]
    assert [v.path for v in layer.non_trainable_variables] == ["logits/scale"]


def test_a_new_scale_reaches_the_compiled_step():
    x = keras.Input((3,))
    logits = ScaledLogits(use_bias=True, name="logits")(x)
    model = keras.Model(x, logits)
    model.compile(keras.optimizers.SGD(0.0), "mse", jit_compile=True)
    ones, zeros = np.ones((4, 3), "float32"), np.zeros((4, 3), "float32")
    callback = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: model.get_layer(
            "logits"
        ).scale.assign(epoch + 1.0)
    )
    history = model.fit(ones, zeros, epochs=3, verbose=0, callbacks=[callback])
    assert history.history["loss"] == [1.0, 4.0, 9.0]


def test_a_changed_scale_is_saved_with_the_weights(tmp_path):
    x = keras.Input((3,))
    model = keras.Model(x, ScaledLogits(16.0, name="logits")(x))
    model.get_layer("logits").scale.assign(4.0)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert float(revived.get_layer("logits").scale) == 4.0
    assert revived.get_layer("logits").get_config()["scale"] == 16.0


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_refuses_a_scale_that_is_not_positive(scale):
    with pytest.raises(ValueError, match=f"positive number.*scale={scale}"):
        ScaledLogits(scale)
