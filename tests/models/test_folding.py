import gc
import weakref

import keras
import numpy as np
import pytest
from keras import layers, ops

from keras_dml import losses
from keras_dml.models import (
    build_embedder,
    build_trainer,
    forward_function,
    set_batch_norm_mode,
)
from keras_dml.models.folding import (
    FoldedConvolution,
    fold_batch_norm,
    fold_for_inference,
)
from keras_dml.models.freezing import freeze_all, unfreeze

SHAPE = (12, 12, 3)
IMAGES = np.random.default_rng(0).normal(size=(4, *SHAPE)).astype("float32")


def network(convolution, **normalization):
    """A network whose statistics and weights are not those of the start."""
    image = keras.Input(SHAPE)
    x = convolution(image)
    x = layers.BatchNormalization(**normalization)(x)
    x = layers.ReLU()(x)
    x = layers.Conv2D(5, 1)(x)
    model = keras.Model(image, x, name="backbone")
    generator = np.random.default_rng(1)
    for variable in model.variables:
        variable.assign(generator.uniform(0.2, 1.5, variable.shape))
    return model


def gradients(model):
    """The gradients of the mean square of the outputs, by variable."""
    tf = pytest.importorskip("tensorflow")
    with tf.GradientTape() as tape:
        loss = ops.mean(ops.square(model(IMAGES, training=True)))
    variables = model.trainable_variables
    found = tape.gradient(loss, [one.value for one in variables])
    return dict(zip([one.path for one in variables], found, strict=True))


def folded_layers(model):
    return [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, FoldedConvolution)
    ]


@pytest.mark.parametrize("mode", ["frozen", "frozen_statistics"])
@pytest.mark.parametrize(
    ("convolution", "normalization"),
    [
        (lambda: layers.Conv2D(7, 3, use_bias=False), {}),
        (lambda: layers.Conv2D(7, 3, strides=2, padding="same"), {}),
        (lambda: layers.DepthwiseConv2D(3, depth_multiplier=2), {}),
        (lambda: layers.Conv2D(6, 3, groups=3), {"scale": False}),
        (lambda: layers.Conv2D(6, 3, dilation_rate=2), {"center": False}),
    ],
)
def test_outputs_and_gradients_are_equal(convolution, normalization, mode):
    plain = set_batch_norm_mode(network(convolution(), **normalization), mode)
    folded = fold_batch_norm(plain)
    assert len(folded_layers(folded)) == 1
    for training in (False, True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(folded(IMAGES, training=training)),
            ops.convert_to_numpy(plain(IMAGES, training=training)),
            rtol=1e-5,
            atol=1e-5,
        )
    assert {id(one) for one in folded.variables} == {
        id(one) for one in plain.variables
    }
    if keras.backend.backend() != "tensorflow":
        return
    expected, found = gradients(plain), gradients(folded)
    assert found.keys() == expected.keys()
    for path, gradient in expected.items():
        np.testing.assert_allclose(found[path], gradient, rtol=1e-3, atol=1e-5)


class CenteredConv2D(layers.Conv2D):
    """A convolution by another kernel than the one it holds."""

    def call(self, inputs):
        kernel = self.kernel - ops.mean(self.kernel)
        return ops.add(self.convolution_op(inputs, kernel), self.bias)


@pytest.mark.parametrize(
    ("convolution", "normalization"),
    [
        (lambda: layers.Conv2D(7, 3, activation="relu"), {}),
        (lambda: layers.Conv2D(7, 3, dtype="mixed_bfloat16"), {}),
        (lambda: layers.Conv2DTranspose(7, 3), {}),
        (lambda: layers.Dense(7), {}),
        (lambda: CenteredConv2D(7, 3), {}),
        # As many rows as channels.
        (lambda: layers.Conv2D(10, 3), {"axis": 1}),
    ],
)
def test_other_layers_stay(convolution, normalization):
    plain = network(convolution(), **normalization)
    plain = set_batch_norm_mode(plain, "frozen")
    assert fold_batch_norm(plain) is plain


def test_batch_norm_that_is_unfrozen_trains_again():
    plain, twin = (network(layers.Conv2D(7, 3)) for _ in range(2))
    freeze_all(plain)
    folded = fold_batch_norm(plain)
    assert len(folded_layers(folded)) == 1
    unfreeze(plain)
    np.testing.assert_allclose(
        ops.convert_to_numpy(folded(IMAGES, training=True)),
        ops.convert_to_numpy(twin(IMAGES, training=True)),
        rtol=1e-5,
        atol=1e-5,
    )
    for variable, expected in zip(
        folded.variables, plain.variables, strict=True
    ):
        assert variable is expected
    for variable, expected in zip(plain.variables, twin.variables, strict=True):
        np.testing.assert_allclose(variable, expected, rtol=1e-5)


def read_twice(x):
    x = layers.Conv2D(4, 3)(x)
    return layers.Add()([x, layers.BatchNormalization()(x)])


def called_twice(x):
    convolution = layers.Conv2D(3, 3)
    x = layers.ReLU()(layers.BatchNormalization()(convolution(x)))
    return convolution(x)


def returned(x):
    x = layers.Conv2D(4, 3)(x)
    return [x, layers.ReLU()(layers.BatchNormalization()(x))]


@pytest.mark.parametrize("graph", [read_twice, called_twice, returned])
def test_a_convolution_with_another_use_is_not_folded(graph):
    image = keras.Input(SHAPE)
    plain = set_batch_norm_mode(keras.Model(image, graph(image)), "frozen")
    assert fold_batch_norm(plain) is plain


def test_batch_norm_that_trains_is_not_folded():
    plain = network(layers.Conv2D(7, 3))
    assert fold_batch_norm(plain) is plain
    folded = fold_batch_norm(plain, inference=True)
    assert len(folded_layers(folded)) == 1


def nesting(mode):
    """An embedder whose statistics are not those of the start."""
    keras.utils.set_random_seed(0)
    embedder = build_embedder("small_cnn", SHAPE, dim=8, batch_norm=mode)
    generator = np.random.default_rng(1)
    for variable in embedder.get_layer("backbone").variables:
        variable.assign(generator.uniform(0.2, 1.5, variable.shape))
    return embedder


def embedded(model, images):
    return ops.convert_to_numpy(model(images, training=False))


@pytest.mark.parametrize("mode", ["train", "frozen"])
def test_an_embedder_embeds_the_same_folded(mode):
    embedder = nesting(mode)
    faster = fold_for_inference(embedder)
    assert folded_layers(faster) and not folded_layers(embedder)
    assert {id(one) for one in faster.variables} == {
        id(one) for one in embedder.variables
    }
    assert faster.inputs[0].name == embedder.inputs[0].name
    images = np.random.default_rng(2).uniform(0, 255, (3, *SHAPE))
    for _ in range(2):
        expected = embedded(embedder, images)
        np.testing.assert_allclose(
            embedded(faster, images), expected, rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            np.asarray(forward_function(embedder)(images)),
            expected,
            rtol=1e-4,
            atol=1e-5,
        )
        # What is folded follows the weights that train.
        for variable in embedder.get_layer("backbone").variables:
            variable.assign(variable * 1.1)


class Doubled(keras.Model):
    """A functional model that computes more than its graph."""

    def __init__(self):
        plain = network(layers.Conv2D(7, 3))
        super().__init__(plain.input, plain.output)

    def call(self, inputs, training=None, mask=None):
        return 2 * super().call(inputs, training=training) + 1


def nested(image):
    return network(layers.Conv2D(7, 3))(image)


def overridden(image):
    return Doubled()(image)


def flipped(image):
    """The mean of an image and its mirror image."""
    inner = network(layers.Conv2D(7, 3))
    return layers.Average()([inner(image), inner(ops.flip(image, 2))])


def of_two_sizes(image):
    any_size = keras.Input((None, None, 3))
    x = layers.BatchNormalization()(layers.Conv2D(7, 3)(any_size))
    inner = keras.Model(any_size, layers.GlobalMaxPooling2D()(x))
    return layers.Average()([inner(image), inner(layers.Resizing(9, 9)(image))])


def of_two_inputs(image):
    pair = [keras.Input(SHAPE), keras.Input(SHAPE)]
    x = layers.BatchNormalization()(layers.Conv2D(7, 3)(pair[0]))
    y = layers.Conv2D(7, 3)(pair[1])
    return keras.Model(pair, layers.Subtract()([x, y]))([image, 2 * image])


@pytest.mark.parametrize(
    ("graph", "count"),
    [
        (nested, 1),
        (overridden, 0),
        (flipped, 1),
        (of_two_sizes, 1),
        (of_two_inputs, 1),
    ],
)
def test_a_model_computes_the_same_folded(graph, count):
    image = keras.Input(SHAPE)
    model = keras.Model(image, graph(image))
    generator = np.random.default_rng(1)
    for variable in model.variables:
        variable.assign(generator.uniform(0.2, 1.5, variable.shape))
    assert len(folded_layers(fold_for_inference(model))) == count
    np.testing.assert_allclose(
        np.asarray(forward_function(model)(IMAGES)),
        model.predict(IMAGES, verbose=0),
        rtol=1e-4,
        atol=1e-4,
    )


def test_an_embedder_that_nobody_holds_is_freed():
    embedder = nesting("train")
    forward_function(embedder)(np.zeros((1, *SHAPE)))
    held = weakref.ref(embedder)
    del embedder
    gc.collect()
    assert held() is None


def test_a_model_without_networks_stays():
    head = build_embedder("small_cnn", SHAPE, dim=8).get_layer("head")
    image = keras.Input((4,))
    model = keras.Model(image, layers.Dense(3)(image))
    assert fold_for_inference(model) is model
    assert fold_for_inference(head) is head


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["train", "frozen"])
def test_a_trainer_trains_the_layers_of_its_embedder(mode):
    embedder = build_embedder("small_cnn", (24, 24, 1), dim=8, batch_norm=mode)
    trainer = build_trainer(embedder, 3, "similarities")
    assert bool(folded_layers(trainer)) == (mode == "frozen")
    before = [np.array(one) for one in embedder.trainable_variables]
    trainer.compile("sgd", losses.NormalizedSoftmax())
    images = np.random.default_rng(0).uniform(0, 255, (6, 24, 24, 1))
    labels = np.arange(6) % 3
    trainer.fit({"image": images, "label": labels}, labels, verbose=0)
    for old, new in zip(before, embedder.trainable_variables, strict=True):
        # Batch normalization takes away the bias before it.
        if mode == "frozen" or "bias" not in new.path:
            assert np.any(old != np.array(new)), new.path


@pytest.mark.parametrize(
    "convolution",
    [
        lambda: layers.Conv2D(7, 3, use_bias=False),
        lambda: layers.Conv2D(6, 3, groups=3),
        lambda: layers.DepthwiseConv2D(3, depth_multiplier=2),
    ],
)
def test_copies_keep_the_weights_that_they_were_made_of(convolution):
    image = keras.Input(SHAPE)
    whole = keras.Model(image, network(convolution())(image))
    copied = fold_for_inference(whole, copies=True)
    assert not folded_layers(copied)
    assert not any("gamma" in one.path for one in copied.variables)
    expected = embedded(whole, IMAGES)
    for variable in whole.layers[1].layers[1].variables:
        variable.assign(variable * 1.1)
    np.testing.assert_allclose(
        embedded(copied, IMAGES), expected, rtol=1e-4, atol=1e-4
    )
