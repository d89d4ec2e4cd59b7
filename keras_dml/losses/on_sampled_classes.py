"""A loss on the classes that a step has sampled."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.losses.checks import (
    check_integer_labels,
    full_precision,
    matching_labels,
)
from keras_dml.ops.sampling import positions_in_sample


@keras.saving.register_keras_serializable(package="keras_dml")
class OnSampledClasses(keras.losses.Loss):
    """Computes a loss as if the sampled classes were all there are.

    `L(y, S) = loss(position of y in the sample, S)` with the output `S` of
    `SampledProxies`, scaled or not. The position follows from the labels of
    the batch, under `tf.distribute` of all replicas. The reduction of `loss`
    itself is not used.

    A softmax over a sample has a smaller sum than over all classes, so its
    value is not that of the whole.

    Args:
        loss: A loss on integer labels and the logits or similarities of all
            classes, such as `NormalizedSoftmax`, `ArcFace` or `ProxyAnchor`.
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"on_sampled_classes"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Raises:
        ValueError: If `loss` takes anything else than logits or similarities.

    Example:

    ```python
    head = SampledProxies(1_000_000, sample_size=100_000, name="proxies")
    model = keras.Model(
        {"image": image, "label": label}, head([embedding, label])
    )
    model.compile(optimizer, loss=OnSampledClasses(ArcFace()))
    ```

    Reference:
        An et al., "Killing Two Birds with One Stone: Efficient and Robust
        Training of Face Recognition CNNs by Partial FC", 2022.
    """

    def __init__(
        self,
        loss,
        reduction="sum_over_batch_size",
        name="on_sampled_classes",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )
        if not isinstance(loss, keras.losses.Loss):
            loss = keras.losses.deserialize(loss)
        takes = getattr(loss, "takes", "logits")
        if takes not in ("logits", "similarities"):
            raise ValueError(
                "`loss` must take logits or similarities of all classes, to "
                f"be computed on a sample of them. Received: {loss.name!r}, "
                f"which takes {takes}"
            )
        self.loss = loss

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_integer_labels(y_true, self.name)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        labels = matching_labels(y_true, y_pred, self.name, centres=True)
        labels = ops.cast(labels, "int32")
        everyone = distribute.all_gather(labels)
        return self.loss.call(positions_in_sample(labels, everyone), y_pred)

    def get_config(self):
        config = super().get_config()
        config.update({"loss": keras.losses.serialize(self.loss)})
        return config
