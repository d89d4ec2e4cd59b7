"""What a run computes, known before its data are read."""

import pytest

from keras_dml.comparison.work import Work
from keras_dml.config import resolve


@pytest.mark.parametrize(
    ("overrides", "images"),
    [
        (["sampling.kind=random"], 32),
        (["sampling.kind=balanced", "sampling.images=5"], 30),
        (["sampling.kind=balanced", "sampling.classes=16"], 64),
    ],
)
def test_a_step_learns_from_whole_classes(overrides, images):
    """`batch_size` was counted, also where `classes` says otherwise."""
    given = ["sampling.batch_size=32", "data.image_size=8", *overrides]
    config = resolve("triplet", "digits", overrides=given)
    assert Work.of(config).batch == images
