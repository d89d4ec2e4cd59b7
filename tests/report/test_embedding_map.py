import base64
import io

import numpy as np
import pytest
from PIL import Image

from keras_dml.data.manifest import Manifest
from keras_dml.report import embedding_map
from keras_dml.report.thumbnails import Thumbnails

RNG = np.random.default_rng(0)


def test_rows_are_whole_classes(monkeypatch):
    monkeypatch.setattr(embedding_map, "MAX_IMAGES", 50)
    monkeypatch.setattr(embedding_map, "LEAST_CLASSES", 5)
    labels = np.repeat(np.arange(30), 10)
    rows = embedding_map.choose_rows(labels, seed=1)
    classes, counts = np.unique(labels[rows], return_counts=True)
    assert len(classes) == 5 and (counts == 10).all()
    assert len(set(rows.tolist())) == 50
    same = embedding_map.choose_rows(labels, seed=1)
    np.testing.assert_array_equal(rows, same)


def test_a_class_that_is_too_large_is_cut(monkeypatch):
    monkeypatch.setattr(embedding_map, "MAX_IMAGES", 50)
    assert len(embedding_map.choose_rows(np.zeros(200, int))) == 50
    assert len(embedding_map.choose_rows(np.zeros(20, int))) == 20


def test_a_large_class_leaves_room_for_others(monkeypatch):
    """The first of four classes of 3,000 photos filled the map."""
    monkeypatch.setattr(embedding_map, "MAX_IMAGES", 40)
    rows = embedding_map.choose_rows(np.repeat(np.arange(4), 300))
    assert len(set(rows.tolist())) == 40
    assert np.bincount(rows // 300).tolist() == [10] * 4


@pytest.mark.parametrize("normalize", [True, False])
def test_images_of_a_class_lie_together(normalize):
    """The nearest place is of the same class where the rows are apart."""
    labels = np.repeat(np.arange(4), 15)
    rows = 9 * np.eye(4)[labels] + RNG.normal(size=(60, 4))
    places = embedding_map.positions(rows, normalize)
    assert places.min() == 0 and places.max() == 1
    gaps = np.square(places[:, None] - places[None]).sum(axis=-1)
    np.fill_diagonal(gaps, np.inf)
    assert (labels[gaps.argmin(axis=1)] == labels).all()
    np.testing.assert_array_equal(
        places, embedding_map.positions(rows, normalize)
    )


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((10, 3)),
        np.ones((12, 5)),
        np.repeat(np.eye(3), 5, axis=0),
        RNG.normal(size=(11, 1)),
    ],
    ids=["zeros", "one point", "three points", "one column"],
)
def test_degenerate_rows_have_places(rows):
    places = embedding_map.positions(rows.astype("float32"), normalize=True)
    assert places.shape == (len(rows), 2)
    assert np.isfinite(places).all()


def test_thumbnails_lie_where_their_dots_are():
    colors = RNG.integers(60, 200, (3, 3)).astype(np.uint8)
    pixels = np.zeros((3, 20, 20, 3), np.uint8) + colors[:, None, None]
    images = Thumbnails(
        Manifest("x", [0, 1, 2], "abc", [*"abc"], images=pixels)
    )
    places = np.array([[0.0, 0.0], [1.0, 0.5], [0.005, 0.0]])
    uri = embedding_map.draw_map(
        places, np.arange(3), images, np.array([0, 1, 2])
    )
    content = base64.b64decode(uri.partition(",")[2])
    drawn = np.asarray(Image.open(io.BytesIO(content)), int)
    drawn, cover = drawn[..., :3], drawn[..., 3]
    span = embedding_map.CANVAS - 2 * embedding_map.MARGIN
    for row in (0, 1):
        x, y = (embedding_map.MARGIN + places[row] * span).astype(int)
        np.testing.assert_allclose(drawn[y, x], colors[row], atol=25)
    # The third would lie on the first and stays a dot.
    x, y = embedding_map.MARGIN + 10, embedding_map.MARGIN + 10
    np.testing.assert_allclose(drawn[y, x], colors[0], atol=25)
    assert cover[y, x] == 255 and not cover[-30:, :30].any()
