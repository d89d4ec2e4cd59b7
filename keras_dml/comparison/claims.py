"""What plans say about their rows: findings, and values that papers print."""

from collections.abc import Mapping
from typing import Any

from keras_dml.config.plans import narrowed

Content = Mapping[str, Any]
_KINDS = ("values", "pretrained")


def claims_about(plan: Content, names: Mapping[str, str]) -> dict[str, Any]:
    """Returns what a plan says about some rows, with new names of these.

    Args:
        plan: The content of a plan.
        names: Dict from each row and arm to its new name.

    Returns:
        Dict of `findings` whose rows are all in `names`, and of
        `paper_values` without other rows and arms.
    """
    findings = [
        {
            **finding,
            "better": [names[row] for row in finding["better"]],
            "than": [names[row] for row in finding["than"]],
        }
        for finding in plan["findings"]
        if {*finding["better"], *finding["than"]} <= names.keys()
    ]
    tables = [
        table
        | {
            kind: {
                names[row]: printed
                for row, printed in table[kind].items()
                if row in names
            }
            for kind in _KINDS
        }
        for table in plan["paper_values"]
    ]
    return {"findings": findings, "paper_values": tables}


def joined_claims(
    stored: Content, given: Content, names: set[str]
) -> dict[str, Any]:
    """Returns what two plans say about their rows.

    What the given plan says replaces what is stored about the same rows, data
    and networks. Whatever is stored about others stays.

    Args:
        stored: The content of the plan of a folder.
        given: The content of the plan that a command asks for.
        names: The rows and arms of the given plan.
    """
    joined = {key: stored[key] for key in ("findings", "paper_values")}
    if given["findings"]:
        joined["findings"] = _findings(stored, given, names)
    if given["paper_values"]:
        joined["paper_values"] = _tables(stored, given, names)
    return joined


def _findings(
    stored: Content, given: Content, names: set[str]
) -> list[dict[str, Any]]:
    kept = [
        finding
        for finding in stored["findings"]
        if finding in given["findings"]
        or not (
            {*finding["better"], *finding["than"]} <= names
            and {*finding["sources"]} <= {*given["sources"]}
            and {*finding["backbones"]} <= {*given["backbones"]}
        )
    ]
    # Those that a narrower plan has of them.
    said = narrowed({**given, "cases": [], "findings": kept})["findings"]
    new = [one for one in given["findings"] if one not in said]
    return kept + new


def _tables(
    stored: Content, given: Content, names: set[str]
) -> list[dict[str, Any]]:
    places = {_place(table): table for table in given["paper_values"]}
    joined = []
    for table in stored["paper_values"]:
        foreign = table["source"] not in given["sources"] or (
            table["backbone"] not in (None, *given["backbones"])
        )
        own = places.pop(_place(table), {kind: {} for kind in _KINDS})
        rows = {
            kind: {
                row: printed
                for row, printed in table[kind].items()
                if foreign or row not in names or row in own[kind]
            }
            | own[kind]
            for kind in _KINDS
        }
        if any(rows.values()):
            joined.append(table | rows)
    return [*joined, *places.values()]


def _place(table: Content) -> tuple[Any, ...]:
    return tuple(table[key] for key in ("where", "source", "backbone", "dim"))
