"""A converted checkpoint of slim gives the features it gave there."""

import math

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.errors import UsageError
from keras_dml.layers import preprocess_images
from keras_dml.models import BACKBONES
from keras_dml.models.conversion import convert_weights
from keras_dml.models.conversion.reading import read_checkpoint
from keras_dml.models.weights import build_with_weights
from tests.conformance import to_numpy

SIDE = 67


class RandomVariables:
    """Slim's variables, drawn when they are first asked for."""

    def __init__(self):
        self.values = {}
        self.rng = np.random.default_rng(0)

    def unit(self, x, scope, width, kernel, stride=1):
        scope = f"InceptionV1/{scope}"
        inputs = int(x.shape[-1])
        fan_in = inputs * kernel**2
        weights = self._normal(
            f"{scope}/weights",
            (kernel, kernel, inputs, width),
            (2 / fan_in) ** 0.5,
        )
        norm = f"{scope}/BatchNorm"
        variance = self.rng.uniform(0.5, 1.5, width).astype("float32")
        self.values[f"{norm}/moving_variance"] = variance
        x = tf.nn.conv2d(x, weights, stride, "SAME")
        x = tf.nn.batch_normalization(
            x,
            mean=self._normal(f"{norm}/moving_mean", (width,), 0.2),
            variance=variance,
            offset=self._normal(f"{norm}/beta", (width,), 0.2),
            scale=None,
            variance_epsilon=1e-3,
        )
        return tf.nn.relu(x)

    def _normal(self, name, shape, deviation):
        value = self.rng.normal(0, deviation, shape).astype("float32")
        self.values[name] = value
        return value


def reference(images, variables):
    """The network of slim's `inception_v1_base`."""
    unit = variables.unit

    def pool(x, size, stride):
        return tf.nn.max_pool2d(x, size, stride, "SAME")

    def block(
        x, scope, one, reduced1, two, reduced2, three, projection, slip="b"
    ):
        first = unit(x, f"{scope}/Branch_1/Conv2d_0a_1x1", reduced1, 1)
        second = unit(x, f"{scope}/Branch_2/Conv2d_0a_1x1", reduced2, 1)
        third = pool(x, 3, 1)
        return tf.concat(
            [
                unit(x, f"{scope}/Branch_0/Conv2d_0a_1x1", one, 1),
                unit(first, f"{scope}/Branch_1/Conv2d_0b_3x3", two, 3),
                unit(second, f"{scope}/Branch_2/Conv2d_0{slip}_3x3", three, 3),
                unit(third, f"{scope}/Branch_3/Conv2d_0b_1x1", projection, 1),
            ],
            axis=3,
        )

    x = tf.constant(2 * (images / 255 - 0.5), "float32")
    x = unit(x, "Conv2d_1a_7x7", 64, 7, 2)
    x = pool(x, 3, 2)
    x = unit(x, "Conv2d_2b_1x1", 64, 1)
    x = unit(x, "Conv2d_2c_3x3", 192, 3)
    x = pool(x, 3, 2)
    x = block(x, "Mixed_3b", 64, 96, 128, 16, 32, 32)
    x = block(x, "Mixed_3c", 128, 128, 192, 32, 96, 64)
    x = pool(x, 3, 2)
    x = block(x, "Mixed_4b", 192, 96, 208, 16, 48, 64)
    x = block(x, "Mixed_4c", 160, 112, 224, 24, 64, 64)
    x = block(x, "Mixed_4d", 128, 128, 256, 24, 64, 64)
    x = block(x, "Mixed_4e", 112, 144, 288, 32, 64, 64)
    x = block(x, "Mixed_4f", 256, 160, 320, 32, 128, 128)
    x = pool(x, 2, 2)
    x = block(x, "Mixed_5b", 256, 160, 320, 32, 128, 128, slip="a")
    return block(x, "Mixed_5c", 384, 192, 384, 48, 128, 128)


@pytest.fixture(scope="module")
def slim(tmp_path_factory):
    """Images, their features, and the checkpoint that gave them."""
    images = np.random.default_rng(1).uniform(0, 255, (2, SIDE, SIDE, 3))
    images = images.astype("float32")
    variables = RandomVariables()
    features = reference(images, variables).numpy()
    logits = "InceptionV1/Logits/Conv2d_0c_1x1"
    variables.values |= {
        f"{logits}/weights": np.ones((1, 1, 1024, 1001), "float32"),
        f"{logits}/biases": np.ones(1001, "float32"),
        "global_step": np.int64(7),
    }
    prefix = tmp_path_factory.mktemp("slim") / "inception_v1.ckpt"
    names = list(variables.values)
    tensors = [tf.constant(variables.values[name]) for name in names]
    tf.raw_ops.SaveV2(
        prefix=str(prefix),
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=tensors,
    )
    # The public checkpoint of 2016 is one file.
    tf.raw_ops.Save(
        filename=str(prefix.with_name("one_file.ckpt")),
        tensor_names=names,
        data=tensors,
    )
    return images, features, prefix


@pytest.mark.parametrize(
    "given", ["inception_v1.ckpt", "inception_v1.ckpt.index", "one_file.ckpt"]
)
def test_every_form_of_a_checkpoint_is_read(given, slim):
    prefix = slim[2]
    entries = read_checkpoint(prefix.with_name(given), "tensorflow")
    assert entries["global_step"] == 7
    kernel = entries["InceptionV1/Conv2d_1a_7x7/weights"]
    assert kernel.shape == (7, 7, 3, 64)


def test_features_and_parameters_are_those_of_slim(slim, tmp_path):
    images, expected, prefix = slim
    converted = convert_weights(
        prefix, "inception_v1", tmp_path / "slim.weights.h5"
    )
    assert sorted(converted.left_out) == [
        "InceptionV1/Logits/Conv2d_0c_1x1/biases",
        "InceptionV1/Logits/Conv2d_0c_1x1/weights",
        "global_step",
    ]
    backbone = build_with_weights(
        "inception_v1", (SIDE, SIDE, 3), str(converted.path)
    )
    # That of torchvision, less a scale for each of the 7280 channels.
    trained = sum(math.prod(one.shape) for one in backbone.trainable_weights)
    assert trained + 1024 * 1000 + 1000 == 6_624_904 - 7280
    preprocessed = preprocess_images(
        images, BACKBONES["inception_v1"].preprocessing
    )
    received = to_numpy(backbone(preprocessed))
    assert received.std() > 0.1
    np.testing.assert_allclose(
        received, expected, rtol=0, atol=1e-4 * np.abs(expected).max()
    )


def test_mistakes_name_the_file(tmp_path):
    output = tmp_path / "slim.weights.h5"
    with pytest.raises(UsageError, match=r"no checkpoint .*slim.ckpt"):
        convert_weights(tmp_path / "slim.ckpt", "inception_v1", output)
    (tmp_path / "slim.ckpt.index").write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"slim.ckpt does not load"):
        convert_weights(tmp_path / "slim.ckpt", "inception_v1", output)
    assert not output.exists()
