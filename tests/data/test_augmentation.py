import math

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data import augmentation as augment
from keras_dml.data.augmentation import NUM_DRAWS, Augmentation, draws
from keras_dml.errors import UsageError


def test_draws_are_a_function_of_seed_epoch_and_step():
    first = draws(3, 2, 1, 8)
    assert first.shape == (8, NUM_DRAWS) and first.dtype == np.float32
    assert first.min() >= 0 and first.max() < 1
    np.testing.assert_array_equal(first, draws(3, 2, 1, 8))
    for other in (draws(4, 2, 1, 8), draws(3, 3, 1, 8), draws(3, 2, 2, 8)):
        assert (first != other).all()


def test_half_of_the_images_flip():
    flips = augment.flips(tf.constant(draws(0, 0, 0, 4000)))
    assert abs(np.mean(flips) - 0.5) < 0.03


def transform(image, angle=0.0, shift=(0.0, 0.0), scale=1.0, shear=0.0):
    shape = tf.constant(image.shape[:2], tf.float32)
    matrix = augment.affine_transforms(
        shape,
        tf.constant([angle]),
        tf.constant([shift]),
        tf.constant([scale]),
        tf.constant([shear]),
    )
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=image[None].astype(np.float32),
        transforms=matrix,
        output_shape=image.shape[:2],
        fill_value=0.0,
        interpolation="BILINEAR",
        fill_mode="CONSTANT",
    )[0].numpy()


@pytest.fixture
def image():
    return np.random.default_rng(0).uniform(0, 255, (9, 9, 3))


def test_affine_identity_and_quarter_turn(image):
    np.testing.assert_allclose(transform(image), image, atol=1e-3)
    turned = transform(image, angle=math.pi / 2)
    np.testing.assert_allclose(turned, np.rot90(image, -1), atol=0.05)


def test_affine_shift_is_down_and_right(image):
    moved = transform(image, shift=(2.0, 1.0))
    np.testing.assert_allclose(moved[2:, 1:], image[:-2, :-1], atol=1e-3)
    assert (moved[:2] == 0).all() and (moved[:, :1] == 0).all()


def test_affine_scale_and_shear(image):
    doubled = transform(image, scale=2.0)
    np.testing.assert_allclose(doubled[4, 4], image[4, 4], atol=1e-3)
    np.testing.assert_allclose(doubled[0, 0], image[2, 2], atol=1e-3)
    sheared = transform(image, shear=math.pi / 4)
    np.testing.assert_allclose(sheared[4], image[4], atol=1e-2)
    np.testing.assert_allclose(sheared[5, 1:], image[5, :-1], atol=1e-2)


@pytest.mark.parametrize(
    "setting, argument, low, high",
    [
        ({"rotation": 30}, "angle", -math.radians(30), math.radians(30)),
        ({"translation": 0.25}, "shift", -5, 5),
        ({"scale": (0.8, 1.5)}, "scale", 0.8, 1.5),
        ({"shear": 20}, "shear", -math.radians(20), math.radians(20)),
    ],
)
def test_a_setting_draws_its_whole_range_and_nothing_else(
    setting, argument, low, high, monkeypatch
):
    given = {}
    transforms = augment.affine_transforms

    def record(shape, **arguments):
        given.update(arguments)
        return transforms(shape, **arguments)

    monkeypatch.setattr(augment, "affine_transforms", record)
    images = tf.fill((500, 20, 20, 1), 200.0)
    draw = tf.constant(draws(0, 0, 0, 500))
    augment.random_affine(images, draw, Augmentation(**setting))
    drawn = given.pop(argument).numpy()
    assert low <= drawn.min() < low + 0.02 * (high - low)
    assert high - 0.02 * (high - low) < drawn.max() <= high
    for other, values in given.items():
        assert (values.numpy() == (other == "scale")).all()


def test_random_affine_fills():
    images = tf.fill((64, 20, 20, 1), 200.0)
    draw = tf.constant(draws(0, 0, 0, 64))
    still = augment.random_affine(images, draw, Augmentation())
    np.testing.assert_allclose(still, images, atol=1e-3)
    moved = Augmentation(translation=0.25, fill=7.0)
    rows = augment.random_affine(images, draw, moved).numpy()
    assert np.isclose(rows.min(), 7.0)
    edge = Augmentation(translation=0.25, rotation=30, fill="edge")
    rows = augment.random_affine(images, draw, edge)
    np.testing.assert_allclose(rows, images, atol=1e-2)


def test_color_factors(image):
    images = tf.constant(np.stack([image] * 2), tf.float32)
    draw = np.full((2, NUM_DRAWS), 0.5, np.float32)
    strong = Augmentation(brightness=1.0, contrast=1.0, saturation=1.0)
    same = augment.random_color(images, tf.constant(draw), strong)
    np.testing.assert_allclose(same, images, atol=1e-3)
    draw[:, 28] = 0.0
    dark = augment.random_color(images, tf.constant(draw), strong)
    assert np.abs(dark).max() == 0
    draw[:, 28:31] = (0.5, 0.5, 0.0)
    gray = augment.random_color(images, tf.constant(draw), strong).numpy()
    np.testing.assert_allclose(gray[..., 0], gray[..., 2], atol=1e-3)
    draw[:, 28:31] = (0.5, 0.0, 0.5)
    flat = augment.random_color(images, tf.constant(draw), strong).numpy()
    assert np.ptp(flat[0]) < 1e-3


def test_color_stays_in_range_and_takes_gray_images():
    images = tf.constant(
        np.random.default_rng(0).uniform(0, 255, (32, 4, 4, 1)), tf.float32
    )
    result = augment.random_color(
        images,
        tf.constant(draws(0, 0, 0, 32)),
        Augmentation(brightness=0.9, contrast=0.9, saturation=0.9),
    )
    assert result.shape == images.shape
    assert result.numpy().min() >= 0 and result.numpy().max() <= 255


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"crop": "corner"},
            "`crop` must be one of 'random_resized'",
        ),
        ({"area": (0.5, 1.5)}, "`area` must be a pair of positive numbers at"),
        ({"aspect": (2.0, 1.0)}, "`aspect` must be a pair .* smaller first"),
        ({"scale": (0.0, 1.0)}, "`scale` must be a positive .*0.0. Give a p"),
        ({"aspect": (1, math.inf)}, "`aspect` must be a positive number"),
        ({"aspect": (math.nan, 1)}, "`aspect` must be a positive number"),
        ({"aspect": ("1", "2")}, "`aspect` must be a positive number"),
        ({"area": 0.5}, "`area` must be a pair .* Received: area=0.5"),
        ({"area": (0.1, 0.2, 0.3)}, "`area` must be a pair"),
        ({"flip": "false"}, "`flip` must be True or False"),
        ({"squash": 1}, "`squash` must be True or False"),
        ({"antialias": None}, "`antialias` must be True or False"),
        ({"rotation": "x"}, r"`rotation` must be a number in \[0, 180\]"),
        ({"rotation": 200}, r"`rotation` must be a number in \[0, 180\]"),
        ({"shear": math.nan}, r"`shear` must be a number in \[0, 89\]"),
        ({"brightness": -0.1}, r"`brightness` must be a number in \[0, 1\]"),
        ({"translation": 1.0}, r"`translation` must be a number in \[0, 1\)"),
        ({"fill": 256}, r"`fill` must be a number in \[0, 255\]"),
        ({"fill": "mirror"}, "`fill` must be .*'mirror'. Or give 'edge'"),
        ({"resize": 0}, "`resize` must be a positive integer"),
        ({"resize": 12.5}, "`resize` must be a positive integer"),
    ],
)
def test_errors(options, message):
    with pytest.raises(UsageError, match=message):
        Augmentation(**options)
