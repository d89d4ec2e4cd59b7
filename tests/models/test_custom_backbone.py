"""Networks of the caller."""

import re

import keras
import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.layers import NestedNetwork
from keras_dml.models import (
    build_embedder,
    build_trainer,
    custom_backbone,
    float32_clone,
    pooled_features,
)
from tests.conformance import to_numpy
from tests.conftest import ROOT

SHAPE = (16, 16, 3)
IMAGES = np.random.default_rng(0).uniform(0, 255, (4, *SHAPE))
IMAGES = IMAGES.astype("float32")


@keras.saving.register_keras_serializable(package="tests")
class TinyTransformer(keras.Model):
    """Two tokens in front of 16 patches, subclassed."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.patches = keras.layers.Conv2D(6, 4, strides=4)
        self.block = keras.layers.Dense(6)

    def build(self, input_shape):
        self.special = self.add_weight(shape=(1, 2, 6), name="special")
        self.patches.build(input_shape)
        self.block.build((None, None, 6))

    def call(self, inputs):
        x = keras.ops.reshape(self.patches(inputs), (-1, 16, 6))
        special = keras.ops.repeat(self.special, keras.ops.shape(x)[0], 0)
        return self.block(keras.ops.concatenate([special, x], axis=1))


def convolutions(pooled=False):
    x = keras.Input(SHAPE)
    y = keras.layers.Conv2D(6, 3, strides=4)(x)
    if pooled:
        y = keras.layers.GlobalAveragePooling2D()(y)
    return keras.Model(x, y)


def build(backbone, shape=SHAPE, **arguments):
    return build_embedder(backbone, shape, dim=5, **arguments)


def save_and_load(embedder, folder):
    embedder.save(folder / "embedder.keras")
    return keras.saving.load_model(folder / "embedder.keras")


def test_a_model_with_maps(tmp_path):
    model = convolutions()
    embedder = build(model, pooling="max")
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)),
        to_numpy(model(IMAGES)).max(axis=(1, 2)),
        rtol=1e-5,
    )
    loaded = save_and_load(embedder, tmp_path)
    np.testing.assert_array_equal(loaded(IMAGES), embedder(IMAGES))


def test_a_subclassed_model_with_tokens(tmp_path):
    model = TinyTransformer()
    backbone = custom_backbone(model, "tf", class_token=True, prefix_tokens=2)
    embedder = build(backbone, pooling="average")
    assert type(embedder.get_layer("backbone")) is NestedNetwork
    tokens = to_numpy(model(IMAGES / 127.5 - 1))
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)),
        tokens[:, 2:].mean(axis=1),
        atol=1e-5,
    )
    loaded = save_and_load(embedder, tmp_path)
    np.testing.assert_array_equal(loaded(IMAGES), embedder(IMAGES))
    assert float32_clone(embedder) is embedder


def test_a_class_token_is_one_of_the_prefix():
    backbone = custom_backbone(TinyTransformer(), class_token=True)
    assert backbone.prefix_tokens == 1
    embedder = build(backbone, pooling="class_token")
    assert embedder.output_shape == (None, 5)


def test_a_model_that_pools():
    model = convolutions(pooled=True)
    embedder = build(model, pooling="none")
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)),
        to_numpy(model(IMAGES)),
        rtol=1e-5,
    )
    with pytest.raises(UsageError, match=r"pooled features.*need `none`"):
        build(model, pooling="max")


def test_a_sequential_model_that_was_not_built():
    model = keras.Sequential([keras.layers.Conv2D(6, 3)])
    embedder = build(model)
    assert embedder.output_shape == (None, 5)


def test_training_trains_the_model_itself():
    model = convolutions()
    before = [to_numpy(weight) for weight in model.weights]
    embedder = build(model, pooling="average")
    trainer = build_trainer(embedder, num_classes=2)
    trainer.compile(
        "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    labels = np.array([0, 1, 0, 1])
    trainer.fit({"image": IMAGES, "label": labels}, labels, verbose=0)
    for first, weight in zip(before, model.weights, strict=True):
        assert np.any(first != to_numpy(weight))


def test_maps_have_no_class_token():
    with pytest.raises(UsageError, match=r"gives maps.*'class_token'"):
        build(convolutions(), pooling="class_token")


def test_another_size_is_refused():
    with pytest.raises(UsageError, match="16 pixels only.*20 x 20"):
        build(convolutions(), (20, 20, 3))


def test_weights_by_name_are_refused():
    with pytest.raises(UsageError, match="`weights='imagenet'` is not"):
        build(convolutions(), weights="imagenet")


def test_what_is_no_model_is_refused():
    with pytest.raises(UsageError, match="must be a Keras model.*<object"):
        build(object())


def test_inputs_that_are_no_images_are_refused():
    x = keras.Input((7,))
    model = keras.Model(x, keras.layers.Dense(2)(x))
    with pytest.raises(UsageError, match=r"one input, images.*\(None, 7\)"):
        custom_backbone(model)


def test_a_model_of_two_outputs_is_refused():
    x = keras.Input(SHAPE)
    maps = keras.layers.Conv2D(2, 3)(x)
    with pytest.raises(UsageError, match="must have one output.*2 outputs"):
        build(keras.Model(x, [maps, maps]))


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (lambda x: [x], lambda y: [y]),
        (lambda x: x, lambda y: {"features": y}),
        (lambda x: {"image": x}, lambda y: {"features": y}),
        (lambda x: {"image": x}, lambda y: y),
    ],
    ids=["lists", "dict_of_outputs", "dicts", "dict_of_inputs"],
)
def test_one_input_and_output_may_be_in_a_list_or_a_dict(
    inputs, outputs, tmp_path
):
    x = keras.Input(SHAPE, name="image")
    maps = keras.layers.Conv2D(6, 3, strides=4)(x)
    embedder = build(keras.Model(inputs(x), outputs(maps)))
    plain = build(keras.Model(x, maps))
    plain.set_weights(embedder.get_weights())
    np.testing.assert_array_equal(embedder(IMAGES), plain(IMAGES))
    loaded = save_and_load(embedder, tmp_path)
    np.testing.assert_array_equal(loaded(IMAGES), embedder(IMAGES))


def test_a_gray_model_refuses_color_images():
    x = keras.Input((16, 16, 1))
    gray = keras.Model(x, keras.layers.Conv2D(2, 3)(x), name="gray")
    with pytest.raises(UsageError, match="1 channels, as 'gray'.*: 3"):
        build(gray)
    build(gray, (16, 16, 1))


def test_a_layer_named_as_the_head_is_refused():
    x = keras.Input(SHAPE)
    model = keras.Model(x, keras.layers.Conv2D(3, 2, name="head")(x))
    with pytest.raises(UsageError, match="'head/kernel'.*Rename the layer"):
        build(model)


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "backbones.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (example,) = [block for block in blocks if "custom_backbone" in block]
    names: dict = {}
    exec(example, names)
    assert names["vectors"].shape[1] == 8
    assert names["trainer"].output_shape == (None, 20)
