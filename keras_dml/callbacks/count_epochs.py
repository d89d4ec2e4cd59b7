"""Counts epochs for the layers that need the count."""

import keras

from keras_dml.layers import SampleAwareProxies


class CountEpochs(keras.callbacks.Callback):
    """Counts the epochs for the `SampleAwareProxies` of a model.

    The count is a weight of the layer: Keras saves it with the model, and it
    continues over several calls of `fit`.

    Raises:
        ValueError: At the start of `fit`, if the model has no such layer.

    Example:

    ```python
    model.fit([x, y], y, epochs=20, callbacks=[CountEpochs()])
    ```
    """

    def on_train_begin(self, logs=None):
        if not self._layers():
            raise ValueError(
                "`CountEpochs` needs a model with a `SampleAwareProxies` "
                f"layer. Received: model {self.model.name!r}"
            )

    def on_epoch_end(self, epoch, logs=None):
        for layer in self._layers():
            layer.epochs.assign(layer.epochs + 1)

    def _layers(self):
        return [
            layer
            for layer in self.model._flatten_layers(include_self=False)
            if isinstance(layer, SampleAwareProxies)
        ]
