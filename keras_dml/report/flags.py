"""What the flags of a result mean, in words."""

from collections.abc import Mapping
from typing import Any

_MEANINGS = {
    "seen": (
        "The test classes were seen in training; only their images are new. "
        "Numbers on unseen classes are lower."
    ),
    "partial": (
        "Images of the published data set were missing. The numbers cannot "
        "be compared with published ones."
    ),
    "oracle": (
        "The result was chosen by looking at the test set, so it is better "
        "than what to expect on new data."
    ),
}


def flags(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each flag with its meaning and whether it is set.

    Args:
        metrics: The content of `metrics.json`.
    """
    return [
        {"name": name, "meaning": meaning, "set": bool(metrics.get(name))}
        for name, meaning in _MEANINGS.items()
    ]
