"""What the losses on the pairs of a batch share."""

import abc

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.ops.pairs import Pairs, pair_masks
from keras_dml.ops.similarities import unit_rows


class PairLoss(keras.losses.Loss, abc.ABC):
    """Base of losses that compare the embeddings of a batch with each other.

    Subclasses implement `pair_loss`. Under `tf.distribute` every replica
    compares its own rows with the rows of all replicas, so that the result
    does not depend on their number. The result has one entry per row and is
    computed in float32 under every dtype policy.

    The loss normalizes the embeddings where `normalize` says so, and the
    model needs no layer for that: training taps the layer "head", whose output
    is not normalized. Unit embeddings stay what they are.

    Call arguments:
        y_true: Integer tensor `(batch,)` or `(batch, 1)`, the class of each
            row; or a boolean or integer matrix `(batch, batch)` that is
            nonzero where two rows belong together, for rows of several labels
            or of none. Its diagonal is not read. Under several replicas Keras
            takes integers only.
        y_pred: Float tensor `(batch, dim)`, the embeddings.
        sample_weight: Float tensor `(batch,)`. Defaults to `None`.

    Raises:
        ValueError: If labels are floats, are one-hot, or do not fit the
            embeddings.
    """

    # See `keras_dml.losses.INPUTS`.
    takes = "embeddings"
    normalize = True
    # Whether the columns must be the rows of the batch, and no memory.
    within_batch = False

    @abc.abstractmethod
    def pair_loss(self, pairs: Pairs):
        """Returns one loss per row of `pairs.embeddings`."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        # The base class casts labels to float, which hides what they were.
        check_label_dtype(y_true, self.name)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        labels = _matching_labels(y_true, y_pred, self.name)
        return self.pair_loss(self.batch_pairs(labels, y_pred))

    def batch_pairs(self, labels, embeddings) -> Pairs:
        """The pairs of the rows of this replica with those of all replicas.

        Args:
            labels: Integer tensor `(rows,)`, or a matrix `(rows, columns)`.
            embeddings: Float tensor `(rows, dim)`.
        """
        if self.normalize:
            embeddings = unit_rows(embeddings)
        first_row = distribute.replica_index() * ops.shape(embeddings)[0]
        references = distribute.all_gather(embeddings)
        classes = distribute.all_gather(labels)
        positive, negative = pair_masks(labels, classes, first_row)
        return Pairs(embeddings, references, positive, negative, first_row)


def check_label_dtype(labels, loss_name: str) -> None:
    """Raises a ValueError unless `labels` are integers or booleans."""
    # Under a strategy Keras builds the model with the mean of the labels over
    # the replicas, which is a float.
    if distribute.num_replicas() > 1:
        return
    dtype = keras.backend.standardize_dtype(ops.convert_to_tensor(labels).dtype)
    if not dtype.startswith(("int", "uint", "bool")):
        raise ValueError(
            f"`y_true` of the loss {loss_name!r} must be integer class labels "
            "of shape (batch,) or a matrix of pairs (batch, batch). Received: "
            f"y_true of dtype {dtype}. Cast the labels in the input pipeline, "
            'for example with `astype("int32")`.'
        )


def _matching_labels(labels, embeddings, loss_name):
    """`labels` as `(batch,)` or `(batch, batch)`, if they fit."""
    received = (
        f"Received: y_true.shape={tuple(labels.shape)}, "
        f"y_pred.shape={tuple(embeddings.shape)}"
    )
    if len(embeddings.shape) != 2:
        raise ValueError(
            f"`y_pred` of the loss {loss_name!r} must be embeddings of shape "
            f"(batch, dim). {received}"
        )
    if len(labels.shape) == 2 and labels.shape[1] == 1:
        labels = ops.reshape(labels, (-1,))
    if len(labels.shape) not in (1, 2):
        raise ValueError(
            f"`y_true` of the loss {loss_name!r} must be integer class labels "
            f"of shape (batch,) or a matrix of pairs (batch, batch). {received}"
        )
    rows = {labels.shape[0], embeddings.shape[0]} - {None}
    if len(rows) > 1:
        raise ValueError(
            f"`y_true` and `y_pred` of the loss {loss_name!r} must have the "
            f"same number of rows. {received}"
        )
    columns = labels.shape[1] if len(labels.shape) == 2 else None
    expected = {rows.pop() * distribute.num_replicas()} if rows else set()
    if columns is not None and expected and columns not in expected:
        raise ValueError(
            f"`y_true` of the loss {loss_name!r} must be integer class labels "
            "of shape (batch,) or a matrix of pairs (batch, batch), not "
            f"one-hot rows. {received}. Take the `argmax` of one-hot labels; "
            "for rows of several labels pass the matrix of the pairs that "
            "share one."
        )
    return labels
