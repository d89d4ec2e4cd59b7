# %% [markdown]
# # A loss of your own
#
# A loss is a pure function and a thin class. The class is a `LogitsLoss` if it
# takes one column for each class, and a `PairLoss` if it compares the rows of
# a batch with each other. This guide makes a `PairLoss` after the binomial
# deviance of Yi, Lei and Li, "Deep Metric Learning for Practical Person
# Re-Identification", 2014:
#
# `L_i = mean_P log(1 + exp(-a (s_ij - t))) + mean_N log(1 + exp(a (s_ij - t)))`
#
# with the cosines `s_ij` of row `i` to its positives `P` and its negatives `N`,
# a scale `a` and a threshold `t`.
#
# ## The function and the class
#
# They go into a file, `deviance.py`, because a recipe names a loss by its
# module and its class. `PairLoss` normalizes the embeddings, makes the masks of
# the pairs, and under `tf.distribute` compares with the rows of all replicas.
# It calls `pair_loss`, which returns one number for each row.

# %% deviance.py
import keras
from keras import ops

from keras_dml.losses import PairLoss
from keras_dml.ops import masked_mean, pair_similarities


def binomial_deviance_loss(similarities, positive, negative, scale, threshold):
    """Returns one loss for each row; a row without pairs gets 0."""
    excess = scale * (similarities - threshold)
    pull = masked_mean(ops.softplus(-excess), positive)
    return pull + masked_mean(ops.softplus(excess), negative)


@keras.saving.register_keras_serializable(package="deviance")
class BinomialDeviance(PairLoss):
    """Compares the cosine of every pair with a threshold."""

    def __init__(self, scale=4.0, threshold=0.5, warm_up=0, **kwargs):
        super().__init__(**kwargs)
        self.scale = scale
        self.threshold = threshold
        self.warm_up = warm_up  # steps in which the scale rises from zero

    def pair_loss(self, pairs):
        steps = ops.cast(pairs.step, "float32") + 1.0
        share = ops.minimum(steps / max(self.warm_up, 1), 1.0)
        return binomial_deviance_loss(
            pair_similarities(pairs),
            *pairs.masks,
            self.scale * share,
            self.threshold,
        )


# %% [markdown]
# ## Its gradient on two points
#
# Two embeddings of length 1 have the cosine `s`. If they are of one class, the
# loss is `log(1 + exp(-a (s - t)))`, its derivative by the cosine is
# `-a / (1 + exp(a (s - t)))`, and the gradient of each point is that number
# times the part of the other point that is at a right angle to it. Each row is
# half of the mean, and both rows depend on both points.

# %%
import sys

import numpy as np
import tensorflow as tf

sys.path.append(".")  # where deviance.py lies
import deviance

s = 0.8
points = tf.constant([[1.0, 0.0], [s, np.sqrt(1 - s**2)]], tf.float32)
loss = deviance.BinomialDeviance(scale=4.0, threshold=0.5)
for labels in ([7, 7], [7, 8]):
    with tf.GradientTape() as tape:
        tape.watch(points)
        value = loss(tf.constant(labels), points)
    slope = tape.gradient(value, points).numpy()
    print("labels", labels, "loss", float(value), "gradient", slope[0])

    sign = -1 if labels[0] == labels[1] else 1
    derivative = sign * 4.0 / (1 + np.exp(-sign * 4.0 * (s - 0.5)))
    first, second = points.numpy()
    np.testing.assert_allclose(
        slope[0], derivative * (second - s * first), atol=1e-5
    )

# %% [markdown]
# A step against the gradient moves the first point towards the second one if
# the labels are equal, and away from it if they are not.
#
# ## A recipe
#
# A recipe in a file names the loss as `MODULE.CLASS`. The base `_base` draws
# several images of each class, as pairs need them. Two warm-ups: `warmup_steps`
# lets the learning rate rise during the first steps, and the phase `warm_up`
# trains the head alone before the phase `train` trains everything, which
# protects the weights of a pretrained network. The third is the loss's own:
# `pairs.step` is the number of steps so far, in `fit` and wherever the layer
# `TrainingStep` and `AtStep` are around a loss. Ninety steps on small digits
# show that it runs, no more.

# %%
from pathlib import Path

Path("deviance.yaml").write_text(
    """
base: _base
about: Binomial deviance of cosines.
common:
  loss:
    deviance.BinomialDeviance: {scale: 4.0, threshold: 0.5, warm_up: 30}
default:
  sampling: {batch_size: 64, steps_per_epoch: 30}
  optimizer:
    backbone: {warmup_steps: 10}
  stages:
    - name: main
      phases:
        - {name: warm_up, epochs: 1, freeze: weights}
        - {name: train, epochs: 2}
"""
)

# %% [markdown]
# Photos train from a pretrained network. Then the section `pretrained` of
# `_base` comes after `default`: the phase `warm_up` stays, `train` gets the
# length that fits into the minutes, and the rates are lower. What shall be
# otherwise stands under `pretrained:` of your recipe, such as
# `pretrained: {stages: {main: {warm_up: {epochs: 2}}}}`.
# `keras-dml config PHOTOS --recipe deviance.yaml` shows every value.

# %%
import keras_dml

options = {"report": False, "export": False, "resume": True}
run = keras_dml.fit(
    "digits", recipe="deviance.yaml", output="runs/deviance", **options
)
print(run)

# %% [markdown]
# The same in a shell. `PYTHONPATH` names the folder of the module, which the
# command does not look into by itself:
#
#     PYTHONPATH=. keras-dml fit digits --recipe deviance.yaml
#
# ## A loss of logits
#
# A `LogitsLoss` needs nothing for a temperature of its own: the layer in front
# of it scales, and a phase changes the scale at an epoch, up or down. A scale
# of 8 in the first two epochs and of 16 afterwards, without a change of rates:
#
#     common:
#       model: {scale: 8.0}
#       loss:
#         mine.MyLoss: {}
#     default:
#       stages:
#         main:
#           train: {epochs: 6, heat: {epoch: 2, scale: 16.0, lr_factor: 1.0}}
#
# The attribute `takes` of the class, or `takes` beside its arguments, says
# what the loss is given, such as `logits`, which the layer `ScaledLogits` has
# scaled: [Recipes](../recipes.md#the-sections-of-a-configuration) leads to all
# values. Callbacks of your own go into `fit` of a Keras model, not into the
# command.
#
# In [a Keras model of your own](keras_model.ipynb) the loss goes to `compile`:
#
#     model.compile("adam", loss=deviance.BinomialDeviance())
#
# A loss that keras-dml itself shall have is described in
# [Contributing](../../CONTRIBUTING.md#a-loss-its-file-and-its-recipe).
