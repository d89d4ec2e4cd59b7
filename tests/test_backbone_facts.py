import pytest

from keras_dml.backbone_facts import known_backbones, starts_from_weights
from keras_dml.data.facts import dataset_facts, known_datasets
from keras_dml.models import BACKBONES


def test_every_entry_is_a_backbone():
    assert [*known_backbones()] == [*BACKBONES]
    for facts in known_backbones().values():
        assert facts.about.endswith(".") and facts.about.count(". ") == 0


@pytest.mark.parametrize(
    ("backbone", "weights", "starts"),
    [
        ("small_cnn", "auto", False),
        ("small_cnn", "mine.weights.h5", True),
        ("resnet50", "auto", True),
        ("resnet50", "none", False),
        ("resnet50", "imagenet", True),
        ("googlenet", "auto", True),  # which must be converted first
        ("hub:dinov2_small", "auto", True),
        ("hub:dinov2_small", "none", False),
    ],
)
def test_what_starts_from_weights(backbone, weights, starts):
    assert starts_from_weights(backbone, weights) is starts


def test_the_networks_of_the_data_sets_are_known():
    facts = map(dataset_facts, [*known_datasets(), "default"])
    assert {one.backbone for one in facts} <= {*known_backbones()}
