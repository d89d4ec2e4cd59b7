"""Datasets that tf.data does not tune while they are read."""

import tensorflow as tf

# Two keep the training loop busy; tf.data's own choice may fill half the
# memory.
BATCHES_AHEAD = 2


def fixed_parallelism(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns the dataset with its maps on all cores, up to 16, all the time.

    With tf.data's autotuner, the end of an iteration now and then waits until
    the tuner wakes up, which is up to 60 seconds (TensorFlow 2.20).

    Args:
        dataset: `tf.data.Dataset` whose maps have `num_parallel_calls`
            `tf.data.AUTOTUNE`.

    Example:

    >>> doubled = tf.data.Dataset.range(3).map(
    ...     lambda x: 2 * x, num_parallel_calls=tf.data.AUTOTUNE
    ... )
    >>> [int(x) for x in fixed_parallelism(doubled)]
    [0, 2, 4]
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return dataset.with_options(options)
