"""Joins the commands into one application and sets its exit codes."""

import difflib
import functools
import io
import logging
import os
import re
import sys
from collections.abc import Collection, Iterable
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from keras_dml.cli import commands
from keras_dml.cli.config import config
from keras_dml.cli.lists import backbones, datasets, plans, recipes
from keras_dml.console import logger, show
from keras_dml.errors import RunError, UsageError, reason_of
from keras_dml.files import is_full_disk
from keras_dml.fit_options import options_that_set
from keras_dml.naming import shortened
from keras_dml.run.timing import command_of_process
from keras_dml.version import __version__

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LONGEST_WORD = 500
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
    (recipes, LOOK, "recipes triplet"),
    (backbones, LOOK, "backbones"),
    (datasets, LOOK, "datasets"),
    (plans, LOOK, "plans demo"),
    (commands.prepare, LOOK, "prepare cars196 --data-dir ~/data"),
    (
        commands.convert_weights,
        LOOK,
        "convert-weights bn.pth --network bn_inception --output bn.weights.h5",
    ),
)


# What people who come from elsewhere call an option.
OTHER_NAMES = {
    "--backbone": "model network arch architecture encoder",
    "--batch-size": "bs batch",
    "--data-dir": "data root data-root",
    "--dim": "embedding-size embedding-dim embed-dim emb-dim dimensions d",
    "--epochs": "e epoch steps iterations max-steps num-epochs",
    "--image-size": "size img-size imgsz resolution input-size",
    "--k": "top topk top-k n neighbors limit num-neighbors",
    "--lr": "learning-rate",
    "--minutes": "time budget max-time duration timeout",
    "--output": "out out-dir output-dir save dir o",
    "--recipe": "recipes method",
    "--recipes": "recipe methods",
    "--seeds": "seed runs repeats",
    "--set": "optimizer weight-decay temperature scale margin augment param",
    "--strategy": "gpu gpus distributed num-gpus",
    "--weights": "pretrained checkpoint ckpt",
    "--with-references": "with-gallery",
}


# The settings of a plan that options of `compare` set.
_PLAN_OPTIONS = {"protocol": "protocol.kind"}
_NUMBERS = {
    "Input should be a valid integer": "it must be a whole number",
    "Input should be a valid number": "it must be a number",
}


class _Command(TyperCommand):
    """A command that knows which option was meant."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _leave_types_out(self.get_params(ctx))
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _leave_types_out(self.params)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            given = getattr(error, "option_name", "").strip("-")
            if given:
                error.possibilities = self._meant(given)  # type: ignore
            said = getattr(error, "message", "")
            for start, words in _NUMBERS.items():
                if said.startswith(start):
                    error.message = words  # type: ignore[attr-defined]
            raise

    def _meant(self, given: str) -> list[str]:
        """Returns the options that a person may have meant by another."""
        helps = {
            one.opts[0]: (one.help or "").lower()
            for one in self.params
            if isinstance(one, TyperOption)
        }
        named = [
            option
            for option, others in OTHER_NAMES.items()
            if option in helps and given in others.split()
        ]
        letters = difflib.get_close_matches(f"--{given}", helps, cutoff=0.7)
        # Its help says what an option is for.
        words = re.findall(r"[a-z]{4,}", given)
        said = [
            option
            for option, text in helps.items()
            if words and all(re.search(rf"\b{one}", text) for one in words)
        ]
        settings = options_that_set().get(given.replace("-", "_"), "")
        key = settings.partition(" ")[0]
        by_set = [f"--set {key}=..."] if key and "--set" in helps else []
        return (named or by_set or letters or said)[:3]


class _Group(TyperGroup):
    """The commands together."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _leave_types_out(self.get_params(ctx))
        super().format_help(ctx, formatter)


def _leave_types_out(parameters: Iterable[Any]) -> None:
    """Removes the types of flags and arguments from the help."""
    for one in parameters:
        if isinstance(one, TyperArgument):
            one.display_type_rich = lambda ctx: None  # type: ignore
            # Typer puts braces around what is required.
            one._usage_display_name = functools.partial(_usage, one)  # type: ignore
        elif one.is_flag:
            one.metavar = ""


def _usage(argument: TyperArgument) -> str:
    """Returns an argument as the line of usage has it."""
    name = argument.display_name_raw
    several = "..." if argument.nargs != 1 else ""
    return f"{name if argument.required else f'[{name}]'}{several}"


app = typer.Typer(
    name="keras-dml",
    cls=_Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
for function, group, example in COMMANDS:
    app.command(
        cls=_Command,
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
    wording = _OptionNames()
    logger.addFilter(wording)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names of files need not be text.
            stream.reconfigure(errors="backslashreplace")
    try:
        with command_of_process():
            _group()()
    except (UsageError, RunError) as error:
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
        _fail(f"{place} cannot be read or written: {error.strerror}.", 2)
    finally:
        logger.removeFilter(wording)


class _OptionNames(logging.Filter):
    """Turns the arguments that the library names into options.

    `resume=True` becomes `--resume`, and `output` becomes `--output`. Only
    this class knows both names; it reads them from the commands.
    """

    def __init__(self) -> None:
        super().__init__()
        commands = _group().commands
        parameters = [one for each in commands.values() for one in each.params]
        # `embeddings` also names an array in files of embeddings.
        others = {"embeddings"} | {
            one.name for one in parameters if isinstance(one, TyperArgument)
        }
        self._options = _by_name(parameters, others)
        running = [commands[word] for word in sys.argv[1:2] if word in commands]
        own = _by_name([one for each in running for one in each.params], others)
        # `--recipes` where another command has `--recipe`.
        several = {name.removesuffix("s"): one for name, one in own.items()}
        self._options |= several | own
        # A mistake in a setting is one in the option that was given for it.
        self._settings = [
            (_setting_pattern(path), option)
            for name, paths in {**options_that_set(), **_PLAN_OPTIONS}.items()
            for option in (f"--{name.replace('_', '-')}",)
            if any(word.split("=")[0] == option for word in sys.argv)
            for path in paths.split()
        ]

    def translate(self, text: str) -> str:
        """Returns the text with options in place of arguments."""
        for setting, option in self._settings:
            text = setting.sub(f"`{option}`", text)
        # One value after a sentence that names it already.
        text = re.sub(r"Received: \w+=(?!.*\b\w+=)", "Received: ", text)
        named = r"(?<!Unknown configuration key )`(\w+)(?:=([^`]*))?`"
        return re.sub(named, self._option, text)

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


def _by_name(
    parameters: Iterable[Any], others: Collection[str]
) -> dict[str, TyperOption]:
    """Returns options by the names of their arguments, but for `others`."""
    return {
        name: one
        for one in parameters
        if isinstance(one, TyperOption)
        for name in (one.name, one.opts[0].strip("-").replace("-", "_"))
        if name not in others
    }


def _setting_pattern(path: str) -> re.Pattern[str]:
    """Returns what names a setting in an error: stages have numbers there."""
    known = (
        re.escape(path).replace("main", r"\d+").replace("train", r"phases\.\d+")
    )
    return re.compile(f"Configuration key `{known}`|`{known}`")


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
