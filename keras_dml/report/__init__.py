"""Pages and pictures that show what a run learned."""

from keras_dml.report.write import write_report
from keras_dml.search.picture import check_picture, draw_answers

__all__ = ["check_picture", "draw_answers", "write_report"]
