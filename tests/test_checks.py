import math
import re
from typing import TypedDict

import numpy as np
import pytest

from keras_dml import checks
from keras_dml.errors import UsageError

NUMBERS = [
    (checks.finite_number, (), [0, -1.5, np.float32(2)]),
    (checks.positive_number, (), [1, 0.1, np.int64(3)]),
    (checks.not_negative, (), [0, 0.1]),
    (checks.in_interval, (0, 1, "left"), [0, 0.5]),
    (checks.in_interval, (0, 1, "right"), [1, 0.5]),
    (checks.in_interval, (0, 1, "both"), [0, 1]),
    (checks.integer_at_least, (0,), [0, 7, np.int32(7)]),
    (checks.positive_integer, (), [1, 7]),
    (checks.boolean, (), [True, np.False_]),
]


@pytest.mark.parametrize("check, bounds, values", NUMBERS)
def test_values_in_range_are_returned_as_python_values(check, bounds, values):
    for value in values:
        returned = check("x", value, *bounds)
        assert returned == value
        assert type(returned) in (float, int, bool)


@pytest.mark.parametrize(
    "check, bounds, value, wanted",
    [
        (checks.finite_number, (), math.nan, "a finite number"),
        (checks.finite_number, (), True, "a finite number"),
        (checks.finite_number, (), "1", "a finite number"),
        (checks.positive_number, (), 0, "a positive number"),
        (checks.positive_number, (), math.inf, "a positive number"),
        (checks.not_negative, (), -0.1, "a number of at least zero"),
        (checks.in_interval, (0, 1), 0, "a number in (0, 1)"),
        (checks.in_interval, (0, 1, "left"), 1, "a number in [0, 1)"),
        (checks.in_interval, (0, 1, "right"), 0, "a number in (0, 1]"),
        (checks.in_interval, (0, 1, "both"), 2, "a number in [0, 1]"),
        (checks.integer_at_least, (2,), 1, "an integer of at least 2"),
        (checks.integer_at_least, (0,), 1.0, "an integer of at least 0"),
        (checks.positive_integer, (), True, "a positive integer"),
        (checks.boolean, (), "false", "True or False"),
        (checks.boolean, (), 1, "True or False"),
    ],
)
def test_other_values_raise_a_sentence(check, bounds, value, wanted):
    sentence = f"`x` must be {wanted}. Received: x={value!r}. Mend it."
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        check("x", value, *bounds, advice="Mend it.")


def test_without_advice_the_error_ends_with_the_value():
    with pytest.raises(UsageError, match=r"^`k` .* Received: k=0$"):
        checks.positive_integer("k", 0)


def test_an_optional_value_may_be_missing():
    assert checks.optional(checks.in_interval, "x", None, 0, 1) is None
    with pytest.raises(UsageError, match="`x` must be a number in"):
        checks.optional(checks.in_interval, "x", 2, 0, 1)


def test_an_unknown_name_is_corrected():
    assert checks.one_of("mode", None, ("max", None)) is None
    match = "one of 'max', 'min'. Received: mode='mxa'. Did you mean 'max'"
    with pytest.raises(UsageError, match=match):
        checks.one_of("mode", "mxa", ("max", "min"))


@pytest.mark.parametrize("axes", [("rows",), ("rows", 3), (1, "dim", 1)])
def test_shapes(axes):
    array = np.ones((1, 2))
    assert checks.of_shape("x", array, "rows", 2) is array
    wanted = ", ".join(map(str, axes)) + "," * (len(axes) == 1)
    sentence = f"must have the shape ({wanted}). Received: "
    with pytest.raises(
        UsageError, match=re.escape(sentence + "x.shape=(1, 2)")
    ):
        checks.of_shape("x", array, *axes)


class Options(TypedDict, total=False):
    epochs: int
    minutes: int


def test_unknown_options_are_an_error_of_the_call():
    checks.known_options(["epochs"], Options, "`fit`")
    sentence = "`epoch` is no option of `fit`. Nearest: 'epochs'."
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}$"):
        checks.known_options(["minutes", "epoch"], Options, "`fit`")
