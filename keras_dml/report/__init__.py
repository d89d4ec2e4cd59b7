"""Pages and pictures that show what a run learned."""

from keras_dml.report.search_picture import check_picture, draw_answers
from keras_dml.report.write import write_report

__all__ = ["check_picture", "draw_answers", "write_report"]
