"""What the runs of a plan are called, in tables and as folders."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from keras_dml.config import RunConfig
from keras_dml.wording import source_title


def label_of(arm: str, factors: Mapping[str, Any], *, alone: bool) -> str:
    """A line of a table: the arm and its settings, or these if it is alone.

    >>> label_of("ln", {"model.scale": 4}, alone=False)
    'ln, scale 4'
    """
    parts = [f"{short_name(key)} {value}" for key, value in factors.items()]
    return ", ".join(parts if parts and alone else [arm, *parts])


def run_name(config: RunConfig, label: str, fold: int | None) -> str:
    """The folder of a run; other configurations may have the same."""
    parts = [
        source_title(config.data.source).removesuffix(".csv"),
        config.model.backbone,
        f"{config.model.dim}d",
        label,
        f"seed{config.seed}",
        *([] if fold is None else [f"fold{fold}"]),
    ]
    return "-".join(_slug(part) for part in parts)


def own_name(name: str, config: RunConfig, runs: dict[str, str]) -> str:
    """The run of an equal configuration, or a name that no other has.

    Args:
        name: What it would be called.
        config: Its configuration.
        runs: Dict of configurations to names, to which it is added.
    """
    key = config.model_dump_json()
    if key not in runs:
        if name in runs.values():
            name += f"_{hashlib.sha256(key.encode()).hexdigest()[:6]}"
        runs[key] = name
    return runs[key]


def short_name(key: str) -> str:
    """What a dotted key is called in a table: `model.scale` is `scale`.

    Example:

    >>> short_name("optimizer.proxies.lr")
    'proxies lr'
    """
    parts = [
        part
        for part in key.split(".")
        if not part.isdigit() and part != "arguments"
    ]
    if parts[0] == "optimizer" or len(parts) > 2:
        return " ".join(parts[-2:])
    return parts[-1]


def _slug(text: str) -> str:
    """A part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")
