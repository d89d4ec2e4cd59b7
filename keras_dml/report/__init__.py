"""The page of a run, which shows what the run learned."""

from keras_dml.report.page import FILE, write_report

__all__ = ["FILE", "write_report"]
