import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.optimizers import TorchAdam
from tests.conformance import roundtrip

RNG = np.random.default_rng(0)


def torch_adam(weights, gradients, rate, epsilon, l2=0.0):
    """The algorithm from its definition, in float64."""
    weights = weights.astype("float64")
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    for step, gradient in enumerate(gradients, start=1):
        gradient = gradient + l2 * weights
        m = 0.9 * m + 0.1 * gradient
        v = 0.999 * v + 0.001 * gradient**2
        mean, variance = m / (1 - 0.9**step), v / (1 - 0.999**step)
        weights = weights - rate * mean / (np.sqrt(variance) + epsilon)
    return weights


def run(optimizer, weights, gradients):
    variable = keras.Variable(weights.astype("float32"))
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient, "float32")], [variable])
    return np.asarray(variable.numpy())


@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-8])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_against_the_definition(epsilon, l2):
    weights, gradients = RNG.standard_normal(7), RNG.standard_normal((30, 7))
    actual = run(TorchAdam(4e-3, epsilon=epsilon, l2=l2), weights, gradients)
    expected = torch_adam(weights, gradients, 4e-3, epsilon, l2)
    np.testing.assert_allclose(
        actual - weights, expected - weights, rtol=1e-3, atol=2e-7
    )


def test_the_first_step_is_exact():
    """`1 - 0.999` in float32 would be wrong in the fifth digit."""
    zeros, gradient = np.zeros(5), RNG.standard_normal((1, 5))
    actual = run(TorchAdam(1.0, epsilon=1.0), zeros, gradient)
    expected = torch_adam(zeros, gradient, 1.0, 1.0)
    np.testing.assert_allclose(actual, expected, rtol=5e-7)


def displacements(optimizer, gradients, steps):
    """How far a variable has come from its start, at some of the steps."""
    variable = keras.Variable(np.zeros(gradients.shape[1], "float32"))
    optimizer.build([variable])
    apply = tf.function(lambda gradient: optimizer.apply([gradient]))
    found = {}
    for step, gradient in enumerate(gradients, start=1):
        apply(tf.constant(gradient))
        if step in steps:
            found[step] = np.linalg.norm(variable.numpy())
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon, ratios",
    [
        (1.0, {1: 0.032, 100: 0.21, 500: 0.45, 1000: 0.60, 2000: 0.74}),
        (1e-2, {1: 0.07, 100: 0.34, 500: 0.60, 1000: 0.73, 2000: 0.83}),
        (1e-8, {1: 1.0, 100: 1.0, 500: 1.0, 1000: 1.0, 2000: 1.0}),
    ],
)
def test_how_far_the_form_of_keras_stays_behind(epsilon, ratios):
    """The displacement of Keras' Adam as a share of ours, by the step."""
    gradients = 0.01 * RNG.standard_normal((2000, 500)).astype("float32")
    theirs, ours = (
        displacements(cls(4e-3, epsilon=epsilon), gradients, ratios)
        for cls in (keras.optimizers.Adam, TorchAdam)
    )
    for step, ratio in ratios.items():
        np.testing.assert_allclose(
            theirs[step] / ours[step], ratio, rtol=0.05, err_msg=f"{step}"
        )


def test_clipping_comes_before_the_coupled_decay():
    weights, gradients = RNG.standard_normal(5), 9 * RNG.standard_normal((5, 5))
    optimizer = TorchAdam(0.1, epsilon=1.0, l2=0.5, clipvalue=2.0)
    expected = torch_adam(weights, np.clip(gradients, -2, 2), 0.1, 1.0, l2=0.5)
    actual = run(optimizer, weights, gradients)
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_decoupled_decay_is_that_of_keras():
    weights, zeros = RNG.standard_normal(5), np.zeros((1, 5))
    optimizer = TorchAdam(0.1, weight_decay=0.5)
    np.testing.assert_allclose(
        run(optimizer, weights, zeros), 0.95 * weights, rtol=1e-6
    )


def test_roundtrip():
    roundtrip(TorchAdam(0.1, 0.8, 0.99, 1.0, l2=1e-4, clipvalue=10.0))


@pytest.mark.slow
def test_trains_in_fit_with_xla_and_resumes_from_file(policy, tmp_path):
    keras.utils.set_random_seed(0)
    x = keras.Input((4,))
    model = keras.Model(x, keras.layers.Dense(1, dtype="float32")(x))
    model.compile(TorchAdam(0.1, epsilon=1.0), "mse", jit_compile=True)
    data = RNG.standard_normal((16, 4)).astype("float32")
    targets = data.sum(axis=1, keepdims=True)

    def fit(one):
        options = {"epochs": 3, "shuffle": False, "verbose": 0}
        return one.fit(data, targets, **options).history["loss"]

    losses = fit(model)
    assert losses[-1] < losses[0]
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert fit(model) == fit(revived)


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_sparse_gradients_equal_dense_ones(l2):
    table = RNG.standard_normal((6, 3)).astype("float32")
    results = []
    for sparse in (True, False):
        variable = keras.Variable(table)
        optimizer = TorchAdam(0.1, epsilon=1.0, l2=l2)
        rows = tf.constant([1, 4, 1])
        gradient = tf.IndexedSlices(
            tf.constant([[3.0] * 3, [1.0] * 3, [-2.0] * 3]), rows, (6, 3)
        )
        dense = tf.convert_to_tensor(gradient)
        for _ in range(2):
            optimizer.apply([gradient if sparse else dense], [variable])
        results.append(np.asarray(variable.numpy()))
    np.testing.assert_allclose(*results, rtol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [{"beta_1": 1.0}, {"beta_2": -0.1}, {"epsilon": -1}, {"l2": -1}],
)
def test_arguments_are_checked(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"`{name}` must.*Received: {name}="):
        TorchAdam(**arguments)
