"""A step with a sample of very many classes against one with all of them.

Run `python benchmarks/sampled_proxies.py`. A step is proxies, normalized
softmax, gradients and the update of the proxies by Adam, without XLA; the
embeddings are given. Each case is a process of its own, so that none holds the
memory of another; those with 200,000 classes take turns. Times are the median
over the rounds of the least step of a round.

The memory of a step is the most that it holds beyond the tables, that is the
proxies and the state of their optimizer, by TensorFlow's own count. The dense
form is measured with 200,000 classes: with a million, a step alone would take
ten times the table of 2 GB.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time

DIM = 512
SCALE = 20.0
SPEED_TARGET = 5.0
MEMORY_TARGET = 0.2
MEMORY_STEPS = 5
DENSE_CLASSES = 200_000
CLASSES = 1_000_000


def make_step(kind, classes, arguments):
    """A function of nothing that does one update, and the tables' bytes."""
    import keras
    import numpy as np
    import tensorflow as tf

    from keras_dml import layers, losses
    from keras_dml.optimizers import RowLazyAdam

    keras.utils.set_random_seed(0)
    loss = losses.NormalizedSoftmax()
    # A million normal numbers take long to draw, and change no time.
    options = {"initializer": keras.initializers.Constant(0.1)}
    if kind == "dense":
        head = layers.Proxies(classes, **options)
        head.build((None, DIM))
        optimizer = keras.optimizers.Adam(1e-3)
    else:
        size = round(arguments.sample * classes)
        head = layers.SampledProxies(classes, size, **options)
        head.build([(None, DIM), (None,)])
        loss = losses.OnSampledClasses(loss)
        optimizer = RowLazyAdam(1e-3)
    optimizer.build([head.proxies])
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((arguments.batch, DIM)), "float32")
    labels = tf.constant(rng.integers(0, classes, arguments.batch), "int32")

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            tape.watch(x)
            inputs = x if kind == "dense" else [x, labels]
            value = loss(labels, SCALE * head(inputs, training=True))
        to_x, to_table = tape.gradient(value, [x, head.proxies.value])
        optimizer.apply([to_table], [head.proxies])
        return value, to_x

    state = sum(
        4 * int(np.prod(weight.shape)) for weight in optimizer.variables
    )
    return step, {"proxies": 4 * classes * DIM, "state": state}


def peak_growth(step):
    """Bytes that a step holds at most beyond those held before it.

    NaN on processors where TensorFlow counts nothing, such as AMD's.
    """
    import tensorflow as tf

    # The first one traces, the second is the first on a warm allocator.
    step()
    step()
    growth = []
    # The most of some steps: which operations meet is up to the scheduler.
    for _ in range(MEMORY_STEPS):
        try:
            tf.config.experimental.reset_memory_stats("CPU:0")
        except ValueError:
            return math.nan
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        step()
        after = tf.config.experimental.get_memory_info("CPU:0")
        growth.append(after["peak"] - before)
    return max(growth)


def serve(kind, classes, arguments):
    """Answers each line of the input with the times of some steps."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(arguments.threads)
    tf.config.threading.set_inter_op_parallelism_threads(arguments.threads)
    step, tables = make_step(kind, classes, arguments)
    print(json.dumps({"step_bytes": peak_growth(step), **tables}), flush=True)
    for _ in sys.stdin:
        wall, processor = [], []
        for _ in range(arguments.steps):
            start = time.perf_counter(), time.process_time()
            step()[0].numpy()
            wall.append(time.perf_counter() - start[0])
            processor.append(time.process_time() - start[1])
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        answer = {
            "wall_ms": 1e3 * min(wall),
            "processor_ms": 1e3 * min(processor),
            "resident_bytes": used,
        }
        print(json.dumps(answer), flush=True)


def measure(cases, arguments):
    """A row for each case; their processes take turns."""
    started = {}
    for case in cases:
        command = [sys.executable, __file__, "--serve", *map(str, case)]
        for name in ("batch", "sample", "threads", "steps"):
            command += [f"--{name}", str(getattr(arguments, name))]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        # One after the other: building takes the most memory.
        started[case] = process, json.loads(process.stdout.readline())
    rounds = {case: [] for case in cases}
    for _ in range(arguments.rounds):
        for case, (process, _) in started.items():
            print("go", file=process.stdin, flush=True)
            rounds[case].append(json.loads(process.stdout.readline()))
    rows = []
    for (kind, classes), (process, sizes) in started.items():
        process.stdin.close()
        process.wait()
        found = rounds[kind, classes]
        rows.append(
            {"kind": kind, "classes": classes, **sizes}
            | {
                name: statistics.median(one[name] for one in found)
                for name in found[0]
            }
        )
    return rows


def print_rows(rows):
    print(
        f"{'':10}{'classes':>10}{'wall ms':>10}{'processor':>11}"
        f"{'step MiB':>10}{'proxies':>9}{'state':>8}{'resident':>10}"
    )
    for row in rows:
        sizes = [
            row[name] / 2**20
            for name in ("step_bytes", "proxies", "state", "resident_bytes")
        ]
        print(
            f"{row['kind']:10}{row['classes']:10,}{row['wall_ms']:10.0f}"
            f"{row['processor_ms']:11.0f}{sizes[0]:10.0f}{sizes[1]:9.0f}"
            f"{sizes[2]:8.0f}{sizes[3]:10.0f}"
        )


def print_ratios(rows):
    """Sampled over dense at the same number of classes."""
    by_case = {(row["kind"], row["classes"]): row for row in rows}
    for (kind, classes), row in by_case.items():
        dense = by_case.get(("dense", classes))
        if kind == "dense" or dense is None:
            continue
        faster = {
            name: dense[f"{name}_ms"] / row[f"{name}_ms"]
            for name in ("wall", "processor")
        }
        memory = row["step_bytes"] / dense["step_bytes"]
        print(
            f"{classes:,} classes: {faster['wall']:.1f} times as fast (wall), "
            f"{faster['processor']:.1f} (processor), target "
            f"{SPEED_TARGET:.0f}; memory of the step {memory:.3f}, target "
            f"{MEMORY_TARGET}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--sample", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--quick", action="store_true", help="try it out with few classes"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        kind, classes = arguments.serve
        serve(kind, int(classes), arguments)
        return
    few, many = (4000, 20_000) if arguments.quick else (DENSE_CLASSES, CLASSES)
    # The tables of a million classes have the memory for themselves.
    rows = measure([("dense", few), ("sampled", few)], arguments)
    rows += measure([("sampled", many)], arguments)
    if arguments.json:
        print(json.dumps(rows))
        return
    print_rows(rows)
    print_ratios(rows)


if __name__ == "__main__":
    main()
