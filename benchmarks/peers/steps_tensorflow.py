"""Training steps of `loss_speed_keras_dml.py` under TensorFlow."""

import os

import tensorflow as tf

# It warns of functions made anew, one a case.
tf.get_logger().setLevel("ERROR")
THREADS = int(os.environ["OMP_NUM_THREADS"])
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(THREADS)


def step(model, x, labels, weights, mode):
    @tf.function(jit_compile=mode == "xla")
    def compute(x, labels):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = model(x, labels)
        sources = [x, *(weight.value for weight in weights)]
        return value, *tape.gradient(value, sources)

    return lambda: compute(x, labels)


def floor(products, *factors):
    compute = tf.function(products)
    return lambda: compute(*factors)


def peak_growth(step):
    """From TensorFlow's own count of its tensors, inside of XLA too.

    `None` on processors where TensorFlow counts nothing, such as AMD's.
    """
    try:
        tf.config.experimental.reset_memory_stats("CPU:0")
    except ValueError:
        return None
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    step()
    return tf.config.experimental.get_memory_info("CPU:0")["peak"] - before
