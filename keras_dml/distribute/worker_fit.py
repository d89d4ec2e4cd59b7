"""Lets the `fit` of Keras train on several workers.

Keras 3 cannot do this, https://github.com/keras-team/keras/issues/20585: before
the first step it averages a batch that it cannot convert, and after every step
it averages scalars over an axis that they do not have. `repair_fit` replaces
both in the one model that trains. `test_upstream` in `tests/distribute` fails
once Keras can train on several workers.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from keras_dml.distribute import workers


def repair_fit(
    trainer: keras.Model, stop_requested: Callable[[], bool]
) -> Callable[[], bool]:
    """Replaces the training step of a compiled model for several workers.

    All workers must also stop at the same step. Each step therefore sums,
    together with the loss, how many workers were told to stop.

    Args:
        trainer: A built and compiled model of a
            `tf.distribute.MultiWorkerMirroredStrategy`.
        stop_requested: Function that returns whether this worker was told to
            stop.

    Returns:
        Function that returns whether any worker had been told to stop when
        the last step began; the result is the same on all workers.
    """
    strategy = trainer.distribute_strategy
    steps = _Steps(trainer, strategy, stop_requested)
    trainer._maybe_symbolic_build = _built_already
    trainer.train_function = steps
    return lambda: steps.stops


class _Steps:
    """Runs a step; Keras calls it once per step as `train_function`."""

    def __init__(self, trainer, strategy, stop_requested):
        self.stop_requested = stop_requested
        self.stops = False
        self.count = 0
        self._step = _compiled_step(trainer, strategy)

    def __call__(self, iterator) -> dict[str, Any]:
        workers.mark("input" if self.count else "", self.count)
        batch = next(iterator)
        # Tracing makes the first step slow, so the heartbeat ignores it.
        workers.mark("step" if self.count else "", self.count)
        stop = tf.constant(float(self.stop_requested()))
        logs, stops = self._step(batch, stop)
        self.stops = bool(stops.numpy() > 0)
        self.count += 1
        workers.mark("", self.count)
        return logs


def _compiled_step(trainer, strategy):
    replicas = strategy.num_replicas_in_sync

    def one_replica(batch, stop):
        logs = trainer.train_step(batch)
        names = sorted(logs)
        values = [tf.cast(logs[name], tf.float32) for name in names]
        # One collective for all values.
        total = tf.distribute.get_replica_context().all_reduce(
            "SUM", tf.stack([*values, stop])
        )
        means = tf.unstack(total[:-1] / replicas, num=len(names))
        return dict(zip(names, means, strict=True)), total[-1]

    @tf.function(autograph=False)
    def step(batch, stop):
        results = strategy.run(one_replica, args=(batch, stop))
        return tf.nest.map_structure(
            lambda value: strategy.experimental_local_results(value)[0], results
        )

    return step


def _built_already(iterator=None, data_batch=None):
    """Replaces a build that fails; model and optimizer are already built."""
