import numpy as np

from keras_dml import losses
from tests.losses.steps import value_and_gradient

LABELS = np.array([0, 2, 1, 1], "int32")
COSINES = np.random.default_rng(0).uniform(-0.9, 0.9, (4, 3, 5))


def test_is_arc_face_on_the_nearest_center():
    np.testing.assert_allclose(
        losses.SubCenterArcFace(dtype="float64")(LABELS, COSINES),
        losses.ArcFace(dtype="float64")(LABELS, COSINES.max(axis=2)),
        rtol=1e-12,
    )


def test_only_the_nearest_center_of_a_class_moves():
    loss = losses.SubCenterArcFace(scale=4.0, dtype="float64")
    moved = value_and_gradient(loss, LABELS, COSINES)[1].numpy() != 0
    np.testing.assert_array_equal(
        moved, COSINES.max(axis=2, keepdims=True) == COSINES
    )
