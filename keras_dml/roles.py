"""Which rows are queries, and which the gallery that they search.

A role is `""`, `"query"` or `"gallery"`. Rows without one are queries, and
where there is no gallery the queries search each other.
"""

import numpy as np

ROLES = ("", "query", "gallery")


def query_rows(role: np.ndarray) -> np.ndarray:
    """Returns the rows that are queries.

    Args:
        role: String array `(rows,)`.

    Example:

    >>> query_rows(np.array(["gallery", "query", ""]))
    array([1, 2])
    """
    return np.flatnonzero(role != "gallery")


def reference_rows(role: np.ndarray) -> np.ndarray:
    """Returns the rows of the gallery; all rows if there is no gallery.

    Args:
        role: String array `(rows,)`.

    Example:

    >>> reference_rows(np.array(["", ""]))
    array([0, 1])
    """
    gallery = np.flatnonzero(role == "gallery")
    return gallery if len(gallery) else np.arange(len(role))


def has_gallery(role: np.ndarray) -> bool:
    """Returns whether queries and references are different rows."""
    return bool((role == "gallery").any())
