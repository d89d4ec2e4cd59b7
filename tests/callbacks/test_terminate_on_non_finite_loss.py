import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.callbacks import TerminateOnNonFiniteLoss
from keras_dml.errors import RunError
from tests.callbacks.small_trainer import DATA, LABELS, build, fit


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_stops_at_the_step_and_names_it(bad, tmp_path):
    trainer, _ = build()
    data = DATA.copy()
    data[9, 0] = bad
    batches = tf.data.Dataset.from_tensor_slices((data, LABELS)).batch(8)
    seen = []
    checkpoint = keras.callbacks.ModelCheckpoint(tmp_path / "last.keras")
    note = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: seen.append(batch)
    )
    callbacks = [TerminateOnNonFiniteLoss(), note, checkpoint]
    fit(trainer, 1, callbacks)
    seen.clear()
    with pytest.raises(RunError, match=r"epoch 2 at step 2\. Lower the"):
        trainer.fit(
            batches,
            epochs=3,
            initial_epoch=1,
            verbose=0,
            shuffle=False,
            callbacks=callbacks,
        )
    assert seen == [0, 1]
    good = keras.saving.load_model(tmp_path / "last.keras")
    assert all(np.isfinite(weight).all() for weight in good.get_weights())


def test_broken_weights_are_found_at_the_end_of_the_epoch():
    trainer, _ = build()
    break_last = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: trainer.get_layer(
            "proxies"
        ).proxies.assign(np.full((4, 5), np.nan if batch == 2 else 1.0))
    )
    with pytest.raises(RunError, match="'proxies/proxies' is not finite in"):
        fit(trainer, 2, [TerminateOnNonFiniteLoss(), break_last])


def test_weights_in_bfloat16_are_looked_at():
    image = keras.Input((2,))
    layer = keras.layers.Dense(3, dtype="bfloat16")
    model = keras.Model(image, layer(image))
    check = TerminateOnNonFiniteLoss()
    check.set_model(model)
    check.on_epoch_end(0)
    layer.bias.assign(np.full(3, np.inf))
    with pytest.raises(RunError, match="bias' is not finite"):
        check.on_epoch_end(0)


def test_a_good_training_goes_on():
    trainer, _ = build()
    assert len(fit(trainer, 2, [TerminateOnNonFiniteLoss()])["loss"]) == 2
