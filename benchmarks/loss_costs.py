"""Processor time of a step of every loss, beside the bare matrix products.

    python benchmarks/loss_costs.py

Forward and backward with the layers in front of the loss, gradients of the
embeddings and of the proxies. Every loss has the same embeddings, four rows a
class. A step and its products take turns, and each time is the median over the
rounds: the ratio holds on a machine that does other work too.
"""

import argparse
import json
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from keras_dml import losses
from keras_dml.losses.registry import LOSSES, input_of
from keras_dml.models import HEADS, HeadOptions

DIM, ROWS, CLASSES, CENTERS = 512, 128, 1000, 10
EUCLIDEAN = HeadOptions(proxies={"metric": "neg_squared_euclidean"})
SEVERAL = HeadOptions(proxies={"centers": CENTERS})
# What the head of a loss needs that is no default.
OPTIONS = {
    "proxynca": EUCLIDEAN,
    "proxynca_pp": EUCLIDEAN,
    "soft_triple": SEVERAL,
    "sub_center_arcface": SEVERAL,
    "softmax": HeadOptions(proxies={"metric": "dot", "unit_proxies": False}),
}


def make_batch(rows, classes, seed=0):
    """Returns embeddings near those of their class, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(rng.permutation(classes)[: rows // 4], 4)
    x = np.repeat(rng.standard_normal((rows // 4, DIM)), 4, axis=0)
    x += 1.5 * rng.standard_normal(x.shape)
    return tf.constant(x, tf.float32), tf.constant(labels, tf.int32)


def make_step(key, x, labels, classes):
    """Returns a step of a loss, and the products that it cannot do without."""
    embedding = keras.Input((DIM,))
    label = keras.Input((), dtype="int32")
    keras.layers.Identity()(label)
    output = HEADS[input_of(key)].connect(
        embedding, label, classes, OPTIONS.get(key, HeadOptions())
    )
    model = keras.Model([embedding, label], output)
    loss = losses.get(key)
    weights = [one.value for one in model.trainable_variables]

    @tf.function
    def step(x, labels):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(labels, model([x, labels], training=True))
        return value, *tape.gradient(value, [x, *weights])

    tables = [one for one in weights if one.shape[-1] == DIM]
    columns = tf.reshape(tables[0], (-1, DIM)) if tables else x
    gradient = tf.random.uniform((len(x), len(columns)))

    @tf.function
    def products(x, columns, gradient):
        found = [
            tf.matmul(x, columns, transpose_b=True),
            tf.matmul(gradient, columns),
        ]
        if tables:
            found.append(tf.matmul(gradient, x, transpose_a=True))
        return found

    return lambda: step(x, labels), lambda: products(x, columns, gradient)


def processor_ms(call, seconds):
    """Returns the processor time of a call, of all threads, in milliseconds."""
    calls, start, end = 0, time.process_time(), time.perf_counter() + seconds
    while not calls or time.perf_counter() < end:
        call()
        calls += 1
    return 1e3 * (time.process_time() - start) / calls


def measure(key, batch, classes, rounds, seconds):
    """Returns the row of a loss."""
    both = make_step(key, *batch, classes)
    for call in both:
        call()
    times = [
        [processor_ms(call, seconds) for call in both] for _ in range(rounds)
    ]
    step, products = map(statistics.median, zip(*times, strict=True))
    ratio = statistics.median(one / other for one, other in times)
    return {"loss": key, "step": step, "products": products, "ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=0.3, help="of calls in a round"
    )
    parser.add_argument(
        "--quick", action="store_true", help="try it out on small inputs"
    )
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    keras.utils.set_random_seed(0)
    classes = 50 if arguments.quick else CLASSES
    batch = make_batch(16 if arguments.quick else ROWS, classes)
    rows = []
    for key in arguments.only:
        row = measure(key, batch, classes, arguments.rounds, arguments.seconds)
        rows.append(row)
        if not arguments.json:
            print(
                f"| `{key}` | {row['step']:.1f} | {row['products']:.1f} | "
                f"{row['ratio']:.1f} |",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
