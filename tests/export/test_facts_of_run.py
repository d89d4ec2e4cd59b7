"""Which images of a run its artifacts are compared on."""

from types import SimpleNamespace

import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data import Manifest
from keras_dml.evaluation.open_set.thresholds import Threshold
from keras_dml.export import ExportOptions
from keras_dml.export.facts_of_run import images_to_compare, with_facts_of_run
from keras_dml.export.runs import as_served
from keras_dml.run.run_threshold import RunThreshold

CONFIG = resolve("norm_softmax", "digits").changed(
    data={"image_size": 8, "channels": 1}
)


def manifest(labels):
    count = len(labels)
    return Manifest(
        name="made up",
        labels=labels,
        class_names=[str(one) for one in range(max(labels) + 1)],
        ids=[f"{row:05d}" for row in range(count)],
        images=np.zeros((count, 8, 8, 1), np.uint8),
    )


@pytest.mark.parametrize(
    ("classes", "images", "count", "found"),
    [
        (3, 300, 250, (3, 249)),
        (3, 7000, 1000, (3, 999)),
        (50, 4, 100, (25, 100)),
        (10, 2, 250, (10, 20)),
        (1, 300, 250, (1, 250)),
    ],
)
def test_several_classes_with_some_images_each(classes, images, count, found):
    """One large class would be found whole by any artifact."""
    test = manifest(np.repeat(np.arange(classes), images))
    pixels, labels = images_to_compare(test, CONFIG, count)
    assert len(pixels) == len(labels)
    assert (len(np.unique(labels)), len(labels)) == found


def test_classes_of_one_image_are_passed_over():
    test = manifest([*range(40), *np.repeat([40, 41], 5)])
    _, labels = images_to_compare(test, CONFIG, 20)
    assert sorted(set(labels.tolist())) == [40, 41]


def test_without_two_images_of_a_class_no_retrieval_is_compared():
    pixels, labels = images_to_compare(manifest(range(40)), CONFIG, 20)
    assert (len(pixels), labels) == (20, None)


@pytest.mark.parametrize(
    ("metrics", "final"), [({}, False), ({"final": True}, True)]
)
def test_whose_results_a_manifest_states(metrics, final):
    """Those of a network that trained on the test classes are another's."""
    facts = ("dataset", "recipe", "backbone", "seed", "after")
    run = SimpleNamespace(
        config=CONFIG, metrics={**dict.fromkeys(facts, "some"), **metrics}
    )
    data = SimpleNamespace(train=manifest([0, 0, 1, 1]))
    options = with_facts_of_run(ExportOptions(), data, run, None)
    assert options.metadata["after"] == "some"
    assert options.metadata["final"] is final


def test_a_threshold_of_distances_is_served_as_one_of_cosines(make_embedder):
    """A client compared cosines with minus a squared distance: all matched."""
    own = Threshold(-0.5, 0.01, 0.01, 0.2, 100, 50, "euclidean", "pairs")
    found = RunThreshold(own, 0.1, 10, 5)
    served = as_served(found, make_embedder())
    assert (served.threshold.score, served.threshold.metric) == (0.75, "cosine")
    a, b = np.array([1.0, 0.0]), np.array([0.75, np.sqrt(1 - 0.75**2)])
    assert np.sum((a - b) ** 2) == pytest.approx(0.5)
    assert as_served(found, make_embedder(normalize=False)) is found
