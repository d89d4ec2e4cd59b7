"""A loss on classes plus the same loss on the groups of the classes."""

import keras
import numpy as np
from keras import ops

from keras_dml.checks import not_negative
from keras_dml.losses.base import LogitsLoss
from keras_dml.losses.wrapped import loss_on_classes
from keras_dml.ops.groups import checked_groups, groups_of


@keras.saving.register_keras_serializable(package="keras_dml")
class OnGroups(LogitsLoss):
    """Adds a loss on the groups of classes, whose proxies are their means.

    `L = loss(y, S) + w sum_l loss(g_l(y), S_l)`

    with the output `S` of proxies, scaled or not, and for each level `l` of
    groups the group `g_l(y)` of a class and the similarities `S_l` with the
    groups: the means over their classes, which are inner products with the
    means of their proxies. The reduction of `loss` itself is not used.

    Args:
        loss: A loss on integer labels and the logits or similarities of all
            classes, such as `NormalizedSoftmax`, `ArcFace` or `ProxyAnchor`.
        groups: List of integers, the group of each class; or a list of such
            lists, one for each level.
        weight: Float, `w`, at least 0. Defaults to `1.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `loss` takes anything but logits or similarities,
            `groups` are no groups, or their classes are not the columns.

    Example:

    ```python
    # Of four classes the first two are alike, and the last two.
    loss = OnGroups(NormalizedSoftmax(), groups=[0, 0, 1, 1], weight=0.5)
    similarity = Proxies(num_classes=4, name="proxies")(embedding)
    model = keras.Model(image, ScaledLogits(16.0, name="logits")(similarity))
    model.compile("adam", loss=loss)
    ```

    Reference:
        Yang et al., "Hierarchical Proxy-based Loss for Deep Metric Learning",
        2022, where the groups are clusters of the proxies.
    """

    takes: str | None = None

    def __init__(self, loss, groups, weight=1.0, **kwargs):
        super().__init__(**kwargs)
        self.loss = loss_on_classes(loss, "their groups")
        self.groups = checked_groups(groups)
        self.weight = not_negative("weight", weight)
        self._means = [_means(level) for level in self.groups]

    def logits_loss(self, labels, logits):
        count = len(self.groups[0])
        if logits.shape[1] not in (None, count):
            raise ValueError(
                f"`groups` of the loss {self.name!r} must have an entry for "
                f"each class. Received: {count} entries and "
                f"{logits.shape[1]} classes"
            )
        loss = self.loss.call(labels, logits)
        of_levels = groups_of(labels, self.groups, self.name)
        for level, means in enumerate(self._means):
            means = ops.convert_to_tensor(means, logits.dtype)
            of_groups = ops.matmul(logits, means)
            loss += self.weight * self.loss.call(of_levels[level], of_groups)
        return loss


def _means(level):
    """Returns the matrix that averages the columns of each group."""
    matrix = np.eye(max(level) + 1)[level]
    return matrix / matrix.sum(axis=0)
