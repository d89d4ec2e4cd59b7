"""Joins the commands into one application and sets its exit codes."""

import errno
import functools
import io
import logging
import os
import re
import sys
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup

from keras_dml.cli import commands, ingredients
from keras_dml.cli.config import config
from keras_dml.cli.lists import backbones, datasets, plans, recipes
from keras_dml.cli.option_names import OptionNames
from keras_dml.cli.parsing import Command, Group
from keras_dml.console import logger, show
from keras_dml.errors import PreemptedError, RunError, UsageError, reason_of
from keras_dml.files import is_full_disk
from keras_dml.naming import shortened
from keras_dml.run.timing import command_of_process
from keras_dml.version import __version__

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LONGEST_WORD = 500
# What a caller does wrong with a path; other errors of a system may pass.
MISTAKES = {
    *(errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG),
    *(errno.ELOOP, errno.EINVAL),
}
TRAIN, USE, LOOK = "Train", "Use what was trained", "Look up"
# Each command with its group in the help, and an example.
COMMANDS = (
    (commands.fit, TRAIN, "fit ./shoes --backbone mobilenet_v2 --minutes 30"),
    (commands.compare, TRAIN, "compare ./shoes --recipes triplet,arcface"),
    (config, TRAIN, "config ./shoes --recipe proxy_anchor"),
    (commands.search, USE, "search runs/shoes photo.jpg --k 5"),
    (commands.evaluate, USE, "evaluate runs/shoes --k 1,10 --intervals"),
    (commands.report, USE, "report runs/shoes --open"),
    (commands.embed, USE, "embed runs/shoes ./photos --output photos.npz"),
    (commands.export, USE, "export runs/shoes --format litert --quantize int8"),
    (commands.push, USE, "push runs/shoes ada/shoes --license apache-2.0"),
    (recipes, LOOK, "recipes triplet"),
    (backbones, LOOK, "backbones"),
    (datasets, LOOK, "datasets"),
    (plans, LOOK, "plans demo"),
    (ingredients.prepare, LOOK, "prepare cars196 --data-dir ~/data"),
    (
        ingredients.convert_weights,
        LOOK,
        "convert-weights bn.pth --network bn_inception --output bn.weights.h5",
    ),
)

app = typer.Typer(
    name="keras-dml",
    cls=Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for function, group, example in COMMANDS:
    app.command(
        cls=Command,
        rich_help_panel=group,
        epilog=f"Example: keras-dml {example}",
    )(function)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"keras-dml {__version__}")
        raise typer.Exit


@app.callback(epilog="Start with: keras-dml fit FOLDER")
def top(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Deep metric learning: train, measure and ship an image embedder."""


@functools.cache
def _group() -> TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


def main() -> None:
    """Runs the command line and sets its exit code.

    The exit code is 0 after success, 2 after a mistake of the caller, 130
    after Ctrl-C and 1 after any other error. 75, 130 and 143 ask to start
    `fit` again with `--resume`. Errors and log lines name options where the
    library names arguments.
    """
    wording = OptionNames(_group().commands)
    logger.addFilter(wording)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files need not be text.
            stream.reconfigure(errors="backslashreplace")
    try:
        with command_of_process():
            _group()()
    except (UsageError, RunError, PreemptedError) as error:
        _fail(wording.translate(str(error)), error.exit_code)
    except Exception as error:
        place = getattr(error, "filename", None)
        if is_full_disk(error):
            _fail(
                f"The disk is full (writing {place or 'a file'}). What was "
                "written before is whole: free some space and start the "
                "command again; `fit` and `embed` go on with `--resume`.",
                1,
            )
        if not isinstance(error, OSError):
            raise
        if place is None:
            _fail(f"The system refuses: {reason_of(error)}.", 1)
        code = 2 if error.errno in MISTAKES else 1
        _fail(f"{place} cannot be read or written: {error.strerror}.", code)
    finally:
        logger.removeFilter(wording)


def _fail(message: str, code: int) -> NoReturn:
    # An option that sets two settings is wrong once.
    message = "\n".join(dict.fromkeys(message.split("\n")))
    # A name of thousands of letters would hide the sentence.
    message = re.sub(
        rf"\S{{{LONGEST_WORD},}}",
        lambda word: shortened(word[0], LONGEST_WORD),
        message,
    )
    show(f"Error: {message}")
    if code > 2:
        # Exit at once: TensorFlow may wait for workers that are gone.
        sys.stdout.flush()
        logging.shutdown()
        os._exit(code)
    sys.exit(code)
