"""Which images the minutes of a run are enough for."""

import pytest

from keras_dml.run.data import StageData
from keras_dml.run.minutes import affordable_size
from tests.run import made_up

# 120 images train, 120 validate.
DATA = made_up.stage()


def settled(*overrides, size=224, minutes=10):
    config = made_up.settings(f"data.image_size={size}", *overrides)
    return config.changed(minutes=minutes)


def side(seconds, *overrides, data=DATA, test_images=1000, **arguments):
    """The side where all images take so long, at the size of the settings."""
    config = settled(*overrides, **arguments)
    return affordable_size(config, data, test_images, seconds)


# Twice 1,000 test images and 120 training images; 120 that validate four times
# in the training, in the middle and at the end of the way back, at the start
# and for the page.
EMBEDDED = 2000 + 120 + 120 * (4 + 2 + 1 + 1)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.49, 224),
        (0.51, 192),
        # At 192 pixels an image takes .73 of the time, at 160 .51.
        (0.68, 192),
        (0.69, 160),
        (0.97, 160),
        (0.99, 128),
        (100, 128),
    ],
)
def test_images_are_as_large_as_half_of_the_minutes_allow(share, expected):
    assert side(share * 600 / EMBEDDED) == expected
    assert side(share * 1800 / EMBEDDED, minutes=30) == expected


@pytest.mark.parametrize("size", [28, 96, 128])
def test_small_images_stay(size):
    assert side(100.0, size=size) == size


def test_sides_are_those_that_networks_halve():
    assert side(0.51 * 600 / EMBEDDED, size=299) == 288


def test_what_is_embedded_less_often_leaves_larger_images():
    alone = StageData(DATA.fit, None)
    seconds = 0.6 * 600 / EMBEDDED
    assert side(seconds) == 192
    assert side(seconds, data=alone) == 224
    assert side(seconds, test_images=500) == 224
    assert side(seconds, "evaluation.select=best") == 160
    assert side(0.9 * seconds, "final=all") == 128
