import math

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data.augmentation import draws
from keras_dml.data.random_crop import crop_sides, random_resized_crop_box

AREA = (0.08, 1.0)
ASPECT = (3 / 4, 4 / 3)


def reference_box(height, width, area, aspect, generator):
    """torchvision's `RandomResizedCrop.get_params`, from its documentation."""
    for _ in range(10):
        target = height * width * generator.uniform(*area)
        ratio = math.exp(generator.uniform(*np.log(aspect)))
        box_width = round(math.sqrt(target * ratio))
        box_height = round(math.sqrt(target / ratio))
        if 0 < box_width <= width and 0 < box_height <= height:
            top = generator.integers(0, height - box_height + 1)
            left = generator.integers(0, width - box_width + 1)
            return top, left, box_height, box_width
    if width / height < aspect[0]:
        box_width, box_height = width, round(width / aspect[0])
    elif width / height > aspect[1]:
        box_width, box_height = round(height * aspect[1]), height
    else:
        box_width, box_height = width, height
    top, left = (height - box_height) // 2, (width - box_width) // 2
    return top, left, box_height, box_width


def library_boxes(height, width, area, aspect, count):
    draw = tf.constant(draws(0, 0, 0, count))
    return tf.vectorized_map(
        lambda item: random_resized_crop_box(
            tf.constant([height, width]), *item, aspect
        ),
        (crop_sides(draw, area, aspect), draw),
    ).numpy()


@pytest.mark.parametrize(
    ("height", "width", "area"),
    [(300, 400, AREA), (500, 120, AREA), (64, 64, (0.6, 1.0))],
)
def test_boxes_follow_the_distribution_of_torchvision(height, width, area):
    count = 6000
    boxes = library_boxes(height, width, area, ASPECT, count)
    generator = np.random.default_rng(1)
    reference = np.asarray(
        [
            reference_box(height, width, area, ASPECT, generator)
            for _ in range(count)
        ]
    )
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 2:] > 0).all()
    assert (boxes[:, 0] + boxes[:, 2] <= height).all()
    assert (boxes[:, 1] + boxes[:, 3] <= width).all()
    for column in range(4):
        # Two-sample Kolmogorov-Smirnov distance, at p = 1e-5.
        values = np.unique(np.concatenate([boxes, reference])[:, column])
        distributions = [
            np.searchsorted(np.sort(sample[:, column]), values, "right")
            for sample in (boxes, reference)
        ]
        distance = np.abs(distributions[0] - distributions[1]).max() / count
        assert distance < 2.47 * math.sqrt(2 / count)


def test_aspect_is_log_uniform():
    boxes = library_boxes(1000, 1000, (0.1, 0.3), (0.5, 2.0), 4000)
    ratio = boxes[:, 3] / boxes[:, 2]
    assert abs(np.median(ratio) - 1.0) < 0.03
    area = boxes[:, 2] * boxes[:, 3] / 1e6
    assert abs(area.mean() - 0.2) < 0.005
    assert area.min() > 0.099 and area.max() < 0.301


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [
        (10, 1000, (0, 493, 10, 13)),
        (1000, 10, (493, 0, 13, 10)),
        (1, 1, (0, 0, 1, 1)),
    ],
)
def test_center_fallback(height, width, box):
    boxes = library_boxes(height, width, (0.9, 1.0), ASPECT, 5)
    assert (boxes == box).all()


def test_whole_image_when_the_area_is_all_of_it():
    boxes = library_boxes(40, 40, (1.0, 1.0), (1.0, 1.0), 5)
    assert (boxes == (0, 0, 40, 40)).all()
