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
    from keras_dml.config.plan_sections import PlanConfig


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
    plan, name = _plan(plan_or_source, recipes)
    if arms is not None:
        plan = _only(plan, _words(arms) or [])
    plan = _changed(
        plan,
        {
            "sources": [source] if source else None,
            "data_dir": str(data_dir) if data_dir else None,
            "seeds": _numbers("--seeds", seeds),
            "backbones": _words(backbones),
            "dims": _numbers("--dims", dims),
            "weights": weights,
            "protocol": _protocol(protocol),
        },
        {"epochs": epochs, "steps_per_epoch": steps_per_epoch},
        settings or [],
    )

    from keras_dml.comparison.compare import compare as compare_runs

    with logging_to():
        result = compare_runs(
            plan,
            output_folder or Path("runs") / name,
            processes=processes,
            dry_run=dry_run,
            estimate=estimate,
        )
    if as_json:
        print(json.dumps(_summary(result)))
    elif dry_run:
        print_rows(f"{len(result.records)} runs", _listed(result))
    else:
        say(f"Report: {result.report}")
    if result.failed:
        names = ", ".join(result.failed)
        raise RunError(
            f"{len(result.failed)} of {len(result.records)} runs failed: "
            f"{names}. The rest is in the report; start the same command "
            "again to try them anew."
        )


def _plan(plan_or_source: str, recipes: str | None) -> "tuple[PlanConfig, str]":
    """The plan, and the name of its folder."""
    from keras_dml.config.plans import load_plan, parse_plan

    if recipes is None:
        return load_plan(plan_or_source), Path(plan_or_source).stem
    name = Path(plan_or_source).stem
    plan = parse_plan(
        {
            "title": f"{recipes.replace(',', ', ')} on {name}",
            "sources": [plan_or_source],
            "recipes": _words(recipes),
        }
    )
    return plan, f"{name}-comparison"


def _only(plan: "PlanConfig", names: list[str]) -> "PlanConfig":
    """The plan with some of its arms, and the findings about them."""
    from keras_dml.comparison.jobs import arms
    from keras_dml.config.plans import parse_plan
    from keras_dml.naming import nearest

    listed = {arm.name: arm for arm in arms(plan)}
    unknown = [name for name in names if name not in listed]
    if unknown or not names:
        raise UsageError(
            "`--arms` takes lines of the plan, joined by commas. Received: "
            f"{unknown[0] if unknown else ''!r}. Nearest: "
            f"{nearest(unknown[0] if unknown else '', listed)}."
        )
    values = plan.model_dump(mode="json")
    values["recipes"] = []
    values["arms"] = [listed[name].model_dump() for name in names]
    values["findings"] = [
        finding
        for finding in values["findings"]
        if {*finding["better"], *finding["than"]} <= {*names}
    ]
    for table in values["paper_values"]:
        table["values"] = {
            arm: printed
            for arm, printed in table["values"].items()
            if arm in names
        }
    return parse_plan(values)


def _changed(
    plan: "PlanConfig",
    values: dict[str, Any],
    budget: dict[str, int | None],
    settings: list[str],
) -> "PlanConfig":
    """The plan with what the command line says."""
    from keras_dml.config.plans import narrowed, parse_plan
    from keras_dml.config.yaml_files import parse_yaml

    changed = plan.model_dump(mode="json")
    changed |= {
        key: value for key, value in values.items() if value is not None
    }
    if values["weights"] is not None:
        for case in changed["cases"]:
            case["weights"] = None
    changed["budget"] |= {k: v for k, v in budget.items() if v is not None}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(
                "`--set` takes `key=value`, such as `--set model.dim=64`. "
                f"Received: {setting!r}"
            )
        changed["set"][key] = parse_yaml(text)
    return parse_plan(narrowed(changed))


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


def _protocol(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    kind, _, folds = text.partition(":")
    section: dict[str, Any] = {"kind": kind}
    if folds:
        (section["folds"],) = _numbers("--protocol", folds) or [0]
    return section


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
