"""Records of runs that never were."""

import numpy as np

from keras_dml.comparison.records import RunRecord


def record(arm="softmax", seed=0, value=0.5, **changes):
    """A finished run whose metrics all have one value."""
    values = {
        "run": f"{arm}-{seed}-{changes.get('fold')}-{changes.get('dim')}",
        "source": "omniglot",
        "backbone": "small_cnn",
        "weights": "none",
        "dim": 64,
        "arm": arm,
        "recipe": arm,
        "line": arm,
        "factors": {},
        "seed": seed,
        "fold": None,
        "status": "done",
        "after": {"recall@1": value, "map@r": value},
    }
    return RunRecord(**(values | changes))


def unfinished(arm, seed, status, **changes):
    """A run that failed, or was not begun."""
    return record(arm, seed, status=status, after={}, **changes)


def write_queries(folder, values, ids=None, labels=None, metric="map@r"):
    """Writes `per_query.npz` as a run does."""
    folder.mkdir(parents=True, exist_ok=True)
    values = np.asarray(values, float)
    ids = np.arange(len(values)) if ids is None else ids
    labels = np.arange(len(values)) // 4 if labels is None else labels
    np.savez(
        folder / "per_query.npz",
        ids=np.asarray(ids),
        labels=np.asarray(labels),
        **{metric: values},
    )
    return folder
