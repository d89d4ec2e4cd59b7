"""A configuration, and where each of its values was set."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_dml.brief import Brief
from keras_dml.config.merging import BUILT_IN, flatten
from keras_dml.config.sections import RunConfig


class Setting(NamedTuple):
    """One value of a configuration.

    Attributes:
        key: Its key, in the spelling that `overrides` take.
        value: The value.
        origin: Where it was set: a data set's facts, a part of a recipe such
            as `"proxy_anchor: presets.deck"`, `"flag"`, `"override"`, the
            section that it is derived from, `"data"`, or `"built in"`.
    """

    key: str
    value: Any
    origin: str


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation(Brief):
    """A configuration and where each of its values was set.

    Attributes:
        config: The validated configuration.
        origins: The origin of every value that is not built in, by key.
    """

    config: RunConfig
    origins: Mapping[str, str]

    def _brief_title(self) -> str:
        return f"Explanation of {self.config!r}"

    @property
    def settings(self) -> list[Setting]:
        """Every value with its origin, in the order of the sections.

        Example:

        >>> from keras_dml.config import explain
        >>> explain("triplet", "digits").settings[2]
        Setting(key='seed', value=0, origin='built in')
        """
        values = flatten(self.config.model_dump(mode="json"))
        return [
            Setting(key, value, self.origins.get(key, BUILT_IN))
            for key, value in values.items()
        ]

    def changed(self, config: RunConfig, origin: str) -> "Explanation":
        """Returns the explanation of a changed configuration.

        Args:
            config: The same configuration with some values changed.
            origin: Where the values that differ come from.
        """
        differ = differences(self.config, config)
        return Explanation(
            config, {**self.origins, **dict.fromkeys(differ, origin)}
        )


def differences(one: RunConfig, other: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Returns the values in which two configurations differ, by key.

    A value that one of them does not have is `None`.

    Example:

    >>> from keras_dml.config import resolve
    >>> differences(resolve("bn", "sop"), resolve("ln", "sop"))[
    ...     "model.normalization"
    ... ]
    ('batch_norm', 'l2')
    """
    left, right = (
        flatten(config.model_dump(mode="json")) for config in (one, other)
    )
    return {
        key: (left.get(key), right.get(key))
        for key in dict.fromkeys([*left, *right])
        if left.get(key) != right.get(key)
    }
