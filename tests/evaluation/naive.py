"""Retrieval by double loops in float64, as the formulas read."""

import numpy as np


def neighbors(queries, references, ids, query_ids, metric):
    """For each query the rows of all other references, nearest first."""
    lists = []
    for i, query in enumerate(np.asarray(queries, np.float64)):
        scored = []
        for j, reference in enumerate(np.asarray(references, np.float64)):
            if query_ids is not None and ids[j] == query_ids[i]:
                continue
            if metric == "euclidean":
                score = -np.sum((query - reference) ** 2)
            elif metric == "dot":
                score = query @ reference
            else:
                norms = np.linalg.norm(query) * np.linalg.norm(reference)
                score = query @ reference / norms if norms else 0.0
            # Rounded: ties of the exact arithmetic must be ties here too.
            scored.append((-round(float(score), 9), ids[j], j))
        lists.append([j for _, _, j in sorted(scored)])
    return lists


def metrics(lists, query_labels, reference_labels, k, shares=False):
    """Means over the queries that have a positive, and how many have none.

    Labels are equal in positives, or `shares` an element.
    """
    totals, lone = {}, 0
    for label, row in zip(query_labels, lists, strict=True):
        if shares:
            hits = [bool(reference_labels[j] & label) for j in row]
        else:
            hits = [reference_labels[j] == label for j in row]
        count = sum(hits)
        if count == 0:
            lone += 1
            continue
        values = {f"recall@{n}": float(any(hits[:n])) for n in k}
        values["r_precision"] = sum(hits[:count]) / count
        values["map@r"] = (
            sum(sum(hits[: i + 1]) / (i + 1) for i in range(count) if hits[i])
            / count
        )
        values["mrr"] = 1 / (hits.index(True) + 1)
        for name, value in values.items():
            totals.setdefault(name, []).append(value)
    return {name: np.mean(values) for name, values in totals.items()}, lone
