"""What training on several replicas costs beyond its arithmetic.

`python benchmarks/distributed.py replicas` compares two logical processors with
one, on the part of a step that grows with the classes. `python
benchmarks/distributed.py workers` starts 1, 2 and 3 processes on the loopback
address, and compares their steps with a model of them. `python
benchmarks/distributed.py model` prints that model for 1 to 256 devices.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time

LIMIT = 0.15


def build_head(classes, dim):
    """Proxies and a pair loss's gathering, under the current strategy."""
    import keras

    from keras_dml.layers import Proxies

    inputs = keras.Input((dim,))
    model = keras.Model(inputs, Proxies(classes, name="proxies")(inputs))
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def head_step(model, optimizer, rows, labels):
    """Forward, backward and update of the rows of one replica."""
    import keras
    import tensorflow as tf

    from keras_dml import distribute

    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        # What a loss on pairs does: own rows against all of them.
        pairs = tf.matmul(rows, distribute.all_gather(rows), transpose_b=True)
        value = loss(labels, 16.0 * model(rows)) + 1e-3 * tf.reduce_mean(pairs)
    variables = model.trainable_variables
    *gradients, row_gradient = tape.gradient(value, [*variables, rows])
    optimizer.apply_gradients(zip(gradients, variables, strict=True))
    return value + tf.reduce_sum(row_gradient)


def alternated(functions, repeats):
    """Median seconds of each function, called in turns."""
    times = {name: [] for name in functions}
    for function in functions.values():
        function()
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}


def replicas(arguments):
    """Two replicas against the same arithmetic without their exchange.

    What is as large as the classes, such as normalizing the proxies, is done
    by each replica: on cores that they share it takes twice as long as on one
    device, and on devices of their own just as long.
    """
    import numpy as np
    import tensorflow as tf

    from keras_dml import distribute

    strategy = distribute.get_strategy("mirrored", devices="cpu:2")
    generator = np.random.default_rng(0)
    batch, dim, classes = arguments.batch, arguments.dim, arguments.classes
    rows = tf.constant(generator.normal(size=(batch, dim)), tf.float32)
    labels = tf.constant(generator.integers(0, classes, batch))

    alone, alone_optimizer = build_head(classes, dim)

    @tf.function
    def one():
        return head_step(alone, alone_optimizer, rows, labels)

    with strategy.scope():
        model, optimizer = build_head(classes, dim)
    half = batch // 2

    def own(values):
        return strategy.experimental_distribute_values_from_function(
            lambda context: values[half * context.replica_id_in_sync_group :][
                :half
            ]
        )

    own_rows, own_labels = own(rows), own(labels)

    @tf.function
    def two():
        return strategy.run(
            head_step, args=(model, optimizer, own_rows, own_labels)
        )

    # The same arithmetic on the same cores: two that know nothing of each
    # other, each with its half of the batch and its own table.
    halves = []
    for number in range(2):
        with tf.device(f"CPU:{number}"):
            part = slice(half * number, half * (number + 1))
            halves.append(
                (
                    *build_head(classes, dim),
                    tf.identity(rows[part]),
                    tf.identity(labels[part]),
                )
            )

    @tf.function
    def apart():
        values = []
        for number, own_half in enumerate(halves):
            with tf.device(f"CPU:{number}"):
                values.append(head_step(*own_half))
        return values

    times = alternated(
        {"one": one, "apart": apart, "two": two}, arguments.repeats
    )
    overhead = times["two"] / times["apart"] - 1
    result = {
        "batch": batch,
        "dim": dim,
        "classes": classes,
        "one_device_ms": 1e3 * times["one"],
        "two_apart_ms": 1e3 * times["apart"],
        "two_replicas_ms": 1e3 * times["two"],
        "overhead": overhead,
        "limit": LIMIT,
        "kept": overhead <= LIMIT,
    }
    print(json.dumps(result, indent=2))


def exchange_seconds(count, size, bandwidth, latency, tensors=1):
    """Seconds of ring all-reduces over `count` devices.

    Each device sends `2 (count - 1) / count` of the bytes, in as many rounds
    as there are neighbors, twice; every further tensor waits once more.
    """
    if count == 1:
        return 0.0
    moved = 2 * (count - 1) / count * size
    waits = 2 * (count - 1) + tensors - 1
    return moved / bandwidth + waits * latency


def worker(arguments):
    """One of several processes: times of a step and of its parts."""
    import keras
    import numpy as np
    import tensorflow as tf

    from keras_dml import distribute

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = distribute.get_strategy("auto")
    count = distribute.num_workers()
    with strategy.scope():
        keras.utils.set_random_seed(0)
        network = keras.Sequential(
            [
                keras.Input((28, 28, 1)),
                keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
                keras.layers.Conv2D(64, 3, strides=2, activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dense(512),
                keras.layers.Dense(arguments.classes),
            ]
        )
        optimizer = keras.optimizers.SGD(0.01)
        optimizer.build(network.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    rows = arguments.batch
    generator = np.random.default_rng(distribute.worker_index())
    images = tf.constant(generator.normal(size=(rows, 28, 28, 1)), tf.float32)
    labels = tf.constant(generator.integers(0, arguments.classes, rows))
    variables = network.trainable_variables

    def compute():
        with tf.GradientTape() as tape:
            value = loss(labels, network(images, training=True))
        return value, tape.gradient(value, variables)

    def step():
        value, gradients = compute()
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return value

    def without_exchange():
        value, gradients = compute()
        return value + sum(tf.reduce_sum(one) for one in gradients)

    def reduce_of(words):
        def reduce():
            values = tf.zeros((words,)) + images[0, 0, 0, 0]
            if count == 1:
                return values[0]
            context = tf.distribute.get_replica_context()
            return context.all_reduce("SUM", values)[0]

        return reduce

    run = strategy.run if count > 1 else (lambda function: function())
    size = sum(int(np.prod(one.shape)) for one in variables)
    functions = {
        name: tf.function(lambda body=body: run(body), autograph=False)
        for name, body in {
            "step": step,
            "compute": without_exchange,
            "small": reduce_of(1),
            "large": reduce_of(size),
        }.items()
    }
    times = alternated(functions, arguments.repeats)
    if distribute.is_chief():
        tensors = len(variables)
        known = {"workers": count, "bytes": 4 * size, "tensors": tensors}
        print(json.dumps({**known, **times}))


def workers(arguments):
    """Steps of 1, 2 and 3 processes, and what the model says of them."""
    measured = [run_workers(count, arguments) for count in (1, 2, 3)]
    alone, two = measured[:2]
    # Bandwidth and latency from 2 workers; 3 are then foretold.
    latency = two["small"] / 2
    bandwidth = two["bytes"] / max(1e-9, two["large"] - two["small"])
    for one in measured:
        count = one["workers"]
        # Beyond the number of cores, processes wait for each other there too.
        crowd = max(1.0, count / os.cpu_count())
        exchange = exchange_seconds(
            count, one["bytes"], bandwidth / crowd, latency, one["tensors"]
        )
        update = crowd * (alone["step"] - alone["compute"])
        foretold = one["compute"] + update + exchange
        one["foretold"] = foretold
        one["error"] = foretold / one["step"] - 1
    print(
        json.dumps(
            {
                "bandwidth_mb_s": bandwidth / 1e6,
                "latency_ms": 1e3 * latency,
                "measured": measured,
            },
            indent=2,
        )
    )


def run_workers(count, arguments):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    processes = []
    for index in range(count):
        task = {"type": "worker", "index": index}
        config = {"cluster": {"worker": addresses}, "task": task}
        processes.append(
            subprocess.Popen(
                [
                    sys.executable,
                    __file__,
                    "worker",
                    f"--batch={arguments.batch}",
                    f"--classes={arguments.classes}",
                    f"--repeats={arguments.repeats}",
                ],
                env={**os.environ, "TF_CONFIG": json.dumps(config)},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    outputs = [process.communicate()[0] for process in processes]
    return json.loads(outputs[0].strip().splitlines()[-1])


def model(arguments):
    """Share of a step that is arithmetic, for 1 to 256 devices."""
    size = 4 * arguments.parameters
    rows = []
    for count in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        exchange = exchange_seconds(
            count,
            size,
            arguments.bandwidth * 1e9 / 8,
            arguments.latency / 1e6,
            arguments.tensors,
        )
        # The embeddings of all devices, gathered and their gradient summed.
        gathered = 4 * arguments.batch * count * arguments.dim
        exchange += 1.5 * exchange_seconds(
            count, gathered, arguments.bandwidth * 1e9 / 8, 0.0
        )
        step = arguments.compute / 1e3 + exchange
        rows.append(
            {
                "devices": count,
                "step_ms": round(1e3 * step, 2),
                "sent_mb": round(
                    2 * (count - 1) / count * (size + 1.5 * gathered) / 1e6, 1
                ),
                "efficiency": round(arguments.compute / 1e3 / step, 3),
            }
        )
    print(json.dumps(rows, indent=2))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["replicas", "workers", "worker", "model"]
    )
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--classes", type=int, default=11318)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--parameters", type=int, default=8_700_000)
    parser.add_argument("--tensors", type=int, default=8)
    parser.add_argument("--compute", type=float, default=100, help="ms")
    parser.add_argument("--bandwidth", type=float, default=10, help="Gbit/s")
    parser.add_argument("--latency", type=float, default=25, help="us")
    arguments = parser.parse_args()
    functions = {
        "replicas": replicas,
        "workers": workers,
        "worker": worker,
        "model": model,
    }
    functions[arguments.what](arguments)


if __name__ == "__main__":
    main()
