"""`keras-dml recipes`, `plans`, `datasets` and `backbones`."""

import json
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keras_dml.cli.next_steps import command_line
from keras_dml.cli.printing import (
    print_facts,
    print_groups,
    print_rows,
    say,
)
from keras_dml.cli.setting_lines import print_settings

if TYPE_CHECKING:
    from keras_dml.backbone_facts import BackboneFacts
    from keras_dml.config.plan_sections import PlanConfig
    from keras_dml.data.facts import DatasetFacts

# Billions of multiplications for an image, from which on processors are slow.
LARGE = 1.0
Name = Annotated[
    str | None,
    typer.Argument(help="Show this one.", metavar="NAME", show_default=False),
]
DECK = "the slides of a thesis, Psomas 2020, Metric Learning: A Deep Dive"
Groups = dict[str, list[tuple[str, str]]]


def recipes(name: Name = None) -> None:
    """List the recipes by their use, or show one: when, cost, paper, result."""
    from keras_dml.config import load_recipe, recipe_names
    from keras_dml.config.recipes import DEFAULTS, GROUPS

    if name is not None:
        _show_recipe(name)
        return
    groups: Groups = {title: [] for title in GROUPS.values()}
    for one in map(load_recipe, recipe_names()):
        when = DEFAULTS.get(one.name)
        default = f" The default {when}." if when else ""
        groups[GROUPS[one.group]].append((one.name, one.about + default))
    print_groups({title: lines for title, lines in groups.items() if lines})
    say("When to take one, its cost and its result: `keras-dml recipes NAME`.")


def _show_recipe(name: str) -> None:
    from keras_dml.config import load_recipe
    from keras_dml.config.recipes import PARTS

    recipe = load_recipe(name)
    texts = (recipe.about, recipe.use, recipe.paper, recipe.expected)
    result = recipe.result or "not yet."
    if recipe.result:
        result += " (docs/lab/papers.md compares all recipes)"
    print_facts(
        {
            recipe.name: recipe.about,
            "When": recipe.use,
            "Cost": recipe.cost,
            "Paper": recipe.paper,
            "Reported": recipe.expected,
            "The deck": DECK if "deck" in " ".join(texts) else "",
            "Network for a paper's data": recipe.backbone,
            "Measured here": result,
            "With a paper's settings for": ", ".join(recipe.sources),
            "Presets": ", ".join(recipe.presets),
        }
    )
    quoted = shlex.quote(name)
    say(f"Train with it: `keras-dml fit FOLDER --recipe {quoted}`.")
    keys = {"sources": recipe.sources, "presets": recipe.presets}
    print_settings(
        (key, value, name)
        for part in PARTS
        for one in keys.get(part, ("",))
        for name, key, value in recipe.own(part, one)
    )
    say(f"Every value: `keras-dml config --recipe {quoted}`.")


def plans(name: Name = None) -> None:
    """List the plans, or show one: its arms, data, runs and budget."""
    from keras_dml.config.plans import load_plan, plan_names
    from keras_dml.data.facts import dataset_facts
    from keras_dml.wording import counted

    if name is not None:
        _show_plan(name, load_plan(name))
        return
    groups: Groups = {"To try, and to compare on small data": []}
    for one in plan_names():
        plan = load_plan(one)
        runs, trials = _size(plan)
        size = counted(runs, "run")
        if trials:
            size += f" after {trials:,} trials"
        title = plan.paper
        if not any(_is_benchmark(dataset_facts(data)) for data in plan.sources):
            title = next(iter(groups))
        groups.setdefault(title, []).append((one, f"{plan.title} ({size})."))
    print_groups(groups)
    say("Arms, data and budget: `keras-dml plans NAME`.")


def _show_plan(name: str, plan: "PlanConfig") -> None:
    from keras_dml.comparison.budget import budget_in_words
    from keras_dml.comparison.plans import arms
    from keras_dml.comparison.protocols import get_protocol

    runs, trials = _size(plan)
    print_facts(
        {
            "Plan": plan.title,
            "Paper": plan.paper,
            "About": plan.about,
            "Data": ", ".join(plan.sources),
            "Networks": ", ".join(plan.backbones),
            "Embedding sizes": ", ".join(map(str, plan.dims)),
            "Seeds": ", ".join(map(str, plan.seeds)),
            "Protocol": f"{get_protocol(plan.protocol).in_words}.",
            "Budget": budget_in_words(plan.budget),
            "Runs": str(runs),
            "Trials before": str(trials or ""),
        }
    )
    sets = {"set": ""} if any(arm.set for arm in arms(plan)) else {}
    print_rows(
        "Arms",
        [
            {"arm": arm.name, "recipe": arm.recipe}
            | {key: _inline(arm.set) for key in sets}
            for arm in arms(plan)
        ],
    )
    print_settings((key, plan.set[key], "all arms") for key in plan.set)
    print_settings((key, plan.grid[key], "each of") for key in plan.grid)
    say("Run it:")
    say(command_line("keras-dml", "compare", name, *_needed(plan)))


def _needed(plan: "PlanConfig") -> Iterator[str]:
    """Yields the options that a plan cannot be run without."""
    from keras_dml.backbone_facts import known_backbones
    from keras_dml.data.facts import dataset_facts
    from keras_dml.data.readers import is_named

    if not all(map(is_named, plan.sources)):
        yield from ("--source", "FOLDER")
    elif any(dataset_facts(one).files for one in plan.sources):
        yield from ("--data-dir", "FOLDER")
    known = known_backbones()
    # Those of keras-hub are not among them.
    own = known.keys() & {*plan.backbones}
    converted = any(known[name].checkpoint for name in own)
    if converted and not any(case.weights for case in plan.cases):
        yield from ("--weights", "FILE.weights.h5")


def _size(plan: "PlanConfig") -> tuple[int, int]:
    """Returns the numbers of runs, and of tuning trials before them."""
    from keras_dml.comparison.jobs import count_trials, make_jobs

    return len({job.run for job in make_jobs(plan)}), count_trials(plan)


def _inline(values: dict[str, Any]) -> str:
    return ", ".join(f"{key}={json.dumps(values[key])}" for key in values)


def datasets(name: Name = None) -> None:
    """List the data sets that are known by name, or show one."""
    from keras_dml.checks import one_of
    from keras_dml.data.facts import dataset_facts, known_datasets

    if name is not None:
        _show_dataset(dataset_facts(one_of("name", name, known_datasets())))
        return
    groups: Groups = {
        "At once: installed with keras-dml": [],
        "Small images, trained from scratch": [],
        "Benchmarks of the papers: photos, tested on unseen classes": [],
    }
    here, small, benchmarks = groups.values()
    for one in map(dataset_facts, known_datasets()):
        counts = ", ".join(
            f"{one.counts[what]:,} {what}" for what in ("images", "classes")
        )
        group = small if one.files else here
        if _is_benchmark(one):
            group = benchmarks
        group.append((one.name, f"{one.title}: {counts} ({one.paper})."))
    print_groups(groups)
    say(
        "What is trained and tested, and how to get it: `keras-dml datasets "
        "NAME`.\nAny folder with one sub-folder per class is a data set, too."
    )


def _show_dataset(facts: "DatasetFacts") -> None:
    counted = {
        name: ", ".join(
            f"{facts.counts[key]:,} {what}"
            for what in ("images", "classes")
            if (key := f"{part}{what}") in facts.counts
        )
        for name, part in (("All", ""), ("Train", "train_"), ("Test", "test_"))
    }
    colors = "color" if facts.channels == 3 else "gray"
    folder = " --data-dir DIR" if facts.files else ""
    print_facts(
        {
            facts.name: f"{facts.title}.",
            "Paper": facts.paper,
            "Home": facts.homepage,
            **counted,
            "Image size": f"{facts.image_size} pixels, {colors}",
            "Network": facts.backbone,
            "Reported": ", ".join(f"R@{k}" for k in facts.recall_k),
            "Files": ", ".join(file.name for file in facts.files),
        }
    )
    if folder:
        say(f"Where to get them: `keras-dml prepare {facts.name}{folder}`.")
    say(f"Train on it: `keras-dml fit {facts.name}{folder}`.")


def _is_benchmark(facts: "DatasetFacts") -> bool:
    """Returns whether papers measure on these photos."""
    return bool(facts.files) and facts.channels == 3


def backbones(name: Name = None) -> None:
    """List the backbones by what they are good for, or show one."""
    from keras_dml.backbone_facts import known_backbones
    from keras_dml.checks import one_of

    if name is not None:
        known = known_backbones()
        _show_backbone(known[one_of("name", name, known)])
        return
    groups: Groups = {
        "Small, for phones and processors: Keras downloads the weights": [],
        "Large, for accelerators: Keras downloads the weights": [],
        "Of papers: `keras-dml convert-weights` converts the weights": [],
        "From scratch": [],
    }
    small, large, converted, scratch = groups.values()
    for one in known_backbones().values():
        group = small if one.gigamacs < LARGE else large
        if one.checkpoint:
            group = converted
        elif one.pretrained == "none":
            group = scratch
        group.append((one.name, one.about))
    groups["Of keras-hub: `pip install 'keras-dml[hub]'`"] = [
        (
            "hub:PRESET",
            "DINOv2, DINOv3, SigLIP, ViT and other image networks, by the name "
            "of a preset or a folder of `save_to_preset`.",
        )
    ]
    print_groups(groups)
    say("Size, cost, weights and paper: `keras-dml backbones NAME`.")


def _show_backbone(facts: "BackboneFacts") -> None:
    weights = f"{facts.pretrained}, which Keras downloads"
    if facts.checkpoint:
        weights = f"{facts.checkpoint}, to be converted"
    elif facts.pretrained == "none":
        weights = "none, it is trained from scratch"
    print_facts(
        {
            facts.name: facts.about,
            "Paper": facts.paper,
            "Image size": f"{facts.image_size} pixels by design, "
            f"{facts.min_image_size} at least",
            "Cost": f"{facts.gigamacs:g} billion multiplications for an image "
            f"of {facts.image_size} pixels",
            "Weights": weights,
        }
    )
    if facts.checkpoint:
        say("Convert them:")
        say(
            command_line(
                *("keras-dml", "convert-weights", "FILE"),
                *("--network", facts.name),
                *("--output", f"{facts.name}.weights.h5"),
            )
        )
    say("Train it:")
    train = ("keras-dml", "fit", "FOLDER", "--backbone", facts.name)
    converted = ("--weights", f"{facts.name}.weights.h5")
    say(command_line(*train, *(converted if facts.checkpoint else ())))
