"""Joins the commands into one application and sets its exit codes."""

import errno
import logging
import os
import re
import sys
from typing import NoReturn

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from keras_dml.cli import commands
from keras_dml.cli.config import config
from keras_dml.cli.lists import backbones, datasets, plans, recipes
from keras_dml.console import logger
from keras_dml.errors import RunError, UsageError

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

app = typer.Typer(
    name="keras-dml",
    help="Deep metric learning: train, measure and ship an image embedder.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    commands.fit,
    commands.evaluate,
    commands.search,
    commands.embed,
    commands.report,
    commands.compare,
    commands.export,
    config,
    commands.prepare,
    commands.convert_weights,
    recipes,
    datasets,
    backbones,
    plans,
):
    app.command()(command)


def main() -> None:
    """Runs the command line and sets its exit code.

    The exit code is 0 after success, 2 after a mistake of the caller and 1
    after any other error. 75 and 143 ask to start `fit` again with
    `--resume`. Errors and log lines name options where the library names
    arguments.
    """
    wording = _OptionNames()
    logger.addFilter(wording)
    try:
        app()
    except (UsageError, RunError) as error:
        _fail(wording.translate(str(error)), error.exit_code)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _fail(
            f"The disk is full (writing {error.filename or 'a file'}). What "
            "was written before is whole: free some space and pass "
            "`--resume`.",
            1,
        )
    finally:
        logger.removeFilter(wording)


class _OptionNames(logging.Filter):
    """Turns the arguments that the library names into options.

    `resume=True` becomes `--resume`, and `output` becomes `--output`. Only
    this class knows both names; it reads them from the commands.
    """

    def __init__(self) -> None:
        super().__init__()
        group = typer.main.get_command(app)
        assert isinstance(group, TyperGroup)
        parameters = [p for c in group.commands.values() for p in c.params]
        # `embeddings` also names an array in files of embeddings.
        others = {"embeddings"} | {
            one.name for one in parameters if isinstance(one, TyperArgument)
        }
        self._options = {
            name: one
            for one in parameters
            if isinstance(one, TyperOption)
            for name in (one.name, one.opts[0].strip("-").replace("-", "_"))
            if name not in others
        }

    def translate(self, text: str) -> str:
        """Returns the text with options in place of arguments."""
        return re.sub(r"`(\w+)(?:=([^`]*))?`", self._option, text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Translates a log line; keeps every line."""
        record.msg, record.args = self.translate(record.getMessage()), None
        return True

    def _option(self, match: re.Match[str]) -> str:
        name, value = match.groups()
        option = self._options.get(name)
        if option is None:
            return match.group()
        if value == "False" and option.secondary_opts:
            return f"`{option.secondary_opts[0]}`"
        if value in (None, "True"):
            return f"`{option.opts[0]}`"
        return f"`{option.opts[0]} {value.strip(chr(39))}`"


def _fail(message: str, code: int) -> NoReturn:
    print(f"Error: {message}", file=sys.stderr, flush=True)
    if code > 2:
        # Exit at once: TensorFlow may wait for workers that are gone.
        sys.stdout.flush()
        logging.shutdown()
        os._exit(code)
    sys.exit(code)
