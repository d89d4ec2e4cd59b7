import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure

from keras_dml.comparison.page.drawing import kept_apart, text_width
from keras_dml.plotting import line_style, save_figure


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_kept_apart_and_in_order(seed):
    wanted = np.random.default_rng(seed).random(12) ** 3
    found = kept_apart(wanted, 0.05, 0.0, 1.0)
    order = np.argsort(wanted)
    assert (np.diff(found[order]) >= 0.05 - 1e-12).all()
    assert found.min() >= -1e-12 and found.max() <= 1 + 1e-12


def test_labels_with_room_stay_where_they_are():
    wanted = [0.9, 0.1, 0.5]
    np.testing.assert_allclose(kept_apart(wanted, 0.2, 0, 1), wanted)


def test_equal_labels_move_by_the_same():
    np.testing.assert_allclose(kept_apart([5, 5, 5], 1, 0, 10), [4, 5, 6])


def test_too_many_labels_share_the_room():
    found = kept_apart([0.5] * 5, 1.0, 0.0, 2.0)
    np.testing.assert_allclose(np.sort(found), [0, 0.5, 1, 1.5, 2])


def test_lines_are_told_apart():
    styles = [line_style(number) for number in range(25)]
    for first, second in itertools.combinations(styles, 2):
        assert first != second


def test_longer_texts_are_wider():
    assert text_width("") == text_width(" ") == 0
    assert 0 < text_width("ii") < text_width("mm") < text_width("mmm")
    assert text_width("mm", 18) == pytest.approx(2 * text_width("mm"))


def test_files_are_whole_and_equal(tmp_path):
    figure = Figure()
    figure.subplots().plot([1, 2])
    save_figure(figure, tmp_path / "recall@1.0")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["recall@1.0.png", "recall@1.0.svg"]
    before = [(tmp_path / name).read_bytes() for name in names]
    save_figure(figure, tmp_path / "recall@1.0")
    assert [(tmp_path / name).read_bytes() for name in names] == before
