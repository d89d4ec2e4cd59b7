"""Pooling, head, proxies and loss against the whole training step.

Run `python benchmarks/overhead.py` for MobileNetV2 at 96 pixels. The step of
the part alone starts from the backbone's features and updates the weights of
head and proxies; it alternates with the whole step in one run on the same
cores, so that other work on the machine meets both.
"""

import argparse
import json
import statistics
import time

import keras
import numpy as np
import tensorflow as tf

from keras_dml import losses
from keras_dml.models import HeadOptions, build_embedder, build_trainer

LIMIT = 0.1


def compiled_step(model, loss, inputs, labels):
    """One forward and backward pass and update, as a function of nothing."""
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    variables = model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = loss(labels, model(inputs, training=True))
        gradients = tape.gradient(value, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return value

    return step


def part_of(trainer):
    """The trainer from the features of its backbone on."""
    features = keras.Input(trainer.get_layer("backbone").output_shape[1:])
    x = features
    for name in ("pooling", "head", "proxies", "logits"):
        x = trainer.get_layer(name)(x)
    return keras.Model(features, x)


def seconds(step):
    start = time.perf_counter()
    step().numpy()
    return time.perf_counter() - start


def measure(batch_size, arguments):
    """Times both steps for one batch size."""
    keras.utils.set_random_seed(0)
    size = arguments.image_size
    embedder = build_embedder(
        arguments.backbone,
        (size, size, 3),
        weights="none",
        pooling=arguments.pooling,
        k=arguments.k,
        dim=arguments.dim,
    )
    options = HeadOptions(proxies={"metric": "neg_squared_euclidean"})
    trainer = build_trainer(embedder, arguments.classes, options=options)
    part = part_of(trainer)
    generator = np.random.default_rng(0)
    labels = tf.constant(generator.integers(0, arguments.classes, batch_size))
    images = generator.uniform(0, 255, (batch_size, size, size, 3))
    features = generator.uniform(0, 1, (batch_size, *part.input_shape[1:]))
    loss = losses.get(arguments.loss)
    whole_step = compiled_step(
        trainer,
        loss,
        {"image": tf.constant(images, tf.float32), "label": labels},
        labels,
    )
    part_step = compiled_step(
        part, loss, tf.constant(features, tf.float32), labels
    )
    seconds(whole_step), seconds(part_step)
    pairs = [
        (seconds(whole_step), seconds(part_step))
        for _ in range(arguments.repeats)
    ]
    whole = statistics.median(pair[0] for pair in pairs)
    part_alone = statistics.median(pair[1] for pair in pairs)
    return {
        "batch_size": batch_size,
        "step_ms": 1e3 * whole,
        "part_ms": 1e3 * part_alone,
        "ratio": part_alone / whole,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backbone", default="mobilenet_v2")
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--pooling", default="max")
    parser.add_argument("--k", type=int, default=1)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--loss", default="proxynca_pp")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 64])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = [measure(size, arguments) for size in arguments.batch_sizes]
    result = {"limit": LIMIT, "rows": rows}
    result["passed"] = all(row["ratio"] <= LIMIT for row in rows)
    if arguments.json:
        print(json.dumps(result))
        return
    for row in rows:
        print(
            f"batch {row['batch_size']}: whole step {row['step_ms']:.1f} ms, "
            f"pooling to loss {row['part_ms']:.1f} ms, "
            f"ratio {row['ratio']:.3f} (at most {LIMIT})"
        )


if __name__ == "__main__":
    main()
