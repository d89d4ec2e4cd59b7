# %% [markdown]
# # Several devices
#
# On several devices `fit` with `epochs` trains what it trains on one: the
# batches, the losses and the weights are the same up to rounding. Several GPUs
# were not at hand to try. This guide shows it
# without a GPU, with the processor split into two devices.
#
# ## Two devices
#
# TensorFlow splits its processor only before its first operation, so this comes
# first. With GPUs leave it out.

# %%
import keras_dml

keras_dml.distribute.set_logical_devices("cpu:2")

# %% [markdown]
# ## The same run twice
#
# Once on one device, once on two replicas, each of which gets half of every
# batch. The recipe compares the rows of a batch with each other: a replica that
# knew its own half alone would train another loss. With GPUs `devices` is left
# out, and `strategy="auto"`, the default, takes all of them.


# %%
def fit(name, **where):
    """Trains a few steps and returns the loss of each epoch."""
    run = keras_dml.fit(
        "digits",
        recipe="triplet",
        epochs=3,
        batch_size=64,
        settings={"sampling.steps_per_epoch": 5},
        output=f"runs/{name}",
        report=False,
        export=False,
        resume=True,
        **where,
    )
    return run.history.columns["loss"]


one = fit("one", strategy="none")
two = fit("two", strategy="mirrored", devices="cpu:2")

# %%
import numpy as np

for epoch, losses in enumerate(zip(one, two, strict=True), start=1):
    print(f"epoch {epoch}: one device {losses[0]:.6f}, two {losses[1]:.6f}")
np.testing.assert_allclose(two, one, rtol=1e-2)

# %% [markdown]
# They differ by rounding, for sums are added in another order. In a long
# training at a high learning rate rounding grows.
#
# The same in a shell:
#
#     keras-dml fit digits --strategy mirrored --devices cpu:2
#
# ## In a Keras model of your own
#
# Build and compile in the scope of the strategy. The losses gather the rows of
# all replicas by themselves.

# %%
import keras

strategy = keras_dml.distribute.get_strategy("mirrored", devices="cpu:2")
with strategy.scope():
    inputs = keras.Input((8,))
    model = keras.Model(inputs, keras.layers.Dense(4)(inputs))
    model.compile("sgd", loss=keras_dml.losses.MultiSimilarity())
print(strategy.num_replicas_in_sync, "replicas")

# %% [markdown]
# [Distributed](../distributed.md) has several machines, lost workers and what
# is refused; [What tf.distribute changes](../replicas.md) says what each part
# of a training does on replicas.
