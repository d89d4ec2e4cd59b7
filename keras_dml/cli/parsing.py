"""How a command reads its options, and which one a person meant."""

import difflib
import functools
import re
from collections.abc import Iterable
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from keras_dml.fit_options import options_that_set
from keras_dml.naming import shortened

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

_NUMBERS = {
    "Input should be a valid integer": "it must be a whole number",
    "Input should be a valid number": "it must be a number",
}


class Command(TyperCommand):
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


class Group(TyperGroup):
    """The commands together."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # The error names the word, which may be of any length.
        return super().resolve_command(ctx, [shortened(args[0]), *args[1:]])

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
