"""A layer that holds a subclassed network."""

import copy
import importlib.util
import json
import types

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_dml")
class NestedNetwork(keras.layers.Layer):
    """Wraps a subclassed model so that it can be nested and saved exactly.

    Functional models need no wrapper. Keras can rebuild a subclassed model,
    such as those of keras-hub, only from the configuration of its class. This
    layer stores the weights itself, in order, because a class may store them
    differently: DINOv2 of keras-hub does not always restore trained position
    embeddings.

    Args:
        network: `keras.Model` with one input, whose class is registered with
            Keras or belongs to keras-hub.
        output_layer: Name of the layer of a functional model whose output
            this layer returns. Defaults to `None`: the output of the model.
        **kwargs: Base layer arguments, such as `name`. `dtype` defaults to
            that of `network`.

    Input shape:
        The input shape of `network`, images
        `(batch, height, width, channels)`.

    Output shape:
        The output shape of `network`, or of the layer named `output_layer`.

    Raises:
        ValueError: If no layer has that name, `network` has several inputs, it
            is not built and the size of its images is unknown, or a loaded
            file needs keras-hub and keras-hub is not installed.

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
        # Keras saves every layer that it finds in an attribute, so attributes
        # must hold none. It looks for variables in `_layers`.
        self._hidden = types.SimpleNamespace(network=network, inner=inner)
        self._layers.append(inner)

    def build(self, input_shape):
        inner = self._hidden.inner
        if not inner.built:
            if None in input_shape[1:]:
                raise ValueError(
                    "`network` is not built, and makes its weights for images "
                    f"of a known size. Received: input_shape={input_shape}. "
                    "Call `network` on images first, or give `keras.Input` a "
                    "size."
                )
            # A subclassed model creates its weights in its first call.
            inner(ops.zeros((1, *input_shape[1:])))

    def call(self, inputs, training=None):
        return self._hidden.inner(self._as_taken(inputs), training=training)

    def compute_output_spec(self, inputs, training=None):
        return self._hidden.inner.compute_output_spec(self._as_taken(inputs))

    def compute_output_shape(self, input_shape):
        inputs = keras.KerasTensor(input_shape, dtype=self.compute_dtype)
        return tuple(self.compute_output_spec(inputs).shape)

    def whole(self) -> keras.Model:
        """Returns the whole network, with the layers after `output_layer`."""
        return self._hidden.network

    def part(self) -> keras.Model:
        """Returns the network up to `output_layer`, the part that trains."""
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
            # As JSON returns it: tuples become lists.
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


def _deserialize(config, dtype):
    """Builds a network from its configuration; computes in `dtype` if given."""
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
    """Returns the key of the only input; `None` if the input is a tensor."""
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
