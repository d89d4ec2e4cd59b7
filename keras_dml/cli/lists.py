"""`keras-dml recipes`, `plans`, `datasets` and `backbones`."""

import json
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_dml.cli.printing import print_rows, print_settings, say

if TYPE_CHECKING:
    from keras_dml.config.plan_sections import PlanConfig

Name = Annotated[
    str | None, typer.Argument(help="Show this one.", show_default=False)
]


def recipes(name: Name = None) -> None:
    """List the recipes, or show one: its paper, its presets, what it sets."""
    from keras_dml.config import load_recipe, recipe_names

    if name is not None:
        _show_recipe(name)
        return
    print_rows(
        "Recipes",
        [
            {
                "name": one.name,
                "paper": one.paper,
                "reported": one.expected,
                "presets": " ".join(one.presets),
            }
            for one in map(load_recipe, recipe_names())
        ],
    )


def _show_recipe(name: str) -> None:
    from keras_dml.config import load_recipe
    from keras_dml.config.recipes import PARTS

    recipe = load_recipe(name)
    _say_all(
        {
            recipe.name: recipe.about,
            "Paper": recipe.paper,
            "Reported": recipe.expected,
            "Network of the paper": recipe.backbone,
            "Builds on": ", ".join(recipe.bases),
            "Sections": ", ".join(["default", *recipe.sources]),
            "Presets": ", ".join(recipe.presets),
        }
    )
    keys = {"sources": recipe.sources, "presets": recipe.presets}
    print_settings(
        (key, value, name)
        for part in PARTS
        for one in keys.get(part, ("",))
        for name, key, value in recipe.own(part, one)
    )
    say(f"Every value: `keras-dml config --recipe {name}`.")


def plans(name: Name = None) -> None:
    """List the plans, or show one: its arms, data, runs and budget."""
    from keras_dml.config.plans import load_plan, plan_names

    if name is not None:
        _show_plan(load_plan(name))
        return
    rows = []
    for one in plan_names():
        plan = load_plan(one)
        runs, trials = _size(plan)
        rows.append(
            {
                "name": one,
                "title": plan.title,
                "data": ", ".join(plan.sources),
                "runs": runs,
                "trials before": trials,
            }
        )
    print_rows("Plans", rows)


def _show_plan(plan: "PlanConfig") -> None:
    from keras_dml.comparison.plans import arms

    protocol = plan.protocol.model_dump(exclude_defaults=True)
    runs, trials = _size(plan)
    _say_all(
        {
            "Plan": plan.title,
            "Paper": plan.paper,
            "About": " ".join(plan.about.split()),
            "Data": ", ".join(plan.sources),
            "Networks": ", ".join(plan.backbones),
            "Embedding sizes": ", ".join(map(str, plan.dims)),
            "Seeds": ", ".join(map(str, plan.seeds)),
            "Protocol": _inline({"kind": plan.protocol.kind, **protocol}),
            "Budget": _inline(plan.budget.model_dump(exclude_none=True)),
            "Runs": runs,
            "Trials before": trials,
        }
    )
    print_rows(
        "Arms",
        [
            {"arm": arm.name, "recipe": arm.recipe, "set": _inline(arm.set)}
            for arm in arms(plan)
        ],
    )
    print_settings((key, plan.set[key], "all arms") for key in plan.set)
    print_settings((key, plan.grid[key], "each of") for key in plan.grid)


def _size(plan: "PlanConfig") -> tuple[str, str]:
    """Returns the numbers of runs, and of tuning trials before them."""
    from keras_dml.comparison.jobs import count_trials, make_jobs

    runs = {job.run for job in make_jobs(plan)}
    return str(len(runs)), str(count_trials(plan) or "")


def _inline(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={json.dumps(values[key])}" for key in values)


def _say_all(lines: dict[str, str]) -> None:
    """Prints each line with its name; skips empty lines."""
    for name, text in lines.items():
        if text:
            say(textwrap.fill(f"{name}: {text}", 80, subsequent_indent="  "))


def datasets() -> None:
    """List the data sets that are known by name."""
    from keras_dml.data.facts import dataset_facts, known_datasets

    print_rows(
        "Data sets",
        [
            {
                "name": one.name,
                "title": one.title,
                "published": one.paper,
                "images": f"{one.counts.get('images', 0):,}",
                "classes": f"{one.counts.get('classes', 0):,}",
                "recall at": ", ".join(map(str, one.recall_k)),
            }
            for one in map(dataset_facts, known_datasets())
        ],
    )


def backbones() -> None:
    """List the backbones."""
    from keras_dml.backbone_facts import known_backbones

    rows = [
        {
            "name": one.name,
            "paper": one.paper,
            "image size": str(one.image_size),
            "weights": "convert-weights" if one.checkpoint else one.pretrained,
        }
        for one in known_backbones().values()
    ]
    rows.append(
        {
            "name": "hub:PRESET",
            "paper": "an image network of keras-hub, or a folder of its "
            "`save_to_preset`: DINOv2, DINOv3, SigLIP, ViT, ...",
            "image size": "its own",
            "weights": "preset",
        }
    )
    print_rows("Backbones", rows)
