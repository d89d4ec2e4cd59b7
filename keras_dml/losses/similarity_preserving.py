"""Similarity-preserving distillation."""

import keras
from keras import ops

from keras_dml.losses.distillation import DistillationLoss
from keras_dml.ops.pairs import gram_matrix
from keras_dml.ops.similarities import unit_rows


def similarity_preserving_loss(teacher, embeddings):
    """Squared differences of the rows of two similarity matrices.

    Args:
        teacher: Float tensor `(batch, teacher_dim)`.
        embeddings: Float tensor `(batch, dim)`.

    Returns:
        Tensor `(batch,)` of the dtype of `embeddings`.

    Example:

    >>> rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> ops.convert_to_numpy(similarity_preserving_loss(rows, rows[:, ::-1]))
    array([0., 0.])
    """
    theirs, own = unit_rows(gram_matrix(teacher)), gram_matrix(embeddings)
    return ops.mean(ops.square(theirs - unit_rows(own)), axis=1)


@keras.saving.register_keras_serializable(package="keras_dml")
class SimilarityPreserving(DistillationLoss):
    """Gives each row the similarities to the batch that a teacher's has.

    `L = mean_ij (g_ij - g'_ij)**2` with the inner products `x_i . x_j` of a
    row with all rows of the batch, divided by the length of this vector, `g`,
    and the same of the teacher, `g'`.

    Args:
        **kwargs: `normalize`, see `DistillationLoss`, and `reduction`, `name`
            and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    student.compile("adam", loss=SimilarityPreserving())
    student.fit(images, teacher.predict(images))
    ```

    Reference:
        Tung and Mori, "Similarity-Preserving Knowledge Distillation", 2019,
        equations 2 to 4, on embeddings instead of feature maps.
    """

    # Section 4.1 of the paper.
    usual_weight = 3000.0

    def distillation_loss(self, teacher, embeddings):
        return similarity_preserving_loss(teacher, embeddings)
