"""Writes the report of a run, a page that shows what the run learned."""

from keras_dml.report.page import FILE, write_report

__all__ = ["FILE", "write_report"]
