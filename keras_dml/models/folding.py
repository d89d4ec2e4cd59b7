"""Folds batch normalization by constant statistics into convolutions.

Embedding and training are faster, because no tensor of the size of a layer's
output has to be scaled.
"""

import keras
from keras import ops

from keras_dml.layers import FrozenStatisticsBatchNormalization
from keras_dml.models.cloning import overrides_call

_CONVOLUTIONS = (keras.layers.Conv2D, keras.layers.DepthwiseConv2D)
_NORMALIZATIONS = (
    keras.layers.BatchNormalization,
    FrozenStatisticsBatchNormalization,
)


class FoldedConvolution(keras.layers.Layer):
    """Convolves with a kernel that the batch normalization after it scales.

    `s (conv(x, W) + b - mean) + beta = conv(x, s W) + s (b - mean) + beta`
    with `s = gamma / sqrt(variance + epsilon)`, and the gradients are equal.
    It shares the weights of both layers, so no file holds it.

    Args:
        convolution: `Conv2D` or `DepthwiseConv2D` without an activation.
        normalization: Batch normalization that uses moving statistics only.

    Input shape:
        The input shape of `convolution`.

    Output shape:
        The output shape of `convolution`.
    """

    def __init__(self, convolution, normalization):
        super().__init__(name=normalization.name, dtype="float32")
        self.convolution = convolution
        self.normalization = normalization

    def call(self, inputs, training=False):
        convolution, normalization = self.convolution, self.normalization
        if training and _follows_batches(normalization):
            # It was frozen when it was folded, and is no longer.
            return normalization(convolution(inputs), training=True)
        kernel, shift = self._scaled()
        if isinstance(convolution, keras.layers.DepthwiseConv2D):
            outputs = ops.depthwise_conv(
                inputs,
                kernel,
                strides=convolution.strides,
                padding=convolution.padding,
                dilation_rate=convolution.dilation_rate,
                data_format=convolution.data_format,
            )
        else:
            outputs = convolution.convolution_op(inputs, kernel)
        return ops.add(outputs, shift)

    def compute_output_shape(self, input_shape):
        return self.convolution.compute_output_shape(input_shape)

    def copied(self) -> keras.layers.Layer:
        """Returns a convolution that computes the same by its own weights."""
        convolution = self.convolution
        config = convolution.get_config()
        config |= {"use_bias": True, "name": self.name}
        layer = type(convolution).from_config(config)
        layer.build(convolution._inbound_nodes[0].input_tensors[0].shape)
        layer.set_weights([ops.convert_to_numpy(one) for one in self._scaled()])
        return layer

    def _scaled(self):
        """Returns `s W` and `s (b - mean) + beta`."""
        convolution, normalization = self.convolution, self.normalization
        variance, shift = normalization.moving_variance, 0.0
        scale = ops.rsqrt(variance + normalization.epsilon)
        if normalization.scale:
            scale = scale * normalization.gamma
        if normalization.center:
            shift = normalization.beta
        bias = convolution.bias if convolution.use_bias else 0.0
        shift = shift + scale * (bias - normalization.moving_mean)
        kernel = convolution.kernel
        if isinstance(convolution, keras.layers.DepthwiseConv2D):
            scale = ops.reshape(scale, kernel.shape[-2:])
        return kernel * scale, shift


def fold_batch_norm(
    network: keras.layers.Layer,
    inference: bool = False,
    copies: bool = False,
) -> keras.layers.Layer:
    """Returns a network that computes the same faster.

    Every batch normalization that uses its moving statistics and follows a
    convolution becomes one layer with it.

    Args:
        network: The backbone, as `set_batch_norm_mode` returns it.
        inference: Whether the result is only called outside of training, where
            all batch normalization uses its moving statistics. Defaults to
            `False`.
        copies: See `fold_for_inference`. Defaults to `False`.

    Returns:
        A functional model that shares the layers of `network`, or `network`
        itself if nothing folds, or it is not functional or overrides `call`.

    Example:

    ```python
    network = set_batch_norm_mode(network, "frozen")
    faster = fold_batch_norm(network)
    ```
    """
    if not _is_functional(network):
        return network
    folded = {}
    for layer in network.layers:
        before = _convolution_before(layer, network, inference)
        if before is not None:
            folded[layer.name] = before
    if not folded:
        return network
    convolutions = {id(layer) for layer in folded.values()}

    def call(layer, inputs, *args, **kwargs):
        if id(layer) in convolutions:
            return inputs
        if layer.name in folded:
            layer = FoldedConvolution(folded[layer.name], layer)
            return (layer.copied() if copies else layer)(inputs)
        return layer(inputs, *args, **kwargs)

    return keras.models.clone_model(
        network,
        clone_function=lambda layer: layer,
        call_function=call,
    )


def fold_for_inference(model: keras.Model, copies: bool = False) -> keras.Model:
    """Returns a model of images that embeds the same faster, not to be trained.

    Args:
        model: Model that nests its networks, such as one of `build_embedder`.
        copies: Whether convolutions copy their weights, which are so scaled
            once and not in every call; they do not follow then. Defaults to
            `False`.

    Returns:
        A model that shares the layers of `model` and follows when they train,
        or `model` itself if nothing folds.

    Example:

    ```python
    faster = fold_for_inference(embedder)
    embeddings = faster(images, training=False)
    ```
    """
    if not _is_functional(model):
        return model
    folded = {
        layer.name: fold_batch_norm(layer, inference=True, copies=copies)
        for layer in model.layers
    }
    if all(folded[layer.name] is layer for layer in model.layers):
        return model
    return keras.models.clone_model(
        model, clone_function=lambda layer: folded.get(layer.name, layer)
    )


def _is_functional(layer):
    """Returns whether a layer is a graph of layers that can be rewritten."""
    return hasattr(layer, "_nodes") and not overrides_call(layer)


def _follows_batches(normalization):
    """Returns whether training normalizes by the statistics of a batch."""
    return normalization.trainable and not isinstance(
        normalization, FrozenStatisticsBatchNormalization
    )


def _convolution_before(layer, network, inference):
    """Returns the convolution to fold into, or `None`."""
    # A subclass may compute something else.
    if type(layer) not in _NORMALIZATIONS:
        return None
    if not inference and _follows_batches(layer):
        return None
    (node, *others) = layer._inbound_nodes
    between = node.input_tensors[0]
    before = between._keras_history.operation
    folds = (
        type(before) in _CONVOLUTIONS
        and before.activation is keras.activations.linear
        and before.data_format == "channels_last"
        and layer.axis in (-1, 3)
        and before.compute_dtype == layer.compute_dtype == "float32"
        and not others
        and len(before._inbound_nodes) == len(before._outbound_nodes) == 1
        and all(output is not between for output in network.outputs)
    )
    return before if folds else None
