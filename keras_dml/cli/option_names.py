"""Names options where the library names arguments."""

import logging
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from typer.core import TyperArgument, TyperOption

from keras_dml.fit_options import PLAN_KEYS, options_that_set


class OptionNames(logging.Filter):
    """Turns the arguments that the library names into options.

    `resume=True` becomes `--resume`, and `output` becomes `--output`. Only
    this class knows both names; it reads them from the commands.

    Args:
        commands: The commands by name.
    """

    def __init__(self, commands: Mapping[str, Any]) -> None:
        super().__init__()
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
            for known in (options_that_set(), PLAN_KEYS)
            for name, paths in known.items()
            for option in (f"--{name.replace('_', '-')}",)
            if any(word.split("=")[0] == option for word in sys.argv)
            for path in paths.split()
        ]

    def translate(self, text: str) -> str:
        """Returns the text with options in place of arguments."""
        told = text

        def value(match: re.Match[str]) -> str:
            named = re.search(rf"\b{match[1]}`", told[: match.start()])
            return "Received: " if named else match.group()

        # One value after a sentence that names it already.
        text = re.sub(r"Received: (\w+)=(?!.*\b\w+=)", value, text)
        for setting, option in self._settings:
            text = setting.sub(f"`{option}`", text)
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
    known = re.escape(path)
    if path.startswith("stages."):
        known = known.replace("main", r"\d+").replace("train", r"phases\.\d+")
    return re.compile(f"Configuration key `{known}`|`{known}`")
