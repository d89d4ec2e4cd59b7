"""Triplet loss whose margin grows where classes are of other groups."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.checks import finite_number, one_of
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.triplet import (
    ALL,
    BY_PAIR,
    BY_ROW,
    check_triplet_miner,
    triplet_loss,
    with_triplets,
)
from keras_dml.ops.distances import metric_name
from keras_dml.ops.groups import checked_groups, groups_of
from keras_dml.ops.labels import among_classes
from keras_dml.ops.pairs import Pairs


def hierarchical_triplet_loss(
    distance,
    positive,
    negative,
    levels,
    margin=0.1,
    level_margin=0.1,
    mining="semi_hard",
    average="non_zero",
    labels=None,
    chooses=None,
):
    """Averages `[d_ap - d_an + m + g l_an]_+` over the mined triplets.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        levels: Tensor `(rows, columns)`, `l`: at how many levels the classes
            of a pair are of other groups; zero for positives.
        margin: Float, `m`. Defaults to `0.1`.
        level_margin: Float, `g`. Defaults to `0.1`.
        mining: String, see `Triplet`. Defaults to `"semi_hard"`.
        average: See `keras_dml.losses.triplet_loss`. Defaults to
            `"non_zero"`.
        labels: See `keras_dml.losses.triplet_loss`. Defaults to `None`.
        chooses: See `keras_dml.losses.triplet_loss`. Defaults to `None`.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        batch of all replicas.

    Example:

    >>> distance = np.array([[0.0, 0.5, 0.75]])
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> levels = np.array([[0, 0, 2]])
    >>> float(hierarchical_triplet_loss(
    ...     distance, positive, negative, levels, 0.25, 0.25, "all")[0])
    0.5
    """
    distance = ops.convert_to_tensor(distance)
    # A margin of a pair is as good as a shorter distance.
    distance = distance - level_margin * ops.cast(levels, distance.dtype)
    return triplet_loss(
        distance,
        positive,
        negative,
        margin=margin,
        mining=mining,
        average=average,
        labels=labels,
        chooses=chooses,
    )


@keras.saving.register_keras_serializable(package="keras_dml")
class HierarchicalTriplet(PairLoss):
    """Keeps classes of other groups farther apart than those of one group.

    `L = mean [d_ap - d_an + m + g l_an]_+` over triplets of an anchor `a`, a
    positive `p` and a negative `n`, where `l_an` is the number of levels of
    the hierarchy at which the classes of `a` and `n` are of other groups: 0
    for classes of the same group. `mining` chooses the triplets as in
    `Triplet`, by the distances less `g l_an`; a miner of triplets, which needs
    `mining="all"`, chooses by the distances alone.

    The paper builds its tree from the distances of the classes, anew in each
    epoch, and takes the margins from it; here tree and margins are given. The
    loss is one number for the whole batch of all replicas. So every row has
    the same value, and sample weights scale the whole loss.

    Args:
        groups: List of integers, the group of each class; or a list of such
            lists, from the finest level to the coarsest. Defaults to `None`,
            one group, which makes this `Triplet`. A run takes the
            [groups](../../training.md#groups-of-classes) of its images.
        margin: Float, `m`. Defaults to `0.1`.
        level_margin: Float, `g`. Defaults to `0.1`.
        mining: String, see `Triplet`. Defaults to `"semi_hard"`.
        distance: What compares two rows, another name of the argument
            `similarity`. Defaults to `"cosine"`.
        **kwargs: `normalize`, `miner`, `average`, by default `"non_zero"`,
            `similarity`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a name is unknown, a number is not finite, `groups` are
            no groups, `mining` does not allow a miner of triplets, or labels
            have no group. The loss of these is NaN on an
            accelerator and under XLA, where nothing can raise.

    Example:

    ```python
    # Of four classes the first two are alike, and the last two.
    loss = HierarchicalTriplet(groups=[0, 0, 1, 1], level_margin=0.2)
    model.compile("adam", loss=loss)
    ```

    Reference:
        Ge et al., "Deep Metric Learning with Hierarchical Triplet Loss", 2018.
    """

    within_batch = True
    takes_groups = True
    usual_average = "non_zero"

    def __init__(
        self,
        groups=None,
        margin=0.1,
        level_margin=0.1,
        mining="semi_hard",
        distance="cosine",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.groups = None if groups is None else checked_groups(groups)
        self.margin = finite_number("margin", margin)
        self.level_margin = finite_number("level_margin", level_margin)
        self.mining = one_of("mining", mining, (*BY_PAIR, *BY_ROW, ALL))
        self.distance = metric_name("distance", distance)
        self._compare_by("distance", distance)
        check_triplet_miner(self.miner, mining)

    def mined(self, pairs: Pairs):
        return with_triplets(self.miner, pairs) or super().mined(pairs)

    def call(self, y_true, y_pred):
        pairs = self.mined(self.batch_pairs(y_true, y_pred))
        loss = self.pair_loss(pairs, self._levels(y_true, y_pred))
        if self.groups is None:
            return loss
        known = among_classes(pairs.labels, len(self.groups[0]))
        return ops.where(known, loss, float("nan"))

    def pair_loss(self, pairs: Pairs, levels=0):
        return hierarchical_triplet_loss(
            self.distances(pairs),
            *pairs.masks,
            levels,
            self.margin,
            self.level_margin,
            self.mining,
            self._average,
            pairs.labels,
            pairs.triplets,
        )

    def _levels(self, y_true, y_pred):
        """Returns the number of levels at which rows and columns differ."""
        if self.groups is None:
            return 0
        labels, received = self._flat_labels(y_true, y_pred)
        if len(labels.shape) != 1:
            raise ValueError(
                f"`y_true` of the loss {self.name!r} must be integer class "
                "labels of shape (batch,), for a matrix of pairs says nothing "
                f"of groups. {received}"
            )
        own = groups_of(labels, self.groups, self.name)
        every = groups_of(
            distribute.all_gather(ops.cast(labels, "int32")),
            self.groups,
            self.name,
        )
        differ = ops.not_equal(own[:, :, None], every[:, None, :])
        return ops.sum(ops.cast(differ, "int32"), axis=0)
