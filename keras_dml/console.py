"""Shows progress bars and log lines on standard error."""

import contextlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.logging import RichHandler
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

Item = TypeVar("Item")

console = Console(stderr=True)
logger = logging.getLogger("keras_dml")


def progress_bar() -> Progress:
    """Returns a progress bar that is silent without a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
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
    Their errors are exceptions and get through.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


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


def _terminal_handler() -> logging.Handler:
    """Returns a handler: rich lines on a terminal, plain ones elsewhere."""
    if console.is_terminal:
        return RichHandler(
            console=console,
            show_path=False,
            show_level=False,
            log_time_format="%H:%M:%S",
        )
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    return handler


@contextlib.contextmanager
def logging_to(path: Path | None = None) -> Iterator[None]:
    """Shows the library's log lines, and appends them to a file as well.

    Args:
        path: The log file. Defaults to `None`: only shows the lines.
    """
    handlers: list[logging.Handler] = [_terminal_handler()]
    if path is not None:
        file = logging.FileHandler(path, encoding="utf-8")
        file.setFormatter(
            logging.Formatter("%(asctime)s %(levelname)s %(message)s")
        )
        handlers.append(file)
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
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
