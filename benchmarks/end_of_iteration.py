"""How long the end of an iteration of tf.data waits, with its tuner or not."""

import argparse
import threading
import time

import tensorflow as tf

from keras_dml.data.fixed_parallelism import BATCHES_AHEAD, fixed_parallelism


@tf.autograph.experimental.do_not_convert
def _double(rows):
    return rows * 2


def _read(tuned: bool, seconds: int, waits: list[float]) -> None:
    """Takes an element each second, then ends and times the end."""
    batches = tf.data.Dataset.range(10**9).batch(128)
    batches = batches.map(_double, num_parallel_calls=tf.data.AUTOTUNE)
    batches = batches.prefetch(BATCHES_AHEAD)
    iterator = iter(batches if tuned else fixed_parallelism(batches))
    for _ in range(seconds):
        next(iterator)
        time.sleep(1)
    start = time.perf_counter()
    del iterator
    waits.append(round(time.perf_counter() - start, 1))


def main() -> None:
    """Prints the waits of iterations that last from 12 seconds on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4)
    repeats = parser.parse_args().repeats
    for tuned in (True, False):
        waits: dict[int, list[float]] = {12: [], 24: [], 36: [], 48: []}
        threads = [
            threading.Thread(target=_read, args=(tuned, seconds, found))
            for seconds, found in waits.items()
            for _ in range(repeats)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("with the tuner" if tuned else "without it", waits)


if __name__ == "__main__":
    main()
