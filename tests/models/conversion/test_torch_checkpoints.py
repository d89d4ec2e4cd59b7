"""Converted checkpoints of PyTorch give the features they gave there."""

import math

import numpy as np
import pytest

from keras_dml.layers import preprocess_images
from keras_dml.models import BACKBONES
from keras_dml.models.conversion import convert_weights
from keras_dml.models.weights import build_with_weights
from tests.conformance import to_numpy

torch = pytest.importorskip("torch")

from tests.models.conversion import torch_references  # noqa: E402

# A size whose maps are odd here and there, so that padding shows, and the
# parameters of the published network with its classifier for 1000 classes.
NETWORKS = {
    "bn_inception": ((67, 64), 1024, 11_295_240),
    "googlenet": ((83, 64), 1024, 6_624_904),
    "resnet50_v1_5": ((67, 64), 2048, 25_557_032),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_features_and_parameters_are_those_of_torch(name, tmp_path):
    (height, width), features, published = NETWORKS[name]
    images = np.random.default_rng(0).uniform(0, 255, (2, height, width, 3))
    images = images.astype("float32")
    state = torch_references.RandomState()
    reference = getattr(torch_references, name)
    with torch.no_grad():
        expected = reference(
            torch.from_numpy(images.transpose(0, 3, 1, 2)), state
        )
    expected = expected.numpy().transpose(0, 2, 3, 1)
    torch.save(state.entries, tmp_path / "public.pth")

    converted = convert_weights(
        tmp_path / "public.pth", name, tmp_path / f"{name}.weights.h5"
    )
    assert all(
        key.startswith(("fc.", "last_linear.", "aux1."))
        or key.endswith("num_batches_tracked")
        for key in converted.left_out
    )
    backbone = build_with_weights(name, (height, width, 3), str(converted.path))
    trained = sum(math.prod(one.shape) for one in backbone.trainable_weights)
    assert trained + features * 1000 + 1000 == published
    assert converted.parameters == backbone.count_params()

    preprocessed = preprocess_images(images, BACKBONES[name].preprocessing)
    received = to_numpy(backbone(preprocessed))
    assert received.shape == expected.shape
    assert received.std() > 0.1
    np.testing.assert_allclose(
        received, expected, rtol=0, atol=1e-4 * np.abs(expected).max()
    )
