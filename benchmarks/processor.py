"""Time on a processor without and with what `import keras_dml` asks for.

That is the allocator that TensorFlow has for GPUs
(`TF_CPU_ALLOCATOR_USE_BFC`) and the convolutions of oneDNN
(`TF_ENABLE_ONEDNN_OPTS`), unless these are set. Each way has a process of its
own, in turn; the best of its steps and of its batches. The weights of the
networks are random, which costs the same.

    python benchmarks/processor.py [BACKBONE@SIZE ...] [--turns 2]
        [--variable TF_ENABLE_ONEDNN_OPTS]
"""

import argparse
import json
import os
import subprocess
import sys
import time

VARIABLES = {
    "TF_CPU_ALLOCATOR_USE_BFC": ("false", "true"),
    "TF_ENABLE_ONEDNN_OPTS": ("0", "1"),
}
BATCH, STEPS = 64, 6
DEFAULT = [
    "mobilenet_v2@96",
    "mobilenet_v2@128",
    "mobilenet_v2@160",
    "mobilenet_v2@224",
    "resnet50@128",
    "small_cnn@28",
]


def best(function):
    """Milliseconds an image."""
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times) / BATCH * 1e3


def measure(name, size):
    """Milliseconds an image to train and to embed, and the peak memory."""
    import resource

    import keras
    import numpy as np

    from keras_dml import losses
    from keras_dml.models import (
        build_embedder,
        build_trainer,
        forward_function,
    )

    shape = (size, size, 3)
    embedder = build_embedder(
        name, shape, dim=512, weights="none", batch_norm="frozen"
    )
    trainer = build_trainer(embedder, 10, "embeddings")
    trainer.compile(keras.optimizers.SGD(0.01), losses.MultiSimilarity())
    rng = np.random.default_rng(0)
    labels = rng.integers(0, BATCH // 4, BATCH)
    images = rng.uniform(0, 255, (BATCH, *shape)).astype("float32")
    inputs = {"image": images, "label": labels}
    forward = forward_function(embedder)
    return {
        "train": best(lambda: trainer.train_on_batch(inputs, labels)),
        "embed": best(lambda: forward(images).numpy()),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_process(network, variable, value):
    return json.loads(
        subprocess.check_output(
            [sys.executable, __file__, network, "--one"],
            env={**os.environ, variable: value},
            stderr=subprocess.DEVNULL,
        )
    )


def compare(variable, networks, turns):
    print(f"\n| {variable} | | without | with | ratio |")
    print("|---|---|---|---|---|")
    for network in networks:
        measured = [
            [in_process(network, variable, way) for way in VARIABLES[variable]]
            for _ in range(turns)
        ]
        for key, unit in {"train": "ms", "embed": "ms", "peak": "MB"}.items():
            old, new = (
                min(turn[way][key] for turn in measured) for way in (0, 1)
            )
            row = f"{old:.2f} {unit} | {new:.2f} {unit} | {new / old:.2f}"
            print(f"| {network} | {key} | {row} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=DEFAULT)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--variable", choices=VARIABLES, default=None)
    parser.add_argument("--one", action="store_true")
    args = parser.parse_args()
    if args.one:
        name, size = args.networks[0].split("@")
        print(json.dumps(measure(name, int(size))))
        return
    for variable in [args.variable] if args.variable else VARIABLES:
        compare(variable, args.networks, args.turns)


if __name__ == "__main__":
    main()
