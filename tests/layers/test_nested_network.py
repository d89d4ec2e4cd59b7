import json

import keras
import numpy as np
import pytest

from keras_dml.layers import NestedNetwork
from tests.conformance import check_layer, to_numpy

X = np.random.default_rng(0).standard_normal((2, 4, 4, 3)).astype("float32")


@keras.saving.register_keras_serializable(package="tests")
class Forgetful(keras.layers.Layer):
    """Does not bring back what was trained, as DINOv2's embeddings."""

    def build(self, input_shape):
        self.scale = self.add_weight(shape=(3,), initializer="ones")

    def call(self, inputs):
        return inputs * self.scale

    def load_own_variables(self, store):
        self.scale.assign([1.0, 1.0, 1.0])


@keras.saving.register_keras_serializable(package="tests")
class OwnClass(keras.Model):
    """A functional model of a class of its own, with a dict of inputs."""

    def __init__(self, filters, dtype=None, **kwargs):
        images = keras.Input((4, 4, 3), name="images")
        x = Forgetful(dtype=dtype, name="scale")(images)
        x = keras.layers.Conv2D(filters, 2, dtype=dtype, name="tokens")(x)
        y = keras.layers.GlobalMaxPooling2D(dtype=dtype)(x)
        super().__init__({"images": images}, y, **kwargs)
        self.filters = filters
        self.own_dtype = dtype

    def get_config(self):
        return {
            "filters": self.filters,
            "dtype": self.own_dtype,
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config):
        if isinstance(config["dtype"], dict):
            config["dtype"] = keras.dtype_policies.get(config["dtype"])
        return cls(**config)


@keras.saving.register_keras_serializable(package="tests")
class Subclassed(keras.Model):
    """A model that is no graph, and has no weights before it is called."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.convolution = keras.layers.Conv2D(5, 2)

    def call(self, inputs):
        return self.convolution(inputs)


def test_a_graph_keeps_the_promises_of_a_layer(tmp_path):
    x = keras.Input((4, 4, 3))
    model = keras.Model(x, keras.layers.Conv2D(5, 2, name="inner")(x))
    check_layer(NestedNetwork, {"network": model}, X, (2, 3, 3, 5), tmp_path)


def test_a_subclassed_model_keeps_them_too(tmp_path):
    arguments = {"network": Subclassed()}
    check_layer(NestedNetwork, arguments, X, (2, 3, 3, 5), tmp_path)


@pytest.mark.parametrize("output_layer", [None, "tokens"])
def test_saves_and_loads_exactly(output_layer, tmp_path):
    layer = NestedNetwork(OwnClass(5, name="own"), output_layer=output_layer)
    x = keras.Input((4, 4, 3))
    model = keras.Model(x, layer(x))
    for weight in model.weights:
        weight.assign(weight + 0.5)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for first, second in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(first), to_numpy(second))
    np.testing.assert_array_equal(loaded(X), model(X))


def test_the_class_alone_would_not(tmp_path):
    """What the layer is for: without it the trained scale is lost."""
    model = OwnClass(5)
    model.weights[0].assign([2.0, 2.0, 2.0])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert to_numpy(loaded.weights[0]).tolist() == [1.0, 1.0, 1.0]


def test_output_of_an_inner_layer():
    network = OwnClass(5)
    tokens = NestedNetwork(network, output_layer="tokens")(X)
    assert tokens.shape == (2, 3, 3, 5)
    np.testing.assert_array_equal(
        keras.layers.GlobalMaxPooling2D()(tokens), network({"images": X})
    )


def test_trains_what_it_holds():
    network = OwnClass(5)
    x = keras.Input((4, 4, 3))
    model = keras.Model(x, NestedNetwork(network)(x))
    model.compile("sgd", "mse")
    before = [to_numpy(weight) for weight in network.weights]
    model.fit(X, np.ones((2, 5)), verbose=0)
    for first, weight in zip(before, network.weights, strict=True):
        assert np.any(first != to_numpy(weight))


def test_the_dtype_of_the_configuration_is_that_of_the_network():
    config = NestedNetwork(OwnClass(5, dtype="mixed_bfloat16")).get_config()
    config["dtype"] = "float32"
    layer = NestedNetwork.from_config(config)
    inside = layer._flatten_layers(include_self=False)
    assert {one.compute_dtype for one in inside} == {"float32"}
    assert layer.whole().filters == 5


def test_refuses_several_inputs():
    first, second = keras.Input((3,)), keras.Input((3,))
    model = keras.Model([first, second], keras.layers.Add()([first, second]))
    with pytest.raises(ValueError, match="`network` must have one input"):
        NestedNetwork(model)


@keras.saving.register_keras_serializable(package="tests")
class Unbuilt(keras.Model):
    """Makes its weights in its first call."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.convolution = keras.layers.Conv2D(2, 1)

    def call(self, inputs):
        return self.convolution(inputs)


def test_an_unbuilt_network_needs_images_of_a_size():
    images = keras.Input((None, None, 3))
    with pytest.raises(ValueError, match=r"`network` is not built.*\(None, N"):
        NestedNetwork(Unbuilt())(images)
    network = Unbuilt()
    network(X)
    assert NestedNetwork(network)(images).shape == (None, None, None, 2)


def test_says_that_keras_hub_is_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    config = {
        "network": {
            "module": "keras_hub.src.models.vit.vit_backbone",
            "class_name": "ViTBackbone",
            "config": {},
            "registered_name": "keras_hub>ViTBackbone",
        }
    }
    with pytest.raises(ValueError, match=r"'ViTBackbone'.*keras-dml\[hub\]"):
        NestedNetwork.from_config(json.loads(json.dumps(config)))


def test_refuses_a_file_of_another_network():
    layer = NestedNetwork(OwnClass(5))
    with pytest.raises(ValueError, match="has 3 weights.*file with 1"):
        layer.load_own_variables({"0": np.ones(3)})
