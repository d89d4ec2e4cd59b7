import numpy as np
import pytest
import tensorflow as tf

from keras_dml.ops.rows import entries
from keras_dml.ops.sample_aware import join_exponents, split_exponents
from tests.conformance import numerical_gradient
from tests.losses import naive_weighted_exponents as naive

RNG = np.random.default_rng(0)
LABELS = np.array([0, 3, 1, 1, 3], "int32")
COSINES = RNG.uniform(-1, 1, (5, 4))
WEIGHTS = RNG.uniform(0.1, 2, (5, 4))
SCALE, MARGIN = 7.0, 0.2


def joined(cosines):
    own = WEIGHTS[np.arange(5), LABELS]
    expected = naive.join(LABELS, COSINES, WEIGHTS, SCALE, MARGIN)
    return join_exponents(
        tf.convert_to_tensor(cosines),
        LABELS,
        SCALE * WEIGHTS,
        SCALE * own,
        MARGIN,
        own,
        expected[0, 0, -1],
    )


@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_against_loops(jit_compile):
    function = joined
    if jit_compile is not None:
        function = tf.function(joined, jit_compile=jit_compile)
    np.testing.assert_allclose(
        function(COSINES),
        naive.join(LABELS, COSINES, WEIGHTS, SCALE, MARGIN),
        rtol=1e-12,
    )


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_gradient_against_differences(jit_compile):
    direction = RNG.standard_normal((5, 1, 7))

    def along(cosines):
        """The infinite entries do not change, and neither do the last."""
        output = joined(cosines)
        finite = tf.where(output > -1e30, output, tf.zeros_like(output))
        return tf.reduce_sum(finite * direction)

    def gradient(cosines):
        with tf.GradientTape() as tape:
            tape.watch(cosines)
            value = along(cosines)
        return tape.gradient(value, cosines)

    if jit_compile is not None:
        gradient = tf.function(gradient, jit_compile=jit_compile)
    expected = numerical_gradient(lambda s: float(along(s)), COSINES, 1e-6)
    np.testing.assert_allclose(
        gradient(tf.constant(COSINES)), expected, rtol=1e-6, atol=1e-6
    )


def test_weights_have_no_gradient():
    factors, own = tf.Variable(WEIGHTS), tf.Variable(WEIGHTS[:, 0])
    with tf.GradientTape() as tape:
        output = join_exponents(
            tf.constant(COSINES), LABELS, factors, own, 0.1, own, own[0]
        )
        value = tf.reduce_sum(output[:, :, -3:])
    assert tape.gradient(value, [factors, own]) == [None, None]


def test_parts():
    output = naive.join(LABELS, COSINES, WEIGHTS, SCALE, MARGIN)
    parts = split_exponents(tf.constant(output), "a_loss")
    assert parts.num_classes == 4
    np.testing.assert_array_equal(parts.columns, output[:, 0])
    np.testing.assert_array_equal(parts.own, output[:, 0, 4])
    np.testing.assert_array_equal(parts.own_weights, output[:, 0, 5])
    assert parts.weight_of_others == output[0, 0, 6]


@pytest.mark.parametrize("shape", [(5, 7), (5, 2, 7), (5, 1, 3)])
def test_other_shapes_are_refused(shape):
    message = rf"'a_loss'.*SampleAwareProxies.*{shape[0]}, {shape[1]}"
    with pytest.raises(ValueError, match=message):
        split_exponents(np.ones(shape, "float32"), "a_loss")


def test_entries():
    actual = entries(COSINES, LABELS)
    np.testing.assert_array_equal(actual, COSINES[np.arange(5), LABELS])
