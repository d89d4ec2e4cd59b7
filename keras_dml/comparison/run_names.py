"""Names of runs, and of the rows of a comparison's tables."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from keras_dml.config import RunConfig
from keras_dml.wording import source_title


def label_of(arm: str, factors: Mapping[str, Any], *, alone: bool) -> str:
    """Returns the name of a table row: the arm and its settings.

    The settings suffice if the arm is `alone`, the only one of the plan.
    >>> label_of("ln", {"model.scale": 4}, alone=False)
    'ln, scale 4'
    """
    parts = [
        f"{short_name(key)} {_in_words(value)}"
        for key, value in factors.items()
    ]
    return ", ".join(parts if parts and alone else [arm, *parts])


def _in_words(value: Any) -> str:
    # Folders are named after labels: letters, digits and dots must stay.
    plain = isinstance(value, list | tuple) and value
    return ", ".join(map(str, value)) if plain else str(value)


def run_name(config: RunConfig, label: str, fold: int | None) -> str:
    """Returns the folder name of a run; it may not be unique."""
    parts = [
        source_title(config.data.source).removesuffix(".csv"),
        config.model.backbone,
        f"{config.model.dim}d",
        label,
        f"seed{config.seed}",
    ]
    if fold is not None:
        parts.append(f"fold{fold}")
    cleaned = (re.sub(r"[^A-Za-z0-9.]+", "_", part) for part in parts)
    return "-".join(part.strip("_") for part in cleaned)


def own_name(name: str, config: RunConfig, runs: dict[str, str]) -> str:
    """Returns a unique run name, the same for equal configurations.

    Args:
        name: The preferred name.
        config: The configuration of the run.
        runs: Dict from configurations to names. The function adds this run.
    """
    key = config.model_dump_json()
    if key not in runs:
        if name in runs.values():
            name += f"_{hashlib.sha256(key.encode()).hexdigest()[:6]}"
        runs[key] = name
    return runs[key]


def short_name(key: str) -> str:
    """Shortens a dotted key for a table: `model.scale` becomes `scale`.

    Example:

    >>> short_name("optimizer.proxies.lr")
    'proxies lr'
    """
    names = (part for part in key.split(".") if part != "arguments")
    parts = [name for name in names if not name.isdigit()]
    if parts[0] == "optimizer" or len(parts) > 2:
        return " ".join(parts[-2:])
    return parts[-1]
