"""`keras-dml report`."""

from keras_dml.cli.options import DataDir, RunPath
from keras_dml.cli.printing import say
from keras_dml.console import logging_to


def report(run: RunPath, data_dir: DataDir = None) -> None:
    """Write one page that shows what a run learned."""
    from keras_dml.api import Run

    with logging_to():
        page = Run(run).report(data_dir=data_dir)
    say(f"Report: {page}")
