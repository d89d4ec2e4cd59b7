"""Numbers on the health of embeddings, in words."""

from collections.abc import Mapping


def health_lines(health: Mapping[str, float], dim: int) -> list[str]:
    """One sentence for each number that says something.

    Args:
        health: Dict from `keras_dml.evaluation.embedding_health`.
        dim: Integer, the number of dimensions there are.
    """
    lines = [
        f"Effective dimension: {health['effective_dim']:.1f} of {dim} (the "
        "exponential of the spectrum's entropy; 1 is a line).",
        f"Participation ratio: {health['participation_ratio']:.1f}.",
        f"Mean cosine within a class: {health['positive_similarity']:.3f}; "
        f"between classes: {health['negative_similarity']:.3f}; gap: "
        f"{health['similarity_gap']:.3f}.",
    ]
    if health["duplicates"]:
        lines.append(
            f"{health['duplicates']:.1%} of the images have the embedding of "
            "an earlier one."
        )
    return lines
