"""The count of the steps, and the layers that half precision would break."""

import numpy as np
import pytest

from keras_dml import layers, losses

ROWS, LABELS = np.eye(3, dtype="float32"), np.arange(3)

CASES = {
    "step": (layers.TrainingStep, ROWS),
    "boundaries": (lambda **k: layers.ClassBoundaries(3, **k), [ROWS, LABELS]),
    "memory": (
        lambda **k: layers.CrossBatchMemory(losses.Contrastive(), 8, **k),
        [ROWS, LABELS],
    ),
    "distillation": (
        lambda **k: layers.Distillation(losses.Relational(), **k),
        [ROWS, ROWS, ROWS],
    ),
    "manifold": (lambda **k: layers.ManifoldSimilarities(3, **k), ROWS),
    "sample_aware": (
        lambda **k: layers.SampleAwareProxies(3, **k),
        [ROWS, LABELS],
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "half", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)
def test_half_precision_is_refused(case, half):
    message = f"`dtype` must be float32.*dtype='{half.removeprefix('mixed_')}'"
    with pytest.raises(ValueError, match=message):
        CASES[case][0](dtype=half)


@pytest.mark.parametrize("case", CASES)
def test_a_global_policy_does_not_reach_the_layers(case, policy):
    make, inputs = CASES[case]
    output = make()(inputs, training=True)
    assert output.dtype == "float32"
    assert np.isfinite(output[output > -np.inf]).all()


def test_steps_are_counted_one_by_one(policy):
    layer = layers.TrainingStep()
    layer.build(ROWS.shape)
    # The first integers that bfloat16, float16 and float16 at all lack.
    for step in (257, 2049, 70_001):
        layer.step.assign(step)
        assert float(layer(ROWS, training=True)[0, -1]) == step
        assert float(layer(ROWS)[0, -1]) == step + 1
