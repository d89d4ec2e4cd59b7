"""Writes the report of a run, a page that shows what the run learned."""

from keras_dml.report.page import write_report

__all__ = ["write_report"]
