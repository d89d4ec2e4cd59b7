"""Prints settings as `--set` takes them, in 80 columns."""

import json
import textwrap
from collections.abc import Iterable
from typing import Any

from keras_dml.cli.printing import say
from keras_dml.wording import WIDTH

# The column at which notes start, unless they are too long.
NOTE = 52


def print_settings(settings: Iterable[tuple[str, Any, str]]) -> None:
    """Prints settings as `--set` takes them, each with its note.

    The notes stand in one column. A long value goes on in further lines,
    between whose parts YAML allows any space: it can be copied as it is.

    Args:
        settings: Tuples of key, value and note.
    """
    lines = [
        (f"{key}={json.dumps(value)}", f"# {note}")
        for key, value, note in settings
    ]
    longest = max((len(note) for _, note in lines), default=0)
    column = max(0, min(NOTE, WIDTH - longest))
    for assignment, note in lines:
        *above, last = textwrap.wrap(
            assignment,
            WIDTH,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        if len(last) >= column:
            above.append(last)
            last = ""
        for line in above:
            say(line)
        say(f"{last:<{column}}{note}")
