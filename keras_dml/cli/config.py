"""`keras-dml config`."""

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_dml.cli.options import Json, options_of
from keras_dml.cli.printing import print_rows, say
from keras_dml.cli.setting_lines import print_settings
from keras_dml.errors import UsageError
from keras_dml.wording import listed

if TYPE_CHECKING:
    from keras_dml.run.forecast import Forecast


@options_of(
    "keras_dml.api:fit",
    "keras_dml.fit_options:TrainingOptions",
    "keras_dml.fit_options:FitOptions",
    # These are no settings.
    without=(
        *("config", "output", "resume"),
        *("report", "export", "verbose", "peer_timeout"),
    ),
    names={"settings": "--set"},
)
def config(
    *,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="ONE OTHER",
            help="Show where two recipes, run folders or config.yaml files "
            "differ.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    **options: Any,
) -> None:
    """Show what `fit` would do: every setting and where it comes from.

    Without SOURCE it shows the recipe alone.
    """
    from keras_dml.config import explain, flags_of

    source = options.get("source")
    settings = {
        "flags": flags_of(options),
        "overrides": options.get("settings", ()),
    }
    if diff is not None:
        if options.get("recipe") is not None:
            raise UsageError(
                "`--diff` names its recipes itself. Received: --recipe "
                f"{options['recipe']}. Leave `--recipe` out."
            )
        _print_differences(diff, source or "", settings, as_json)
        return
    explanation = explain(options.get("recipe"), source or "", **settings)
    found = None
    if source is not None:
        from keras_dml.run.forecast import forecast

        found = forecast(explanation)
        explanation = found.explanation
    elif {"flag", "override"} & set(explanation.origins.values()):
        from keras_dml.run.stage_checks import check_arguments

        # The data would say how many classes there are, and their groups.
        check_arguments(explanation.config, num_classes=2, groups=[0, 1])
    if as_json:
        follows = {} if found is None else dataclasses.asdict(found)
        rows = {
            key: {"value": value, "origin": origin}
            for key, value, origin in explanation.settings
        }
        follows.pop("explanation", None)
        print(json.dumps({"settings": rows, **follows}))
        return
    print_settings(explanation.settings)
    if found is not None:
        _print_forecast(found)


def _print_forecast(found: "Forecast") -> None:
    """Prints the data of each stage and of the measurement."""
    print_rows(
        "What follows from the data",
        [
            {
                "stage": one.stage,
                "trains on": _amount(one.train_images, one.train_classes),
                "validates on": _amount(
                    one.validation_images, one.validation_classes
                ),
                "epochs": _length(one.epochs),
                "steps per epoch": str(one.steps_per_epoch),
            }
            for one in found.stages
        ],
    )
    from keras_dml.run.compiling import has_open_rate

    if has_open_rate(found.explanation.config.optimizer):
        for one in found.stages:
            say(f"Rates that are null, in {one.stage}: {_rates(one.rates)}.")
    kind = "classes seen in training" if found.seen else "unseen classes"
    say(
        f"Measured on {found.test_images:,} images of "
        f"{found.test_classes:,} {kind}."
    )


def _length(epochs: int | None) -> str:
    return "settled from `minutes`" if epochs is None else str(epochs)


def _rates(rates: tuple[float, ...] | None) -> str:
    if rates is None:
        return "settled from the steps"
    return listed(f"{rate:.2g}" for rate in rates)


def _amount(images: int, classes: int) -> str:
    return f"{images:,} images, {classes:,} classes" if images else "-"


def _print_differences(
    names: tuple[str, str],
    source: str,
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    from keras_dml.config import differences, load_any

    one, other = (load_any(name, source, **settings) for name in names)
    found = differences(one, other)
    if as_json:
        print(json.dumps(found))
        return
    say(f"{names[0]} -> {names[1]}" if found else "They do not differ.")
    for key, values in found.items():
        before, after = map(json.dumps, values)
        say(f"{key}: {before} -> {after}")
