"""Runs that are stopped: what ends them, and whether they lost anything."""

import numpy as np

from keras_dml.run.checkpoint import load_checkpoint


class StoppedError(Exception):
    """What ends a run in the middle."""


def last_checkpoint(folder):
    return load_checkpoint(folder / "checkpoints" / "last.npz")


def assert_same_weights(actual, expected):
    """Fails unless two checkpoints have the same weights and moments."""
    for group in ("model", "optimizer"):
        assert actual.paths[group] == expected.paths[group]
        for path, a, b in zip(
            actual.paths[group],
            actual.values[group],
            expected.values[group],
            strict=True,
        ):
            np.testing.assert_array_equal(a, b, err_msg=path)
