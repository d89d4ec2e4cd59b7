"""Several devices of JAX, by `keras.distribution`: a batch remains one batch.

The devices are virtual, and exist in processes of their own.
"""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from keras_dml import losses
from tests import backend_numbers
from tests.conftest import ROOT
from tests.losses.cases import CASES, LABELS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None, reason="JAX is not installed."
    ),
]


@pytest.fixture(scope="module")
def found():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.distribute.jax_devices"],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_losses_see_the_batch_of_both_devices(found):
    one, two = found["losses"]["one"], found["losses"]["two"]
    assert one.keys() == two.keys() == CASES.keys()
    for name, numbers in one.items():
        for expected, actual in zip(numbers, two[name], strict=True):
            np.testing.assert_allclose(
                actual, expected, 1e-4, 1e-5, err_msg=name
            )


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, case in CASES.items()
        if issubclass(case.cls, losses.PairLoss)
    ],
)
def test_a_loss_of_half_a_batch_would_be_noticed(found, name):
    """The mean of the losses of two halves is not the loss of the batch."""
    case = CASES[name]
    loss, y_pred = case.make(), case.predictions(LABELS).astype("float32")
    halves = [
        float(loss(LABELS[half], y_pred[half]))
        for half in (slice(0, 4), slice(4, 8))
    ]
    whole, _ = found["losses"]["two"][name]
    assert abs(np.mean(halves) - whole) > 1e-3 * abs(whole)


def test_models_train_as_on_one_device(found):
    """On TensorFlow, whose numbers are those of JAX on one device."""
    expected = backend_numbers.trained()
    assert found["devices"] == 2
    assert found["trained"].keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(
            found["trained"][name], value, 1e-4, 1e-5, err_msg=name
        )


def test_proxies_can_be_shared_out(found):
    proxies = found["proxies"]
    assert proxies["held"] == [[4, 6], [4, 6]]
    np.testing.assert_allclose(proxies["two"], proxies["one"], 1e-5, 1e-6)
