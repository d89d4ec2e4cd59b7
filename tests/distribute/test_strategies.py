import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import distribute
from keras_dml.errors import UsageError


def replica_index():
    return tf.distribute.get_replica_context().replica_id_in_sync_group


def test_identity_outside_a_strategy():
    x = tf.constant([[1.0, 2.0]])
    assert distribute.all_gather(x) is x
    assert distribute.first_row(x) == 0
    assert distribute.num_replicas() == 1


def test_gathering_joins_the_rows_of_the_replicas(strategy):
    shapes = []

    @tf.function
    def step():
        index = tf.cast(replica_index(), "float32")
        gathered = distribute.all_gather(tf.fill([2, 3], index))
        shapes.append(gathered.shape)
        return gathered

    results = strategy.experimental_local_results(strategy.run(step))
    for gathered in results:
        np.testing.assert_array_equal(
            gathered, np.repeat([[0.0] * 3, [1.0] * 3], 2, axis=0)
        )
    # The static size of the other axes must survive.
    assert shapes[0].as_list() == [None, 3]
    with strategy.scope():
        assert distribute.num_replicas() == 2


def test_rows_are_found_among_those_of_unequal_replicas(strategy):
    @tf.function
    def step(x):
        everything = distribute.all_gather(x)
        own = distribute.first_row(x) + tf.range(len(x))
        return x - tf.gather(everything, own), everything

    batches = tf.data.Dataset.range(7).batch(7)
    (batch,) = strategy.experimental_distribute_dataset(batches)
    results = strategy.experimental_local_results(
        strategy.run(step, args=(batch,))
    )
    assert [len(difference) for difference, _ in results] == [4, 3]
    for difference, everything in results:
        np.testing.assert_array_equal(difference, 0)
        np.testing.assert_array_equal(everything, range(7))


def test_gradient_of_gathering_is_summed_over_the_replicas(strategy):
    @tf.function
    def step():
        index = tf.cast(replica_index(), "float32")
        x = tf.fill([2, 1], index + 1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            rows = distribute.all_gather(x)
            value = tf.reduce_sum(rows**2) * (index + 1.0)
        return tape.gradient(value, x)

    gradients = strategy.experimental_local_results(strategy.run(step))
    # 2 x, times the factors 1 and 2 of both replicas.
    np.testing.assert_allclose(gradients[0], [[6.0], [6.0]])
    np.testing.assert_allclose(gradients[1], [[12.0], [12.0]])


def test_none_is_a_single_device():
    strategy = distribute.get_strategy("none")
    assert strategy.num_replicas_in_sync == 1
    with strategy.scope():
        assert distribute.num_replicas() == 1


def test_auto_is_mirrored_where_there_are_several_devices():
    several = distribute.get_strategy("auto", devices="cpu:2")
    assert several.num_replicas_in_sync == 2
    assert distribute.get_strategy("mirrored", devices="cpu:2") is several
    one = distribute.get_strategy("auto", devices="cpu:1")
    assert one.num_replicas_in_sync == 1


def test_one_processor_beside_a_gpu_is_refused(monkeypatch):
    """TensorFlow trained on the GPU all the same."""
    real = tf.config.list_logical_devices
    gpu = types.SimpleNamespace(name="/device:GPU:0")
    monkeypatch.setattr(
        tf.config,
        "list_logical_devices",
        lambda kind: [gpu] if kind == "GPU" else real(kind),
    )
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES=-1"):
        distribute.get_strategy("auto", devices="cpu:1")
    assert distribute.get_strategy("auto").num_replicas_in_sync == 1


def test_mixed_float16_is_refused_on_several_replicas(policy):
    if policy != "mixed_float16":
        distribute.get_strategy("auto", devices="cpu:2")
        return
    distribute.get_strategy("auto", devices="cpu:1")
    with pytest.raises(UsageError, match="`mixed_float16` is not safe.*2 dev"):
        distribute.get_strategy("auto", devices="cpu:2")


def test_mixed_float16_may_be_the_policy_of_a_part():
    with pytest.raises(UsageError, match="Received: policy 'mixed_float16'"):
        distribute.get_strategy(devices="cpu:2", policy="mixed_float16")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"name": "multi_worker"}, "needs to know the workers"),
        ({"name": "parameter_server"}, "Keras 3 cannot train with them"),
        ({"name": "mirorred"}, "Received: name='mirorred'"),
        ({"devices": "cpu"}, "such as 'cpu:2'.*devices='cpu'"),
        ({"devices": "tpu:2"}, "such as 'cpu:2'.*devices='tpu:2'"),
        ({"devices": "cpu:0"}, "from 1 to 99"),
        ({"devices": "cpu:99999"}, "from 1 to 99.*cpu:99999"),
        ({"devices": "gpu:99"}, "asks for 99 of GPU"),
    ],
)
def test_user_errors(arguments, message):
    with pytest.raises(UsageError, match=message):
        distribute.get_strategy(**arguments)


def test_logical_devices_can_be_made_only_at_the_start():
    tf.config.list_logical_devices()
    distribute.set_logical_devices("cpu:2")
    with pytest.raises(UsageError, match="before TensorFlow.*'cpu:3'"):
        distribute.set_logical_devices("cpu:3")


SCRIPT = """
from keras_dml import distribute
distribute.set_logical_devices("cpu:2")
strategy = distribute.get_strategy("mirrored", devices="cpu:2")
import keras, numpy
with strategy.scope():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(numpy.ones((8, 3)), numpy.ones((8, 1)), batch_size=4, verbose=0)
assert model.distribute_strategy is strategy
print("replicas", strategy.num_replicas_in_sync)
"""


@pytest.mark.slow
def test_training_on_two_logical_processors():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "replicas 2"


def test_devices_without_a_strategy_are_refused():
    with pytest.raises(
        UsageError, match="`devices` must be left out .*'gpu:4'"
    ):
        distribute.get_strategy("none", devices="gpu:4")
