import os
import threading

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data.fixed_parallelism import fixed_parallelism


@pytest.mark.skipif(os.cpu_count() == 1, reason="needs two cores")
def test_maps_run_side_by_side_without_the_tuner():
    """Each call waits for the other; alone it would break the barrier."""
    barrier = threading.Barrier(2, timeout=60)

    def meet(value):
        barrier.wait()
        return value

    @tf.autograph.experimental.do_not_convert
    def call(value):
        return tf.numpy_function(meet, [value], tf.int64)

    dataset = tf.data.Dataset.range(8).map(
        call, num_parallel_calls=tf.data.AUTOTUNE
    )
    fixed = fixed_parallelism(dataset)
    assert fixed.options().autotune.enabled is False
    assert dataset.options().autotune.enabled is None
    found = list(fixed.as_numpy_iterator())
    np.testing.assert_array_equal(found, np.arange(8))
