"""Every key of a configuration takes a value, or refuses it in a sentence.

So does every argument that a configuration hands on.
"""

import re

import keras
import pytest

from keras_dml import losses
from keras_dml.arguments import arguments_of
from keras_dml.config import resolve
from keras_dml.errors import UsageError
from keras_dml.layers import SampleAwareProxies
from keras_dml.run.compiling import _OPTIMIZERS
from keras_dml.run.stage_checks import check_arguments
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


def arguments():
    """Yields the settings that give each argument a value, but for it."""
    for name, cls in losses.LOSSES.items():
        for argument in arguments_of(cls):
            setting = f"loss=[{{name: {name}, arguments: {{{argument}: "
            yield f"{name} {argument}", "norm_softmax", (setting, "}}]")
    others = {
        "model.proxies.sample_aware": ("proxy_isa", SampleAwareProxies),
        **{
            f"optimizer.backbone={{name: {name}, arguments": ("triplet", cls)
            for name, cls in _OPTIMIZERS.items()
        },
    }
    for key, (recipe, cls) in others.items():
        end = "}" * (1 + key.count("{"))
        for argument in arguments_of(cls):
            mark = ": " if "{" in key else "="
            setting = f"{key}{mark}{{{argument}: "
            yield f"{key} {argument}", recipe, (setting, end)


def some(cases):
    """Returns the cases as parameters; one in ten is quick."""
    return [
        pytest.param(
            number,
            *case,
            id=str(case[0]),
            marks=[pytest.mark.slow] * (number % 10 > 0),
        )
        for number, case in enumerate(cases)
    ]


def values_of(number):
    """Returns a third of the values, and other ones than the next has."""
    return VALUES if ALL else VALUES[number % 3 :: 3]


KEYS = sorted({*keys(resolve("proxy_isa", "omniglot").model_dump())})


@pytest.mark.parametrize(("number", "key"), some((key,) for key in KEYS))
def test_odd_values(number, key, capsys, monkeypatch):
    # An item of a list of plain values is refused under the key of the list.
    named = re.sub(r"(\.\d+)+$", "", key)
    for value in values_of(number):
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


@pytest.mark.parametrize(
    ("number", "name", "recipe", "setting"), some(arguments())
)
def test_odd_arguments(number, name, recipe, setting):
    for value in (*values_of(number), "1000000000"):
        with limited():
            try:
                override = value.join(setting)
                check_arguments(
                    resolve(recipe, "digits", overrides=[override]), 10
                )
            except UsageError as error:
                assert 0 < len(str(error)) <= LONGEST, value[:30]
        # A name scope that stays open would rename all that is built next.
        assert keras.Variable(0.0, name="new").path == "new", value[:30]
