"""The page of the commands, from the program itself."""

from collections.abc import Iterator
from typing import Any

import typer

from keras_dml.cli.app import app
from site_pages.markdown import as_code, page

PATH = "reference/commands.md"


def commands_page() -> tuple[str, str, str]:
    """Returns path, title and text of the page."""
    commands = all_commands()
    return (
        PATH,
        "Commands",
        page(
            "# Commands",
            "`keras-dml --help` and `keras-dml COMMAND --help` show the same "
            "in a terminal. Exit codes: 0 after success, 2 after a mistake of "
            "the caller, 1 after any other error. 75 (a worker was lost), 130 "
            "(Ctrl-C) and 143 (SIGTERM) ask to start `fit` again with "
            "`--resume`.",
            *(_command(name, one) for name, one in commands.items()),
        ),
    )


def all_commands() -> dict[str, Any]:
    """Returns the commands by name, as the program has them."""
    return dict(typer.main.get_command(app).commands)  # type: ignore


def _command(name: str, command: Any) -> str:
    about = (command.help or "").strip()
    example = (command.epilog or "").removeprefix("Example: ")
    arguments = [one for one in command.params if one.opts[0][0] != "-"]
    usage = ["keras-dml", name, *map(_usage, arguments), "[OPTIONS]"]
    parts = [f"## {name} {{ #{name} }}", about, _block(" ".join(usage))]
    groups: dict[str, list[Any]] = {"Arguments": arguments}
    for one in command.params:
        if one not in arguments and not getattr(one, "hidden", False):
            title = getattr(one, "rich_help_panel", None) or "Options"
            groups.setdefault(title, []).append(one)
    for title, found in groups.items():
        if found:
            parts += [f"**{title}**", "\n\n".join(_entries(name, found))]
    return page(*parts, f"**Example**\n\n{_block(example)}" if example else "")


def _block(text: str) -> str:
    return f"```bash\n{text}\n```"


def _usage(one: Any) -> str:
    shown = one.metavar or one.name.upper()
    shown = shown.strip("[]") + ("..." if one.nargs == -1 else "")
    return shown if one.required else f"[{shown}]"


def _entries(command: str, parameters: list[Any]) -> Iterator[str]:
    """Yields a definition for each option or argument."""
    for one in parameters:
        is_option = one.opts[0][0] == "-"
        names = [*one.opts, *one.secondary_opts]
        if not is_option:
            names = [(one.metavar or one.name.upper()).strip("[]")]
        shown = " ".join(filter(None, [names[0], _value(one, is_option)]))
        others = "".join(f", {as_code(other)}" for other in names[1:])
        about = (one.help or "").strip()
        notes = []
        if is_option and one.required:
            notes.append("Required.")
        if is_option and isinstance(one.show_default, str):
            notes.append(f"Default: {one.show_default}.")
        if getattr(one, "multiple", False) or one.nargs == -1:
            notes.append("May be given several times.")
        anchor = f"{command}{'' if is_option else '-'}{names[0].lower()}"
        anchor = anchor.replace("|", "-")
        yield (
            f"{as_code(shown)}{{ #{anchor} }}{others}\n"
            f":   {' '.join([about, *notes])}"
        )


def _value(one: Any, is_option: bool) -> str:
    return "" if not is_option or one.is_flag else one.metavar or ""
