"""A subclassed network as one layer."""

import copy
import importlib.util
import json

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_dml")
class NestedNetwork(keras.layers.Layer):
    """Wraps a subclassed model so that it can be nested and saved exactly.

    Graphs of Keras layers nest as they are. A subclassed model, as those of
    keras-hub, can only be rebuilt from the configuration of its class. This
    layer stores the weights itself, in their order: a class may change what
    it stores, and DINOv2 of keras-hub does not always restore trained
    position embeddings.

    Args:
        network: `keras.Model` of one input, whose class is registered with
            Keras or belongs to keras-hub.
        output_layer: Name of the layer whose output is taken, in a functional
            model. Defaults to `None`: the output of the model.
        **kwargs: Base layer arguments, such as `name`. `dtype` defaults to
            that of `network`.

    Input shape:
        That of `network`, images `(batch, height, width, channels)`.

    Output shape:
        That of `network`, or of the layer named `output_layer`.

    Raises:
        ValueError: If no layer has that name, `network` has several inputs,
            or a file needs keras-hub and it is not installed.

    Example:

    ```python
    encoder = keras_hub.models.SigLIPVisionEncoder(...)
    tokens = NestedNetwork(encoder, output_layer="post_layer_norm")(images)
    ```
    """

    def __init__(self, network, output_layer=None, **kwargs):
        kwargs.setdefault("dtype", network.dtype_policy)
        super().__init__(**kwargs)
        self.output_layer = output_layer
        self.input_name = _input_name(network)
        inner = network
        if output_layer is not None:
            output = network.get_layer(output_layer).output
            inner = keras.Model(network.input, output)
        # Keras saves whatever layer it finds in an attribute, and must find
        # none: `_layers` is where it looks for variables.
        self._hidden = _Hidden(network, inner)
        self._layers.append(inner)

    def build(self, input_shape):
        inner = self._hidden.inner
        if not inner.built:
            # A subclassed model makes its weights when it is called.
            inner(ops.zeros((1, *input_shape[1:])))

    def call(self, inputs, training=None):
        return self._hidden.inner(self._as_taken(inputs), training=training)

    def compute_output_spec(self, inputs, training=None):
        return self._hidden.inner.compute_output_spec(self._as_taken(inputs))

    def compute_output_shape(self, input_shape):
        inputs = keras.KerasTensor(input_shape, dtype=self.compute_dtype)
        return tuple(self.compute_output_spec(inputs).shape)

    def whole(self) -> keras.Model:
        """Returns the given network, with the layers after `output_layer`."""
        return self._hidden.network

    def part(self) -> keras.Model:
        """Returns the network up to `output_layer`, which is what trains."""
        return self._hidden.inner

    def save_own_variables(self, store):
        for number, weight in enumerate(self.weights):
            store[str(number)] = weight

    def load_own_variables(self, store):
        if len(store.keys()) != len(self.weights):
            raise ValueError(
                f"The layer {self.name!r} has {len(self.weights)} weights. "
                f"Received: a file with {len(store.keys())} of them"
            )
        for number, weight in enumerate(self.weights):
            weight.assign(store[str(number)])

    def get_config(self):
        network = keras.saving.serialize_keras_object(self._hidden.network)
        return {
            **super().get_config(),
            # As it is read back: tuples are lists.
            "network": json.loads(json.dumps(network)),
            "output_layer": self.output_layer,
        }

    def _as_taken(self, inputs):
        name = self.input_name
        return inputs if name is None else {name: inputs}

    @classmethod
    def from_config(cls, config):
        network = _deserialize(config["network"], config.get("dtype"))
        return super().from_config({**config, "network": network})


class _Hidden:
    """Holds layers where Keras does not look for them."""

    def __init__(self, network, inner):
        self.network = network
        self.inner = inner


def _deserialize(config, dtype):
    """Makes the network of a configuration, computing in `dtype` if given."""
    if str(config.get("module")).startswith("keras_hub") and (
        importlib.util.find_spec("keras_hub") is None
    ):
        raise ValueError(
            f"The network {config['class_name']!r} is part of keras-hub, which "
            "is not installed: `pip install keras-dml[hub]`."
        )
    config = copy.deepcopy(config)
    if dtype is not None and "dtype" in config["config"]:
        policy = keras.dtype_policies.get(dtype)
        config["config"]["dtype"] = keras.dtype_policies.serialize(policy)
    return keras.saving.deserialize_keras_object(config)


def _input_name(network):
    """Returns the key of the only input, `None` if it is a tensor."""
    try:
        inputs = network.input
    except (AttributeError, ValueError):
        # A subclassed model has no input before it is called.
        return None
    if keras.tree.is_nested(inputs) and len(keras.tree.flatten(inputs)) != 1:
        raise ValueError(
            "`network` must have one input, the images. "
            f"Received: {network.name!r} with the inputs {inputs}"
        )
    return next(iter(inputs)) if isinstance(inputs, dict) else None
