"""`keras-dml report`."""

from keras_dml.cli.options import DataDir, Run
from keras_dml.cli.printing import say
from keras_dml.console import logging_to


def report(run: Run, data_dir: DataDir = None) -> None:
    """Write one page that shows what a run learned."""
    from keras_dml.report import write_report

    with logging_to():
        page = write_report(run, data_dir=data_dir)
    say(f"Report: {page}")
