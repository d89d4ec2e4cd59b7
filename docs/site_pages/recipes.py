"""The pages of the recipes and plans, from their files."""

from collections.abc import Iterator

from keras_dml.comparison.jobs import count_trials, make_jobs
from keras_dml.comparison.plans import arms
from keras_dml.config import load_recipe, recipe_names
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.plans import load_plan, plan_names
from keras_dml.config.recipes import DEFAULTS, GROUPS
from keras_dml.wording import counted, listed
from site_pages.markdown import as_code, facts, folded, page, table
from site_pages.symbols import ROOT

RECIPES, PLANS = "reference/recipes.md", "reference/plans.md"


def recipe_pages() -> Iterator[tuple[str, str, str]]:
    """Yields path, title and text of both pages."""
    groups: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for name in recipe_names():
        groups[GROUPS[load_recipe(name).group]].append(name)
    parts = []
    for title, names in groups.items():
        if names:
            parts += [f"## {title}", *map(_recipe, names)]
    defaults = (f"{as_code(name)} {when}" for name, when in DEFAULTS.items())
    yield (
        RECIPES,
        "Recipes",
        page(
            "# Recipes",
            "A recipe defines everything about a training except the data. "
            f"{listed(defaults)} are the defaults. "
            "[The guide](../recipes.md) says how a recipe, its presets and "
            "your settings become a configuration; `keras-dml config --recipe "
            "NAME` shows the result.",
            table(
                ("recipe", "what it is"),
                (
                    (f"[`{name}`](#{name})", load_recipe(name).about)
                    for names in groups.values()
                    for name in names
                ),
            ),
            *parts,
            "## Bases",
            "What recipes share; none of them is trained.",
            *(
                folded(file.stem, file.read_text(encoding="utf-8"), "yaml")
                for file in sorted((ROOT / "configs/recipes").glob("_*.yaml"))
            ),
        ),
    )
    yield (
        PLANS,
        "Plans",
        page(
            "# Plans",
            "The plans that come with the package: `keras-dml compare NAME`. "
            "[Plans of the papers' tables](../plans.md) says what they need; "
            "[Plan files](plan_files.md) lists the keys of a plan.",
            table(
                ("plan", "title", "size"),
                (
                    (f"[`{name}`](#{name})", load_plan(name).title, _size(name))
                    for name in plan_names()
                ),
            ),
            *(_plan(name, load_plan(name)) for name in plan_names()),
        ),
    )


def _recipe(name: str) -> str:
    recipe = load_recipe(name)
    result = recipe.result or "not yet."
    if recipe.result:
        result += (
            " ([44 recipes](../lab/papers.md#all-recipes-under-one-protocol))"
        )
    file = ROOT / "configs/recipes" / f"{name}.yaml"
    return page(
        f"### {name} {{ #{name} }}",
        recipe.about,
        facts(
            {
                "When": recipe.use,
                "Cost": recipe.cost,
                "Paper": recipe.paper,
                "Reported": recipe.expected,
                "Network of the paper": _codes([recipe.backbone]),
                "Measured here": result,
                "Builds on": _codes(recipe.bases),
                "Data sets of the paper": _codes(recipe.sources),
                "Presets": _codes(recipe.presets),
            }
        ),
        folded("What it sets", file.read_text(encoding="utf-8"), "yaml"),
    )


def _codes(names: object) -> str:
    return ", ".join(as_code(one) for one in names if one)  # type: ignore


def _plan(name: str, plan: PlanConfig) -> str:
    file = ROOT / "configs/plans" / f"{name}.yaml"
    return page(
        f"## {name} {{ #{name} }}",
        f"{plan.title.rstrip('.')}.",
        plan.about,
        facts(
            {
                "Paper": plan.paper,
                "Data": _codes(plan.sources),
                "Networks": _codes(plan.backbones),
                "Embedding sizes": _codes(plan.dims),
                "Seeds": _codes(plan.seeds),
                "Protocol": as_code(plan.protocol.kind),
                "Size": _size(name),
                "Arms": ", ".join(
                    f"{arm.name} ({as_code(arm.recipe)})"
                    if arm.name != arm.recipe
                    else as_code(arm.name)
                    for arm in arms(plan)
                ),
            }
        ),
        folded("The plan", file.read_text(encoding="utf-8"), "yaml"),
    )


def _size(name: str) -> str:
    plan = load_plan(name)
    size = counted(len({job.run for job in make_jobs(plan)}), "run")
    trials = count_trials(plan)
    return size + (f" after {trials:,} trials" if trials else "")
