"""A loss on the classes that a step samples."""

import keras

from keras_dml import distribute
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.wrapped import loss_on_classes
from keras_dml.ops.sampling import positions_in_sample


@keras.saving.register_keras_serializable(package="keras_dml")
class OnSampledClasses(LogitsLoss):
    """Computes a loss as if there were no classes but the sampled ones.

    `L(y, S) = loss(position of y in the sample, S)` with the output `S` of
    `SampledProxies`, scaled or not, but without a bias: a column is another
    class in each step. The position follows from the labels of
    the batch, under `tf.distribute` those of all replicas. The reduction of
    `loss` itself is not used.

    The value is not the value on all classes: a softmax over a sample has a
    smaller sum.

    Args:
        loss: A loss on integer labels and the logits or similarities of all
            classes, such as `NormalizedSoftmax`, `ArcFace` or `ProxyAnchor`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `loss` takes anything but logits or similarities.

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

    takes: str | None = None
    takes_centers = True
    # Labels number all classes, columns only the sampled ones.
    column_per_class = False

    def __init__(self, loss, **kwargs):
        super().__init__(**kwargs)
        self.loss = loss_on_classes(loss, "a sample of them")

    def logits_loss(self, labels, logits):
        everyone = distribute.all_gather(labels)
        return self.loss.call(positions_in_sample(labels, everyone), logits)
