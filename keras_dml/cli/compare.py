"""`keras-dml compare`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_dml.cli.options import DataDir, Json
from keras_dml.cli.printing import print_rows, say
from keras_dml.console import logging_to
from keras_dml.errors import RunError, UsageError

if TYPE_CHECKING:
    from keras_dml.comparison.compare import Comparison


def compare(
    plan_or_source: Annotated[
        str,
        typer.Argument(
            metavar="PLAN|SOURCE",
            help="A plan's name (see `keras-dml plans`) or PLAN.yaml; or "
            "data, with `--recipes`.",
        ),
    ],
    recipes: Annotated[
        str | None,
        typer.Option(help="Compare these on SOURCE: NAME[:PRESET],..."),
    ] = None,
    arms: Annotated[
        str | None,
        typer.Option(help="Only these lines of the plan: NAME,NAME."),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(help="Train each with these: 0,1,2.", show_default="0"),
    ] = None,
    backbones: Annotated[
        str | None, typer.Option(help="Networks: NAME,NAME.")
    ] = None,
    dims: Annotated[
        str | None, typer.Option(help="Lengths of an embedding: 64,512.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="imagenet, none, or a file.")
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            help="recipe, oracle, fixed_validation, two_stage, or "
            "cross_validation[:FOLDS].",
            show_default="fixed_validation",
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of every run.")
    ] = None,
    steps_per_epoch: Annotated[
        int | None, typer.Option(min=1, help="Steps of every epoch.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Run the plan on these data instead.")
    ] = None,
    data_dir: DataDir = None,
    output_folder: Annotated[
        Path | None,
        typer.Option(
            "--output", help="The plan's folder.", show_default="runs/NAME"
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option(min=1, help="How many runs train at once.")
    ] = 1,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be run.")
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option(help="Whether to measure first how long it will take."),
    ] = True,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of all runs: key=value."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train and compare recipes fairly: seeds, intervals, tables, figures.

    Start the same command again to go on where it was stopped.
    """
    from keras_dml.comparison.compare import compare as compare_runs

    with logging_to():
        result = compare_runs(
            plan_or_source,
            output_folder,
            processes=processes,
            dry_run=dry_run,
            estimate=estimate,
            recipes=_words(recipes),
            arms=_words(arms),
            seeds=_numbers("--seeds", seeds),
            backbones=_words(backbones),
            dims=_numbers("--dims", dims),
            weights=weights,
            protocol=protocol,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            source=source,
            data_dir=data_dir,
            set=_settings(settings),
        )
    if as_json:
        print(json.dumps(_summary(result)))
    elif dry_run:
        print_rows(f"{len(result.runs)} runs", _listed(result))
    else:
        say(f"Report: {result.report}")
    if result.failed:
        names = ", ".join(result.failed)
        raise RunError(
            f"{len(result.failed)} of {len(result.runs)} runs failed: "
            f"{names}. The rest is in the report; start the same command "
            "again to try them anew."
        )


def _words(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(option: str, text: str | None) -> list[int] | None:
    parts = _words(text)
    if parts is None:
        return None
    if not parts or not all(part.isdigit() for part in parts):
        raise UsageError(
            f"`{option}` takes whole numbers joined by commas, such as "
            f"{option} 0,1,2. Received: {text!r}"
        )
    return [int(part) for part in parts]


def _settings(settings: list[str] | None) -> dict[str, Any]:
    from keras_dml.config.yaml_files import parse_yaml

    values = {}
    for setting in settings or ():
        key, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(
                "`--set` takes `key=value`, such as `--set model.dim=64`. "
                f"Received: {setting!r}"
            )
        values[key] = parse_yaml(text)
    return values


def _listed(result: "Comparison") -> list[dict[str, Any]]:
    return [
        {"run": record.run, "status": record.status}
        for record in {r.run: r for r in result.records}.values()
    ]


def _summary(result: "Comparison") -> dict[str, Any]:
    return {
        "folder": str(result.folder),
        "report": str(result.report) if result.report else None,
        **{key: result.count(key) for key in ("done", "failed", "left")},
        "trials_left": result.trials_left,
        "seconds_estimated": result.seconds,
        "errors": result.failed,
    }
