"""What a search found, printed and as plain values."""

import numpy as np
import pytest

from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet
from keras_dml.run.trained_run import EmbeddedImages
from keras_dml.search.result import Answer, Neighbor, SearchResult


@pytest.fixture
def result():
    """Two photos of a gallery of three, of which one finds nothing."""
    paths = ["a/shoe.png", "a/boot.png"]
    return SearchResult(
        answers=[
            Answer(paths[0], [Neighbor("1", "boot", 0.75, 0.25, 1, None)]),
            Answer(paths[1], [], in_gallery=1),
        ],
        queries=Manifest(
            name="images",
            labels=np.zeros(2, np.int64),
            class_names=["unknown"],
            ids=paths,
            paths=paths,
        ),
        gallery=EmbeddedImages(
            EmbeddingSet(np.eye(3, dtype="float32"), [0, 0, 1]), None
        ),
        threshold=None,
    )


def test_an_image_without_a_neighbor_is_printed(result):
    first, second = result._brief_rows()
    assert first["nearest"] == "1" and first["distance"] == 0.25
    assert second["image"] == "boot.png" and second["nearest"] is None
    assert "boot.png" in repr(result)


def test_an_image_of_the_gallery_is_searched_among_the_others(result):
    first, second = result.answers
    assert result.searched(first) == "the run's 3 test images"
    assert result.searched(second) == "the run's 2 other test images"


def test_plain_values_have_no_match_without_a_threshold_or_a_neighbor(result):
    found = result.to_dict()
    assert found["threshold"] is found["max_distance"] is None
    assert [one["match"] for one in found["answers"]] == [None, None]
    assert [len(one["neighbors"]) for one in found["answers"]] == [1, 0]
