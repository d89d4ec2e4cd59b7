"""The embedder."""

import keras
import numpy as np
import pytest

from keras_dml.errors import RunError, UsageError
from keras_dml.models import (
    BACKBONES,
    build_embedder,
    float32_clone,
    load_embedder,
    pooled_features,
    with_image_size,
)
from tests.conformance import to_numpy
from tests.thorough import ALL

RNG = np.random.default_rng(0)
SHAPE = (16, 16, 1)
IMAGES = RNG.uniform(0, 255, (6, *SHAPE)).astype("float32")


def build(backbone="small_cnn", shape=SHAPE, **arguments):
    return build_embedder(backbone, shape, dim=5, **arguments)


def names(model):
    return [layer.name for layer in model.layers]


def test_layers_of_the_embedder():
    embedder = build()
    assert names(embedder) == [
        "image",
        "preprocessing",
        "backbone",
        "pooling",
        "head",
        "unit",
    ]
    assert embedder.output_shape == (None, 5)
    assert "unit" not in names(build(normalize=False))


def test_rows_have_length_one_unless_evaluation_is_raw():
    lengths = np.linalg.norm(to_numpy(build()(IMAGES)), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    raw = to_numpy(build(normalize=False)(IMAGES))
    assert np.abs(np.linalg.norm(raw, axis=1) - 1).max() > 0.01


def test_uint8_and_float_images_agree():
    embedder = build()
    pixels = IMAGES.astype("uint8")
    np.testing.assert_array_equal(
        embedder.predict(pixels, verbose=0),
        embedder.predict(pixels.astype("float32"), verbose=0),
    )


def pool(features, kind, k):
    flat = features.reshape(len(features), -1, features.shape[-1])
    if kind == "average_plus_max":
        return flat.mean(axis=1) + flat.max(axis=1)
    if kind == "generalized_mean":
        return np.cbrt((np.maximum(flat, 1e-6) ** 3).mean(axis=1))
    count = {"average": flat.shape[1], "max": 1, "k_max": k}[kind]
    return np.sort(flat, axis=1)[:, -count:].mean(axis=1)


@pytest.mark.parametrize(
    "pooling",
    ["average", "max", "k_max", "average_plus_max", "generalized_mean"],
)
def test_pooling(pooling):
    embedder = build(pooling=pooling, k=2)
    preprocessed = embedder.get_layer("preprocessing")(IMAGES)
    features = to_numpy(embedder.get_layer("backbone")(preprocessed))
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)),
        pool(features, pooling, 2),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("layer_norm", [True, False])
@pytest.mark.parametrize("normalization", [None, "l2", "batch_norm"])
@pytest.mark.parametrize(
    "kernel, bias",
    [("uniform_fan_in", "uniform_fan_in"), ("scaled_fan_in", "zeros")],
)
def test_head(layer_norm, normalization, kernel, bias):
    embedder = build(
        layer_norm=layer_norm,
        normalization=normalization,
        kernel_initializer=kernel,
        bias_initializer=bias,
    )
    head = embedder.get_layer("head")
    weights = {w.name: to_numpy(w) for w in head.weights}
    assert (head.layer_norm, head.normalization) == (layer_norm, normalization)
    assert weights["kernel"].shape == (128, 5)
    assert ("bias" in weights) == (normalization != "batch_norm")
    if "bias" in weights:
        assert np.any(weights["bias"]) == (kernel == "uniform_fan_in")


@pytest.mark.parametrize("half", ["mixed_float16", "mixed_bfloat16"])
def test_black_and_saturated_images_are_finite(half):
    embedder = build(policy=half, pooling="average")
    for value in (0, 255):
        assert np.isfinite(
            to_numpy(embedder(np.full_like(IMAGES, value)))
        ).all()


def test_float32_clone():
    mixed = build(policy="mixed_bfloat16")
    clone = float32_clone(mixed)
    assert names(clone) == names(mixed)
    assert all(
        layer.compute_dtype == "float32"
        for layer in clone._flatten_layers(include_self=False)
    )
    for first, second in zip(clone.weights, mixed.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(first), to_numpy(second))
    np.testing.assert_allclose(
        to_numpy(clone(IMAGES)), to_numpy(mixed(IMAGES)), atol=0.05
    )
    assert float32_clone(clone) is clone


def test_a_policy_set_elsewhere_does_not_matter(policy):
    embedder = build()
    assert embedder.get_layer("backbone").compute_dtype == "float32"
    assert keras.config.dtype_policy().name == policy


def test_small_images_are_refused():
    with pytest.raises(UsageError, match=r"'inception_v3' needs.*least 75"):
        build("inception_v3", (64, 64, 3))


def test_the_advice_is_not_the_refused_network():
    for name, advised in (("small_cnn", False), ("inception_v3", True)):
        with pytest.raises(UsageError, match=f"{name!r} needs") as caught:
            build(name, (4, 4, 3))
        assert ("choose `small_cnn`" in str(caught.value)) == advised


@pytest.mark.parametrize(
    "shape", [(None, None, 3), (16, 16), (16.0, 16.0, 3), (16, 16, None)]
)
def test_image_shapes_that_are_not_three_integers_are_refused(shape):
    message = "`image_shape` must be three integers.*Received: image_shape="
    with pytest.raises(UsageError, match=message):
        build(shape=shape)


def test_images_with_channels_first_are_refused():
    keras.config.set_image_data_format("channels_first")
    try:
        with pytest.raises(UsageError, match="must be 'channels_last'"):
            build()
    finally:
        keras.config.set_image_data_format("channels_last")


def test_two_channels_are_refused():
    with pytest.raises(UsageError, match=r"1 or 3 channels.*\(16, 16, 2\)"):
        build(shape=(16, 16, 2))


def test_images_that_are_not_square_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"square.*\(16, 32, 1\)"):
        build(shape=(16, 32, 1))
    image = keras.Input((16, 32, 1))
    other = keras.Model(image, keras.layers.GlobalMaxPooling2D()(image))
    other.save(tmp_path / "wide.keras")
    with pytest.raises(RunError, match="not square"):
        load_embedder(tmp_path / "wide.keras")


def test_batch_norm_modes_are_checked():
    with pytest.raises(UsageError, match="`batch_norm` must be.*'forzen'"):
        build(batch_norm="forzen")


def test_k_above_the_positions_of_smaller_images_is_refused():
    embedder = build(
        "mobilenet_v2",
        (96, 96, 3),
        weights="none",
        any_size=True,
        pooling="k_max",
        k=5,
    )
    with pytest.raises(UsageError, match="at most 4, the number.*64 pixels"):
        with_image_size(embedder, 64)


def test_k_above_the_positions_is_refused():
    embedder = build()
    height, width = embedder.get_layer("backbone").output_shape[1:3]
    most = height * width
    build(pooling="k_max", k=most)
    with pytest.raises(UsageError, match=f"must be at most {most}, the number"):
        build(pooling="k_max", k=most + 1)


def test_unknown_backbone_is_refused():
    with pytest.raises(UsageError, match="Nearest: 'mobilenet_v2'"):
        build(backbone="mobilnet_v2")


# Those of the first line are built within seconds; some of the others are left
# out unless all of them are asked for.
LIGHT = ("mobilenet", "mobilenet_v3_small", "inception_v1")
SOME = ("resnet50", "efficientnet_v2_b0", "convnext_tiny")
# One of each kind of layers.
FEW = ("mobilenet_v3_small", "convnext_tiny", "bn_inception", "googlenet")
FEW += ("inception_v1", "resnet50_v1_5", "efficientnet_v2_b0")
ANY_SIZE = [name for name, facts in BACKBONES.items() if facts.any_size]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name not in LIGHT))
        for name in (ANY_SIZE if ALL else (*LIGHT, *SOME))
    ],
)
def test_any_size_changes_nothing_at_the_own_size(name):
    """And another size gives what an embedder of that size gives."""
    size = -(-max(BACKBONES[name].min_image_size, 32) // 32) * 32
    images = {
        side: RNG.uniform(0, 255, (2, side, side, 3)).astype("float32")
        for side in (size, size + 32)
    }
    either = build(name, (size, size, 3), weights="none", any_size=True)
    for side, batch in images.items():
        one = build(name, (side, side, 3), weights="none")
        for new, old in zip(one.weights, either.weights, strict=True):
            new.assign(old)
        np.testing.assert_allclose(
            to_numpy(with_image_size(either, side, until="unit")(batch)),
            to_numpy(one(batch)),
            atol=1e-5,
        )
    np.testing.assert_allclose(
        to_numpy(either(images[size])),
        to_numpy(with_image_size(either, size, until="unit")(images[size])),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("until", "width"), [("pooling", 6), ("head", 5), ("unit", 5)]
)
def test_another_size_shares_the_layers(until, width):
    embedder = build(convolution())
    other = with_image_size(embedder, 24, until)
    assert other.input_shape == (None, 24, 24, 1)
    assert other.output_shape == (None, width)
    assert names(other)[-1] == until
    for layer in other.layers[1:]:
        assert layer is embedder.get_layer(layer.name)


def convolution():
    """A network for gray images of any size."""
    image = keras.Input((None, None, 1))
    return keras.Model(image, keras.layers.Conv2D(6, 3)(image))


def test_a_backbone_of_one_size_is_refused_for_any():
    with pytest.raises(UsageError, match="`any_size` needs.*'small_cnn'"):
        build(any_size=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKBONES if ALL else ("small_cnn", *FEW))
def test_every_backbone_saves_and_loads(name, tmp_path):
    """Gray images for every second one, where they are repeated to RGB."""
    backbone = BACKBONES[name]
    channels = 1 + 2 * (list(BACKBONES).index(name) % 2)
    size = max(backbone.min_image_size, 32)
    shape = (size, size, channels)
    embedder = build(name, shape, weights="none")
    images = RNG.uniform(0, 255, (2, *shape)).astype("float32")
    expected = to_numpy(embedder(images))
    embedder.save(tmp_path / "embedder.keras")
    loaded = keras.saving.load_model(tmp_path / "embedder.keras")
    np.testing.assert_allclose(to_numpy(loaded(images)), expected, atol=1e-6)
