"""Checks the names of rows and metrics in a plan."""

import re
from collections.abc import Iterator

from keras_dml.comparison.plans import arms, rows
from keras_dml.config.plan_sections import FindingConfig, PaperTable, PlanConfig
from keras_dml.errors import UsageError
from keras_dml.naming import nearest, shown
from keras_dml.wording import listed

# What a run measures besides `recall@K`; the last four if it clusters.
MEASURED = (
    "r_precision",
    "map@r",
    "mrr",
    "nmi",
    "nmi_geometric",
    "ami",
    "ami_geometric",
)


def check_names(plan: PlanConfig) -> None:
    """Raises if a plan names rows that it lacks, or metrics of no run.

    A finding compares rows: with a `grid`, an arm with values of it. A printed
    value may also be of an arm, whatever the values of the grid.

    Raises:
        UsageError: One sentence names each mistake.
    """
    mistakes = [*_unknown_rows(plan), *_unknown_metrics(plan)]
    if mistakes:
        raise UsageError("\n".join(mistakes))


def _unknown_rows(plan: PlanConfig) -> Iterator[str]:
    measured = {*rows(plan).values()}
    printed = measured | {arm.name for arm in arms(plan)}
    named = [
        (_of(finding), measured, arm)
        for finding in plan.findings
        for arm in (*finding.better, *finding.than)
    ]
    named += [
        (_of(table), printed, arm)
        for table in plan.paper_values
        for arm in (*table.values, *table.pretrained)
    ]
    for place, known, arm in named:
        if arm not in known:
            there = listed(f"`{one}`" for one in sorted(known))
            yield (
                f"The {place} names the arm {arm!r}, which the plan does not "
                f"have. Its arms: {there}."
            )


def _unknown_metrics(plan: PlanConfig) -> Iterator[str]:
    named = [("`metrics`", metric) for metric in plan.metrics]
    named += [
        (f"The {_of(finding)}", finding.metric)
        for finding in plan.findings
        if finding.metric is not None
    ]
    named += [
        (f"The {_of(table)}", metric)
        for table in plan.paper_values
        for values in (*table.values.values(), *table.pretrained.values())
        for metric in values
    ]
    for place, metric in dict.fromkeys(named):
        if metric in MEASURED or re.fullmatch(r"recall@[1-9]\d*", metric):
            continue
        k = re.search(r"@([1-9]\d*)$", metric)
        known = (f"recall@{k[1] if k else 1}", *MEASURED)
        yield (
            f"{place} names {shown(metric)}, which no run measures. Nearest: "
            f"{nearest(metric, known)}."
        )


def _of(part: FindingConfig | PaperTable) -> str:
    if isinstance(part, FindingConfig):
        return f"finding {part.claim!r}"
    return f"paper value of {part.where!r}"
