import itertools

from matplotlib.figure import Figure

from keras_dml.plotting import line_style, save_figure, svg


def test_lines_differ():
    styles = [line_style(number) for number in range(25)]
    for first, second in itertools.combinations(styles, 2):
        assert first != second


def test_files_are_whole_and_equal(tmp_path):
    figure = Figure()
    figure.subplots().plot([1, 2])
    save_figure(figure, tmp_path / "recall@1.0")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["recall@1.0.png", "recall@1.0.svg"]
    before = [(tmp_path / name).read_bytes() for name in names]
    save_figure(figure, tmp_path / "recall@1.0")
    assert [(tmp_path / name).read_bytes() for name in names] == before
    assert svg(figure) == before[1]
