"""Says before a comparison what it is about to train."""

from collections.abc import Iterable, Iterator, Sequence

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.protocols import get_protocol
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.wording import counted, listed, source_title, titled

# More names than this are counted.
MOST = 6


def comparison_overview(jobs: Sequence[Job], plan: PlanConfig) -> str:
    """Returns a few lines on the data, the networks and the trainings.

    Args:
        jobs: The checked runs of the plan.
        plan: The plan.
    """
    configs = [job.config for job in jobs]
    works = [job.work for job in jobs if job.work is not None]
    steps = _span(work.steps for work in works)
    batches = _span(work.batch for work in works)
    sizes = _span(work.size for work in works)
    networks = _names(config.model.backbone for config in configs)
    images = [
        job.images or source_title(job.config.data.source) for job in jobs
    ]
    return titled(
        [
            *(("Images", one) for one in dict.fromkeys(images)),
            *_arms(jobs, plan),
            ("Network", f"{networks}, on images of {sizes} x {sizes} pixels"),
            (
                "Training",
                f"{steps} steps in each run; each learns from {batches} images",
            ),
            ("Protocol", get_protocol(plan.protocol).in_words),
        ]
    )


def _arms(jobs: Sequence[Job], plan: PlanConfig) -> Iterator[tuple[str, str]]:
    """Yields the arms with their settings, if they are more than recipes."""
    arms = _names(job.record.arm for job in jobs)
    used = list(dict.fromkeys(job.record.recipe for job in jobs))
    recipes = _names(used)
    few = len(plan.arms) <= MOST
    told = [arm for arm in plan.arms if arm.set and few]
    if arms != recipes:
        settings = "; with other settings than the recipe:" if told else ""
        yield "Arms", f"{arms}: the variants to compare{settings}"
    for arm in told:
        changes = listed(f"{key}={value}" for key, value in arm.set.items())
        yield "", f"{arm.name}: {changes}"
    several = len(used) > 1
    first = used[0].partition(":")[0]
    yield (
        "Recipes" if several else "Recipe",
        f"{recipes}, the method{'s' if several else ''} of training; "
        f"`keras-dml recipes {first}` explains "
        f"{'the first' if several else 'it'}",
    )


def _names(names: Iterable[str]) -> str:
    different = list(dict.fromkeys(names))
    if len(different) > MOST:
        return f"{counted(len(different), 'kind')}, such as {different[0]}"
    return listed(different)


def _span(numbers: Iterable[float]) -> str:
    low, *_, high = sorted([*numbers] * 2)
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
