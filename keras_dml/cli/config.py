"""`keras-dml config`."""

import dataclasses
import json
from typing import Annotated, Any

import typer

from keras_dml.cli.options import (
    SOURCE,
    Backbone,
    DataDir,
    Json,
    Recipe,
    Settings,
    Weights,
)
from keras_dml.cli.printing import print_rows, print_settings, say


def config(
    source: Annotated[
        str | None, typer.Argument(help=SOURCE, show_default=False)
    ] = None,
    recipe: Recipe = None,
    backbone: Backbone = None,
    weights: Weights = None,
    data_dir: DataDir = None,
    settings: Settings = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            help="Show where two recipes, run folders or config.yaml files "
            "differ.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what `fit` would do: every setting and where it comes from.

    Without SOURCE it shows the recipe alone.
    """
    from keras_dml.config import DEFAULT_RECIPE, explain

    flags = {
        "data": {"data_dir": str(data_dir)} if data_dir else {},
        "model": {
            key: value
            for key, value in (("backbone", backbone), ("weights", weights))
            if value is not None
        },
    }
    if diff is not None:
        _print_differences(diff, source or "", flags, settings or [], as_json)
        return
    explanation = explain(
        recipe or DEFAULT_RECIPE,
        source or "",
        flags=flags,
        overrides=settings or [],
    )
    follows: dict[str, Any] = {}
    if source is not None:
        from keras_dml.run.forecast import forecast

        found = forecast(explanation)
        explanation = found.explanation
        follows = {
            "stages": [dataclasses.asdict(stage) for stage in found.stages],
            "test_classes": found.test_classes,
            "test_images": found.test_images,
            "seen": found.seen,
        }
    if as_json:
        rows = {
            one.key: {"value": one.value, "origin": one.origin}
            for one in explanation.settings
        }
        print(json.dumps({"settings": rows, **follows}))
        return
    print_settings(
        (one.key, one.value, one.origin) for one in explanation.settings
    )
    if follows:
        _print_forecast(follows)


def _print_forecast(follows: dict[str, Any]) -> None:
    """Prints the data of each stage and of the measurement."""
    print_rows(
        "What follows from the data",
        [
            {
                "stage": one["stage"],
                "trains on": _amount(one, "train"),
                "validates on": _amount(one, "validation"),
                "epochs": str(one["epochs"]),
                "steps per epoch": str(one["steps_per_epoch"]),
            }
            for one in follows["stages"]
        ],
    )
    kind = "classes seen in training" if follows["seen"] else "unseen classes"
    say(
        f"Measured on {follows['test_images']:,} images of "
        f"{follows['test_classes']:,} {kind}."
    )


def _amount(row: dict[str, Any], part: str) -> str:
    images, classes = row[f"{part}_images"], row[f"{part}_classes"]
    return f"{images:,} images, {classes:,} classes" if images else "-"


def _print_differences(
    names: tuple[str, str],
    source: str,
    flags: dict[str, Any],
    settings: list[str],
    as_json: bool,
) -> None:
    from keras_dml.config import differences, load_any

    one, other = (
        load_any(name, source, flags=flags, overrides=settings)
        for name in names
    )
    found = differences(one, other)
    if as_json:
        print(json.dumps(found))
        return
    say(f"{names[0]} -> {names[1]}" if found else "They do not differ.")
    for key, values in found.items():
        before, after = map(json.dumps, values)
        say(f"{key}: {before} -> {after}")
