"""Option names in the place of argument names."""

import logging

import pytest
import typer

from keras_dml.cli.app import app
from keras_dml.cli.option_names import OptionNames

NAMES = OptionNames(typer.main.get_command(app).commands)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pass `resume=True`.", "Pass `--resume`."),
        ("Choose another `output`.", "Choose another `--output`."),
        ("`report=False`", "`--no-report`"),
        ("`recipe='triplet:default'`", "`--recipe triplet:default`"),
        ("`max_false_match_rate` is 2", "`--max-false-match-rate` is 2"),
        ("`format` is gif", "`--format` is gif"),
        # No option has these names, or an argument of a command has.
        ("`model.dim` and `margin`", "`model.dim` and `margin`"),
        ("`source` is absent", "`source` is absent"),
    ],
)
def test_arguments_become_options(text, expected):
    assert NAMES.translate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`k` must be 1. Received: k=2", "`-k` must be 1. Received: 2"),
        ("It fails. Received: k=2", "It fails. Received: k=2"),
        ("`k` is odd. Received: k=2, n=3", "`-k` is odd. Received: k=2, n=3"),
    ],
)
def test_a_value_keeps_a_name_that_nothing_else_says(text, expected):
    assert NAMES.translate(text).replace("`--k`", "`-k`") == expected


def test_log_lines_are_translated_with_their_values():
    record = logging.LogRecord(
        "keras_dml", 20, "", 0, "%s: pass `resume=True`", ("runs/a",), None
    )
    assert NAMES.filter(record)
    assert record.getMessage() == "runs/a: pass `--resume`"


@pytest.mark.parametrize(
    ("given", "text", "expected"),
    [
        ("--train-classes", "`data.train_classes` is", "`--train-classes` is"),
        ("--freeze", "`stages.0.phases.1.freeze` is", "`--freeze` is"),
        ("--epochs", "`budget.epochs` is", "`--epochs` is"),
    ],
)
def test_a_setting_is_told_by_the_option_that_was_given(
    given, text, expected, monkeypatch
):
    command = "compare" if "budget" in text else "fit"
    monkeypatch.setattr("sys.argv", ["keras-dml", command, given, "x"])
    names = OptionNames(typer.main.get_command(app).commands)
    assert names.translate(text) == expected
