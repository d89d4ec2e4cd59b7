"""Puts the health of embeddings into sentences."""

from collections.abc import Mapping

from keras_dml.run.history import History
from keras_dml.wording import percent

OCCUPANCY = "val_proxy_occupancy"


def health_lines(
    health: Mapping[str, float], dim: int, history: History
) -> list[str]:
    """Describes the health of embeddings, and what each number means.

    Args:
        health: Dict from `keras_dml.evaluation.embedding_health`.
        dim: Integer, the number of dimensions.
        history: The epochs of the run: the proxies are in no file.
    """
    lines = [
        f"Effective dimension: {health['effective_dim']:.1f} of {dim} (the "
        "exponential of the spectrum's entropy; 1 is a line).",
        f"Participation ratio: {health['participation_ratio']:.1f} of {dim} "
        "(the same idea, but directions with a small variance count less).",
        "Mean cosine of two images of one class: "
        f"{health['positive_similarity']:.3f}; of two classes: "
        f"{health['negative_similarity']:.3f}; their gap: "
        f"{health['similarity_gap']:.3f} (the larger, the further apart are "
        "the classes).",
        f"Mean norm: {health['mean_norm']:.3g} (the mean length of an "
        "embedding; 1 where the network scales embeddings to that length).",
    ]
    occupancy = history.values(OCCUPANCY)
    if occupancy:
        lines.append(
            f"Proxy occupancy: {percent(occupancy[max(occupancy)], 1)} (the "
            "share of the proxies that were nearest to any validation image, "
            "at the last validation of the training)."
        )
    if health["duplicates"]:
        lines.append(
            f"Duplicates: {percent(health['duplicates'], 1)} (the share of the "
            "images that have the embedding of an earlier one)."
        )
    return lines
