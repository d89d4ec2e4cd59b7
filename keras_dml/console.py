"""Shows progress bars and log lines on standard error."""

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from keras_dml.errors import UsageError
from keras_dml.files import is_full_disk
from keras_dml.wording import filled

Item = TypeVar("Item")

# A path such as a:100:b is no emoji.
console = Console(stderr=True, emoji=False)
logger = logging.getLogger("keras_dml")


def progress_bar(width: int = 40, time_left: bool = True) -> Progress:
    """Returns a progress bar that is silent without a terminal.

    Args:
        width: Number of characters of the bar. Defaults to `40`.
        time_left: Whether it estimates the time left. Defaults to `True`.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(width),
        MofNCompleteColumn(),
        *([TimeRemainingColumn()] if time_left else []),
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def track(
    items: Iterable[Item], description: str, total: int | None = None
) -> Iterator[Item]:
    """Yields `items` while a progress bar counts them."""
    with progress_bar() as progress:
        task = progress.add_task(description, total=total, note="")
        for item in items:
            yield item
            progress.advance(task)


@contextlib.contextmanager
def without_native_output() -> Iterator[None]:
    """Hides what compiled code writes to standard error.

    TensorFlow's converter and LiteRT print notes there that no setting stops.
    Their errors are exceptions and get through, and so do progress bars.
    """
    if sys.stderr is None:
        yield
        return
    sys.stderr.flush()
    former = console._file
    with (
        open(os.dup(2), "w", encoding="utf-8") as terminal,
        open(os.devnull, "w") as nowhere,
    ):
        if console.is_terminal:
            console.file = terminal
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(terminal.fileno(), 2)
            # Unlike `console.file`, which would be the present `sys.stderr`.
            console._file = former


def format_table(rows: Sequence[Sequence[Any]]) -> str:
    """Formats rows of cells as lines of text with aligned columns.

    Example:

    >>> print(format_table([("group", "rate"), ("head", 0.5)]))
      group  rate
      head   0.5
    """
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return "\n".join(
        "  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in texts
    )


def show(text: str) -> None:
    """Prints a text on standard error; a terminal wraps it between words.

    A program that reads the lines gets each of them whole.
    """
    if console.is_terminal:
        text = "\n".join(
            filled(line, console.width) for line in text.splitlines()
        )
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class _ConsoleHandler(logging.Handler):
    """Prints log lines on the console, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.WARNING:
            text = f"{record.levelname.capitalize()}: {text}"
        try:
            show(text)
        except Exception:
            self.handleError(record)


class _LogFile(logging.FileHandler):
    """Drops lines while the disk is full; the next checkpoint says so."""

    def handleError(self, record):  # noqa: N802
        if not is_full_disk(sys.exc_info()[1]):
            super().handleError(record)

    def close(self):
        with contextlib.suppress(OSError):
            super().close()


@contextlib.contextmanager
def showing_log(level: int = logging.INFO) -> Iterator[None]:
    """Shows the library's log lines.

    Args:
        level: The lowest level that is shown; `logging.DEBUG` shows the
            details too. Defaults to `logging.INFO`. Lines that are shown
            already, by a context around this one, are not shown twice.
    """
    shown = any(isinstance(one, _ConsoleHandler) for one in logger.handlers)
    with _handled_by([] if shown else [_ConsoleHandler(level)]):
        yield


@contextlib.contextmanager
def keeping_log() -> Iterator[Callable[[Path], None]]:
    """Keeps the library's log lines, details too, for a file made later.

    Yields:
        Function that appends the lines since the start to a file, and from
        then on every line as it comes.
    """
    held = MemoryHandler(sys.maxsize, sys.maxsize, flushOnClose=False)
    handlers: list[logging.Handler] = [held]

    def append_to(path: Path) -> None:
        if path.exists() and not path.is_file():
            # A pipe would wait for a reader.
            raise UsageError(f"{path} must be a file. Remove it.")
        file = _LogFile(path, encoding="utf-8")
        file.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)s %(message)s")
        )
        held.setTarget(file)
        held.flush()
        logger.removeHandler(held)
        logger.addHandler(file)
        handlers.append(file)

    with _handled_by(handlers):
        yield append_to


@contextlib.contextmanager
def _handled_by(handlers: list[logging.Handler]) -> Iterator[None]:
    """Gives log lines of every level to handlers; the context may add some."""
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    # TensorFlow gives the root logger a handler, which would print all twice.
    logger.propagate = False
    for handler in handlers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.propagate = propagate
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()
