"""Translates the settings of a tuning to Optuna's terms and back."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_dml.config import RunConfig
from keras_dml.config.tuning_section import RangeConfig, TuningConfig
from keras_dml.errors import Mistakes, UsageError

Changes = dict[str, Any]
MakeConfig = Callable[[Changes, int], RunConfig]

DIGITS = 4  # significant digits of a value from a continuous range
_SCALARS = (type(None), bool, int, float, str)


class TuningSpace:
    """The values that each setting may take.

    Args:
        section: The `tuning` section of a plan.
    """

    def __init__(self, section: TuningConfig) -> None:
        self.section = section

    def suggest(self, trial: Any) -> None:
        """Draws the settings of an Optuna trial that are not drawn yet."""
        for key, values in self.section.space.items():
            if isinstance(values, list):
                choices = [_choice(value) for value in values]
                trial.suggest_categorical(key, choices)
                continue
            low, high, step = values.low, values.high, values.step
            if values.whole:
                low, high, step = int(low), int(high), int(step or 1)
            draw = trial.suggest_int if values.whole else trial.suggest_float
            draw(key, low, high, step=step, log=values.log)

    def changes(self, parameters: Mapping[str, Any]) -> Changes:
        """Returns the settings of a trial from the values Optuna stores.

        Continuous values are rounded to four digits, so that people can copy
        them.
        """
        return {
            key: self._decode(values, parameters[key])
            for key, values in self.section.space.items()
        }

    def grid(self) -> list[dict[str, Any]]:
        """Returns the points of a grid in Optuna's terms.

        The last setting varies fastest. If `trials` is smaller than the
        number of points, that many points are drawn without repetition.
        """
        choices = [
            [_choice(value) for value in _tried(values)]
            for values in self.section.space.values()
        ]
        sizes = [len(one) for one in choices]
        total, budget = math.prod(sizes), self.section.budget
        drawn = np.arange(total) if budget >= total else self._drawn(total)
        # A large grid is never made whole.
        return [
            {
                key: values[place]
                for key, values, place in zip(
                    self.section.space, choices, places, strict=True
                )
            }
            for places in zip(*np.unravel_index(drawn, sizes), strict=True)
        ]

    def _drawn(self, total: int) -> np.ndarray:
        generator = np.random.default_rng(self.section.seed)
        budget = self.section.budget
        return np.sort(generator.choice(total, budget, replace=False))

    def check(self, make_config: MakeConfig) -> RunConfig:
        """Raises if a run does not accept a setting, before any training.

        Tries every value of a list and both ends of a range, with the other
        settings at their reference: the first value of lists and the lower
        end of ranges.

        Args:
            make_config: Makes the configuration of a run.

        Returns:
            The configuration of the reference.

        Raises:
            UsageError: If settings are not valid (names all mistakes), or if
                the runs have no validation classes.
        """
        if not self.section.space:
            raise UsageError(
                "`tuning.space` is empty: it must map settings, such as "
                "`model.scale`, to a list of values or to `low` and `high`."
            )
        tried = {key: _tried(x) for key, x in self.section.space.items()}
        reference = {key: values[0] for key, values in tried.items()}
        mistakes = Mistakes()
        for key, values in tried.items():
            for value in values:
                with mistakes.collected():
                    make_config({**reference, key: value}, 0)
        mistakes.check("`tuning.space`: ")
        config = make_config(reference, 0)
        _check_validates(config)
        return config

    def _decode(self, values: RangeConfig | list[Any], stored: Any) -> Any:
        if isinstance(values, list):
            return next(x for x in values if _same(_choice(x), stored))
        if values.whole:
            return int(stored)
        digits = DIGITS if values.step is None else 10
        rounded = float(f"{stored:.{digits}g}")
        return min(max(rounded, float(values.low)), float(values.high))


def run_name(changes: Mapping[str, Any]) -> str:
    """Returns the name of a run folder; equal settings have the same name.

    >>> run_name({"model.scale": 4.0, "model.dim": 64})
    '190e77eefc43'
    """
    text = json.dumps(changes, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _tried(values: RangeConfig | list[Any]) -> list[Any]:
    """Returns the values of a list, or both ends of a range."""
    return values if isinstance(values, list) else [values.low, values.high]


def _choice(value: Any) -> Any:
    """Converts a value for Optuna: lists and dicts become JSON."""
    return value if isinstance(value, _SCALARS) else json.dumps(value)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _check_validates(config: RunConfig) -> None:
    chooser = config.data.validation
    if chooser != "classes":
        raise UsageError(
            "Tuning is judged on validation classes, never on the test "
            f"classes, but `data.validation` is {chooser!r}. Set "
            "`data.validation: classes`, with `data.validation_fraction` or "
            "`data.folds` and `data.fold`."
        )
    if all(stage.classes == "all" for stage in config.stages):
        raise UsageError(
            "Tuning is judged on validation classes, but every stage trains "
            "on all classes. Set `stages.0.classes: fit`, which holds "
            "`data.validation_fraction` of them out."
        )
