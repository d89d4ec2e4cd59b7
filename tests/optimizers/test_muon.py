import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers
from keras_dml.optimizers import Muon, orthogonalized
from tests.conformance import roundtrip

RNG = np.random.default_rng(0)
SHAPES = {"wide": (4, 9), "tall": (9, 4), "convolution": (3, 3, 2, 5)}


def gradients(shape, count=6):
    return RNG.standard_normal((count, *shape)).astype("float32")


def run(optimizer, start, steps, name=None):
    variable = keras.Variable(start, name=name)
    for gradient in steps:
        optimizer.apply([tf.constant(gradient)], [variable])
    return np.asarray(variable.numpy())


@pytest.mark.parametrize("shape", [(7, 7), (5, 12), (12, 5)])
def test_singular_values_become_one_and_the_vectors_stay(shape):
    matrix = RNG.standard_normal(shape).astype("float32")
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    found = left.T @ np.asarray(orthogonalized(matrix)) @ right.T
    values = np.diag(found)
    assert np.all((values > 0.6) & (values < 1.3))
    np.testing.assert_allclose(found, np.diag(values), atol=2e-3)


def test_the_scale_of_a_gradient_does_not_matter():
    matrix = RNG.standard_normal((4, 6)).astype("float32")
    one, other = (
        np.asarray(orthogonalized(scale * matrix)) for scale in (1.0, 1e4)
    )
    np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_zero_gradient_does_not_move_a_kernel():
    start = RNG.standard_normal((3, 4)).astype("float32")
    actual = run(Muon(0.1), start, np.zeros((2, 3, 4), "float32"))
    np.testing.assert_array_equal(actual, start)


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_kernels_move_as_by_keras_muon_of_the_matrix(shape, nesterov):
    """Keras' optimizer takes matrices only."""
    start, steps = gradients(shape, 1)[0], gradients(shape)
    actual = run(Muon(0.1, nesterov=nesterov), start, steps)
    matrix = (-1, shape[-1])
    theirs = keras.optimizers.Muon(
        0.1, nesterov=nesterov, adam_weight_decay=0.0, weight_decay=0.0
    )
    expected = run(
        theirs, start.reshape(matrix), [g.reshape(matrix) for g in steps]
    )
    np.testing.assert_allclose(actual.reshape(matrix), expected, atol=2e-6)
    assert not np.allclose(actual, start)


@pytest.mark.parametrize(
    "shape", [(), (5,), (3, 3, 4, 1)], ids=["scalar", "vector", "depthwise"]
)
def test_other_variables_move_as_by_adam(shape):
    start, steps = gradients(shape, 1)[0], gradients(shape)
    actual = run(Muon(0.1), start, steps)
    expected = run(keras.optimizers.Adam(0.1), start, steps)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


def test_a_bias_of_several_axes_moves_as_by_adam():
    """As those of attention, one for each head."""
    start, steps = gradients((4, 9), 1)[0], gradients((4, 9))
    actual = run(Muon(0.1), start, steps, name="bias")
    expected = run(keras.optimizers.Adam(0.1), start, steps)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-7)


def test_an_entry_moves_by_about_the_rate_times_the_scale():
    start = np.zeros((64, 32), "float32")
    moved = run(Muon(0.1, scale=0.5), start, gradients(start.shape, 1))
    assert np.sqrt(np.mean(moved**2)) == pytest.approx(0.05, rel=0.15)


def test_weight_decay():
    start = RNG.standard_normal((4, 4)).astype("float32")
    zeros = np.zeros((1, 4, 4), "float32")
    actual = run(Muon(0.1, weight_decay=0.5), start, zeros)
    np.testing.assert_allclose(actual, start * (1 - 0.05), rtol=1e-6)


def test_a_compiled_step_equals_an_eager_one():
    start, steps = gradients((3, 3, 2, 4), 1)[0], gradients((3, 3, 2, 4))
    eager = run(Muon(0.1), start, steps)
    variable, optimizer = keras.Variable(start), Muon(0.1)
    optimizer.build([variable])
    apply = tf.function(
        lambda gradient: optimizer.apply([gradient]), jit_compile=True
    )
    for gradient in steps:
        apply(tf.constant(gradient))
    np.testing.assert_allclose(variable.numpy(), eager, atol=1e-5)


def test_saving():
    optimizer = Muon(
        0.02, 0.9, False, 4, 0.3, 0.8, 0.99, 1e-6, weight_decay=0.1
    )
    assert roundtrip(optimizer).get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    "wrong",
    [{"momentum": 1.0}, {"steps": 0}, {"scale": -1.0}, {"beta_2": 1.5}],
    ids=str,
)
def test_a_number_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}` must"):
        Muon(**wrong)


def layer_paths():
    """The paths of the variables of layers that hold proxies or tables."""
    label = np.zeros(2, "int32")
    rows = np.ones((2, 3), "float32")
    return [
        (layers.Proxies(4), rows),
        (layers.Proxies(4, centers=2, name="proxies"), rows),
        (layers.SampledProxies(4, 3, name="sampled"), [rows, label]),
        (layers.SampleAwareProxies(4, memory_size=8), [rows, label]),
        (layers.ManifoldSimilarities(4), rows),
        (keras.layers.Embedding(4, 3, name="position"), label),
    ]


@pytest.mark.parametrize("layer, inputs", layer_paths())
def test_proxies_and_tables_move_as_by_adam(layer, inputs):
    layer(inputs)
    (variable,) = layer.trainable_variables
    start = np.array(variable)
    steps = gradients(start.shape)
    others = (Muon(0.1), keras.optimizers.Adam(0.1), Muon(0.1, exclude=[]))
    moved = []
    for optimizer in others:
        variable.assign(start)
        for gradient in steps:
            optimizer.apply([tf.constant(gradient)], [variable])
        moved.append(np.array(variable))
    np.testing.assert_allclose(moved[0], moved[1], rtol=1e-6, atol=1e-6)
    assert abs(moved[0] - moved[2]).max() > 1e-3


@pytest.mark.parametrize("name", ["embedding", "embedding_head", "proxies_net"])
def test_kernels_of_a_layer_named_embedding_stay_orthogonalized(name):
    layer = keras.layers.Dense(4, use_bias=False, name=name)
    layer.build((None, 3))
    by_muon, by_adam = Muon(), Muon(exclude=[name])
    for optimizer, number in ((by_muon, 1), (by_adam, 2)):
        optimizer.build(layer.trainable_variables)
        moments = [one for one in optimizer.variables if "kernel" in one.path]
        assert len(moments) == number


def test_a_config_of_before_it_excluded_variables_is_read():
    """Its state has no second moments for them."""
    config = Muon().get_config()
    del config["exclude"]
    assert Muon.from_config(config).exclude == []
    revived = roundtrip(Muon(exclude=["head"]))
    assert revived.exclude == ["head"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"nesterov": "false"}, "`nesterov` must be True or False"),
        ({"exclude": "head"}, "`exclude` must be a list of regular"),
        ({"exclude": ["("]}, r"`exclude` must be a list of regular.*'\('"),
        ({"exclude": [3]}, "`exclude` must be a list of regular.*3:"),
    ],
)
def test_refused_arguments(wrong, message):
    with pytest.raises(ValueError, match=message):
        Muon(**wrong)
