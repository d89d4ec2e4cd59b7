"""Every key of a configuration takes a value, or refuses it in a sentence."""

import re

import pytest

from keras_dml.config import resolve
from tests.hostile.runner import LONGEST, limited, run_command
from tests.thorough import ALL

VALUES = (
    ".nan",
    "-.inf",
    "-1",
    "0",
    "1e308",
    "1e-300",
    "99999999999999999999",
    "9" * 100_000,
    "true",
    "null",
    "''",
    "'\\0'",
    "x",
    "[]",
    "[[1]]",
    "{}",
    "{x: {x: 1}}",
    "2026-11-22",
)


def keys(part, path=()):
    """Yields the place of every value, also those that hold others."""
    if path:
        yield ".".join(path)
    if isinstance(part, dict):
        for key, value in part.items():
            yield from keys(value, (*path, key))
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from keys(value, (*path, str(number)))


KEYS = sorted({*keys(resolve("proxy_isa", "omniglot").model_dump())})


@pytest.mark.parametrize(
    ("number", "key"),
    [
        pytest.param(
            number, key, id=key, marks=[pytest.mark.slow] * (number % 10 > 0)
        )
        for number, key in enumerate(KEYS)
    ],
)
def test_odd_values(number, key, capsys, monkeypatch):
    # An item of a list of plain values is refused under the key of the list.
    named = re.sub(r"(\.\d+)+$", "", key)
    # Each value meets a third of the keys, and other ones than the next does.
    for value in VALUES if ALL else VALUES[number % 3 :: 3]:
        words = ("config", "--recipe=proxy_isa", f"--set={key}={value}")
        with limited():
            outcome = run_command(capsys, monkeypatch, *words)
        shown = (value[:30], outcome.code, outcome.err[-LONGEST:])
        assert outcome.code in (0, 2), shown
        assert "Traceback" not in outcome.err, shown
        if outcome.code:
            said = outcome.err.rpartition("Error: ")[2]
            assert 0 < len(said) <= LONGEST, shown
            assert re.search(rf"`(--)?{re.escape(named)}\b", said), shown
