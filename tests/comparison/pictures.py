"""What can be measured on a drawn figure."""

import itertools

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text


def texts(figure):
    """Texts that are seen, and the boxes around them in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    hidden = _hidden(figure)
    return [
        (text.get_text(), Text.get_window_extent(text, renderer))
        for text in figure.findobj(Text)
        if text not in hidden and text.get_visible() and text.get_text().strip()
    ]


def check_legible(figure):
    """No text lies on another or leaves the figure."""
    found = texts(figure)
    assert found
    width, height = figure.bbox.width, figure.bbox.height
    for name, box in found:
        assert box.x0 >= 0 and box.y0 >= 0, name
        assert box.x1 <= width and box.y1 <= height, name
    for (first, a), (second, b) in itertools.combinations(found, 2):
        apart = (
            a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        )
        assert apart, f"{first!r} lies on {second!r}"


def _hidden(figure):
    """Labels of axes that are off, and of ticks outside the view."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            labels = [axis.label, axis.offsetText]
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                if not axes.axison or not low <= tick.get_loc() <= high:
                    labels += [tick.label1, tick.label2]
            if axes.axison:
                labels = labels[2:]
            hidden.update(labels)
    return hidden
