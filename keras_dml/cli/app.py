"""The commands in one application, and its exit codes."""

import errno
import os
import sys
from typing import NoReturn

import typer

from keras_dml.cli.compare import compare, plans
from keras_dml.cli.convert_weights import convert_weights
from keras_dml.cli.embed import embed
from keras_dml.cli.evaluate import evaluate
from keras_dml.cli.export import export
from keras_dml.cli.fit import fit
from keras_dml.cli.lists import backbones, datasets, recipes
from keras_dml.cli.prepare import prepare
from keras_dml.cli.report import report
from keras_dml.cli.search import search
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
    fit,
    evaluate,
    search,
    embed,
    report,
    compare,
    export,
    prepare,
    convert_weights,
    recipes,
    datasets,
    backbones,
    plans,
):
    app.command()(command)


def main() -> None:
    """Runs the command line: 0 done, 2 the caller's mistake, 1 the rest.

    75 and 143 ask to start `fit` again with `--resume`.
    """
    try:
        app()
    except UsageError as error:
        _fail(str(error), 2)
    except RunError as error:
        _fail(str(error), 1)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _fail(
            f"The disk is full (writing {error.filename or 'a file'}). What "
            "was written before is whole: free some space and pass "
            "`--resume`.",
            1,
        )


def _fail(message: str, code: int) -> NoReturn:
    print(f"Error: {message}", file=sys.stderr)
    sys.exit(code)
