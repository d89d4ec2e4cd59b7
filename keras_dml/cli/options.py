"""Derives the options of a command from the library's function it calls.

An option is a parameter of the library: its name, its type and, in the
docstring, its help and its default. What a command was not given is not
passed on, so that the default of the library holds.
"""

import functools
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import typer

from keras_dml.cli.signatures import Parameter, read_parameters
from keras_dml.errors import UsageError

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]
Command = Callable[..., None]
KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _words(name: str, text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(name: str, text: str) -> list[int]:
    parts = _words(name, text)
    if not parts or not all(re.fullmatch("[0-9]{1,18}", one) for one in parts):
        raise UsageError(
            f"`{name}` must be whole numbers joined by commas, such as 1,2,4. "
            f"Received: {text!r}"
        )
    return [int(part) for part in parts]


def _each(name: str, texts: list[str]) -> list[str]:
    # An empty one is left for the library to refuse.
    return [part.strip() for text in texts for part in text.split(",")]


def _as_given(name: str, value: Any) -> Any:
    return value


# The type of an option, how it is read, and what stands for its value in the
# help, for each annotation in the library that is not text. An option of type
# `list` is given once for each item.
FORMS: dict[str, tuple[Any, Callable[[str, Any], Any], str]] = {
    "bool": (bool, _as_given, ""),
    "References | bool": (bool, _as_given, ""),
    "int": (int, _as_given, "NUMBER"),
    "float": (float, _as_given, "NUMBER"),
    "Sequence[str]": (str, _words, "NAME,..."),
    "Sequence[int]": (str, _numbers, "N,N,..."),
    "int | Sequence[int]": (str, _numbers, "N,N,..."),
    "str | Sequence[str]": (list[str], _each, "NAME,..."),
    "Mapping[str, Any] | Sequence[str]": (list[str], _as_given, "KEY=VALUE"),
    "Sequence[str | os.PathLike[str]]": (list[str], _as_given, "PATH"),
}
TEXT = (str, _as_given, "NAME")
# Options of text that may be the path of a file or a folder.
PLACES = ("gallery", "source", "weights")


def options_of(
    *targets: str,
    without: Collection[str] = (),
    names: Mapping[str, str] = {},
) -> Callable[[Command], Command]:
    """Gives a command the parameters of functions and classes of options.

    What a function takes by position becomes an argument, the rest options. The
    fields of a class are a group in the help, under the line of its docstring.
    The command itself declares what the library does not have; a parameter of
    its own replaces one of the same name.

    Args:
        *targets: Functions and classes, such as `"keras_dml.api:fit"`.
        without: Parameters to leave out. Defaults to none.
        names: Maps parameters to options of another name, such as `"--set"`,
            or to the name of an argument in the help. Defaults to none.

    Example:

    ```python
    @options_of("keras_dml.report.page:write_report")
    def report(**options):
        from keras_dml.report import write_report

        print(write_report(**options))
    ```
    """
    found = {
        one.name: one for target in targets for one in read_parameters(target)
    }

    def decorate(command: Command) -> Command:
        own = inspect.signature(command).parameters
        chosen = [
            one for name, one in found.items() if name not in {*without, *own}
        ]
        readers = {
            one.name: FORMS.get(one.annotation, TEXT)[1] for one in chosen
        }

        @functools.wraps(command)
        def called(**given: Any) -> None:
            command(
                **{
                    name: readers.get(name, _as_given)(name, value)
                    for name, value in given.items()
                    if value is not None
                }
            )

        spelled = {
            one.name: _spelled(one, names.get(one.name, ""))
            for one in found.values()
        }
        signature = inspect.Signature(
            [
                *(
                    _parameter(one, names.get(one.name, ""), spelled)
                    for one in chosen
                ),
                *(one for one in own.values() if one.kind == KEYWORD),
            ]
        )
        called.__signature__ = signature  # type: ignore[attr-defined]
        called.__annotations__ = {}
        return called

    return decorate


def _is_argument(one: Parameter, name: str) -> bool:
    return one.positional and not name.startswith("--")


def _spelled(one: Parameter, name: str) -> str:
    """Returns a parameter as a person writes it."""
    if _is_argument(one, name):
        return name or one.name.upper()
    return name or f"--{one.name.replace('_', '-')}"


def _in_words(text: str, spelled: Mapping[str, str]) -> str:
    """Returns a text that names options in place of parameters."""
    text = re.sub(
        r"`(\w+)`", lambda name: f"`{spelled.get(name[1], name[1])}`", text
    )
    return text.replace('"', "")


def _parameter(
    one: Parameter, name: str, spelled: Mapping[str, str]
) -> inspect.Parameter:
    """Returns a parameter as Typer reads it."""
    kind, _, metavar = FORMS.get(one.annotation, TEXT)
    default: Any = inspect.Parameter.empty if one.required else None
    shown: Any = _in_words(one.default, spelled).replace("`", "") or False
    if kind is bool:
        default = shown = one.default.startswith("True")
        # Typer adds `--no-...` to an option that is not named here.
        name = name or ("" if default else spelled[one.name])
    if _is_argument(one, name):
        info: Any = typer.Argument(
            metavar=spelled[one.name], show_default=False
        )
    else:
        info = typer.Option(*name.split(), show_default=shown)
        path = "Path" in one.annotation or one.name in PLACES
        info.metavar = "PATH" if path and metavar == "NAME" else metavar
        info.rich_help_panel = one.group
    info.help = _in_words(one.about, spelled)
    return inspect.Parameter(
        one.name,
        KEYWORD,
        default=default,
        annotation=Annotated[kind if one.required else kind | None, info],
    )
