"""Says in words what a person should conclude from the result of a run."""

from collections.abc import Mapping
from typing import Any

from keras_dml.wording import metric_title, percent, source_title

HEADLINE = "map@r"
# What `selected_by` is in the metrics where no result chose the epoch.
LAST_EPOCH = "last epoch"

# What a reader of the results must know, by the flag in `metrics.json`.
CAVEATS = {
    "seen": (
        "The test classes were seen in training; only their images are new. "
        "Numbers on unseen classes are lower."
    ),
    "several_labels": (
        "An image is right if it shares a label with the query. Labels that "
        "training images have do not count, unless classes were seen."
    ),
    "partial": (
        "Images of the published data set were missing. The numbers cannot "
        "be compared with published ones."
    ),
    "oracle": (
        "The result was chosen by looking at the test set, so it is better "
        "than what to expect on new data."
    ),
}


def columns(metrics: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """Returns the results before and after training, by title.

    Args:
        metrics: The content of `metrics.json`.

    Returns:
        Dict in the order of a table. The first column is what training has to
        beat, the last, "trained" or "kept", the embedder that was saved, the
        latter where no step of the training is in it. What
        pretrained features of images of the run's size reach is left out if
        it equals the first, as in results of version 0.1.
    """
    first = metrics.get("off_the_shelf", metrics["pretrained"])
    table = {metrics["pretrained_features"]: first}
    if metrics["pretrained"] != first:
        table[f"at {metrics['image_size']} pixels"] = metrics["pretrained"]
    return table | {
        "at the start": metrics["before"],
        "trained" if has_trained(metrics) else "kept": metrics["after"],
    }


def tested(metrics: Mapping[str, Any]) -> str:
    """Returns the data, the recipe and the test images as text.

    Args:
        metrics: The content of `metrics.json`.
    """
    kind = "seen in training" if metrics["seen"] else "unseen in training"
    return (
        f"{source_title(metrics['dataset'])}, recipe {metrics['recipe']}: "
        f"{metrics['num_queries']:,} queries, {metrics['test_classes']} "
        f"classes {kind}"
    )


def has_trained(metrics: Mapping[str, Any]) -> bool:
    """Returns whether the embedder that was saved holds what it trained."""
    found = metrics.get("interpolation", {})
    return not is_kept(metrics) and found.get("share") != 0


def is_kept(metrics: Mapping[str, Any]) -> bool:
    """Returns whether the pretrained network was kept."""
    return metrics.get("interpolation", {}).get("kept", False)


def result_rows(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns one row per metric, that of the headline first.

    Args:
        metrics: The content of `metrics.json`.

    Returns:
        Dicts of the metric, its value before and after training, the gain and
        the gain's 95 % interval; without the last two where training was
        discarded and nothing else changed. The interval is `"-"` for a metric
        of all queries together, and in results of version 0.1. The last rows
        are those of the prefixes of the embeddings, if some were trained.
    """
    (title, before), *_, (last, after) = columns(metrics).items()
    gains = metrics.get("gains", {}).get("off_the_shelf", {})
    rows = [
        {
            "metric": metric_title(name),
            title: before[name],
            last: after[name],
            "gain": f"{after[name] - before[name]:+.4f}",
            "95 % interval": _bounds(gains[name]) if name in gains else "-",
        }
        for name in sorted(after, key=lambda name: name != HEADLINE)
    ]
    rows += [
        {
            "metric": f"{metric_title(HEADLINE)}, first {size} numbers",
            title: before[HEADLINE],
            last: values[HEADLINE],
            "gain": f"{values[HEADLINE] - before[HEADLINE]:+.4f}",
            "95 % interval": "-",
        }
        for size, values in metrics.get("prefixes", {}).items()
    ]
    if is_kept(metrics) and before == after:
        shown = ("metric", title, last)
        rows = [{key: row[key] for key in shown} for row in rows]
    return rows


def gained(metrics: Mapping[str, Any]) -> bool:
    """Whether the gain in the headline metric is more than chance.

    Args:
        metrics: The content of `metrics.json`.

    Returns:
        Whether the interval of the gain lies above zero; true for results of
        version 0.1, which hold none.
    """
    if "gains" not in metrics:
        return True
    gain = metrics["gains"].get("off_the_shelf", {}).get(HEADLINE)
    return gain is not None and gain["low"] > 0


def conclusion(metrics: Mapping[str, Any]) -> list[str]:
    """Returns sentences on what training gained, and where that comes from.

    Args:
        metrics: The content of `metrics.json`.

    Returns:
        The verdict first. Results of version 0.1, which hold no intervals,
        give no sentence.
    """
    compared = metrics.get("gains")
    if compared is None:
        return []
    if "off_the_shelf" not in compared:
        return [
            "Whether this is better than the "
            f"{metrics['pretrained_features']} cannot be said: no interval "
            "could be drawn, which needs two test classes with several images."
        ]
    before = metrics["off_the_shelf"][HEADLINE]
    after = metrics["after"][HEADLINE]
    gain = compared["off_the_shelf"][HEADLINE]
    baseline = metrics["pretrained_features"]
    # What the last column of the table holds.
    trained = has_trained(metrics)
    subject = "The trained network" if trained else "What was kept"
    same = metrics["after"] == metrics["off_the_shelf"]
    change = f"MAP@R {before:.3f} -> {after:.3f}"
    if gain["low"] > 0:
        more = f" ({_relative(after / before)})" if before else ""
        verdict = (
            f"{subject} is better than the {baseline}: {change}{more}, gain "
            f"{_interval(gain)}."
        )
    elif gain["high"] < 0:
        verdict = (
            f"{subject} is worse than the {baseline}: {change}, gain "
            f"{_interval(gain)}. Use the {baseline} instead, or train longer, "
            "on more classes or with another recipe."
        )
    else:
        other = "a pretrained" if baseline == "raw pixels" else "another"
        verdict = (
            f"{subject} is not distinguishable from the {baseline}: {change}, "
            f"gain {_interval(gain)}. That includes zero: it is not clear that "
            "training helped. Train on more images or classes, longer, or "
            f"start from {other} network."
        )
    sentences = [verdict]
    if is_kept(metrics):
        sentences = [_kept(metrics)] if same else [_kept(metrics), verdict]
    elif not trained:
        sentences = [_STARTED, verdict]
    if "recall@1" in compared["off_the_shelf"]:
        start = metrics["off_the_shelf"]["recall@1"]
        end = metrics["after"]["recall@1"]
        by_baseline = f", by the {baseline} for {percent(start, 1)}"
        sentences.append(
            f"The nearest image is of the right class for {percent(end, 1)} "
            f"of the queries{'' if same else by_baseline}."
        )
    if not same:
        sentences += _worse_classes(metrics)
    sentences += _parts(metrics)
    chooser, _, monitor = metrics["selected_by"].partition(" ")
    if chooser == "validation" and not metrics["interpolation"]:
        sentences.append(
            f"The epoch with the best {metric_title(monitor)} on the "
            "validation images was kept."
        )
    if metrics.get("refit"):
        sentences.append(
            "Once the validation images had chosen how much of the training "
            "to keep, it was repeated with these images among the others."
        )
    if metrics.get("validated_on") == "images":
        chose = chooser == "validation" or metrics["interpolation"]
        sentences.append(
            "Too few classes train to leave some out: other images of the same "
            f"classes {'chose the weights' if chose else 'validated'}."
        )
    if metrics.get("validated_on") == "nothing" and metrics["interpolation"]:
        share = metrics["interpolation"]["share"]
        part = "" if share == 1 else f", so {percent(share)} of it was taken"
        sentences.append(
            f"Nothing was held out of the training{part}: only the test images "
            "say whether it helped."
        )
    return sentences


_STARTED = (
    "No step of the training was kept: on the validation images the network "
    "before it, with its features weighted (whitening), was the best."
)


def _kept(metrics: Mapping[str, Any]) -> str:
    """Says why the pretrained network was kept, and what to try."""
    found = metrics["interpolation"]
    harm = found.get("lower") and len(found["lower"]) == len(found["values"])
    why = "lowered R@1" if harm else "gained nothing beyond chance"
    size, natural = metrics["image_size"], metrics["natural_size"]
    gain = "a difference is no gain of training"
    if size != natural:
        gain = f"its gain is that of {size} instead of {natural} pixels"
    columns = f"The column `kept` is the network before training; {gain}"
    if metrics["after"] == metrics["off_the_shelf"]:
        columns = "Both columns are the same network, the one before training"
    return (
        "The pretrained network was kept and training discarded: on the "
        f"validation images it {why}. {columns}. Train on "
        "more images or classes, longer, or start from another network: "
        "`keras-dml backbones` lists them."
    )


def _worse_classes(metrics: Mapping[str, Any]) -> list[str]:
    """Returns a sentence on the classes that a mean of all hides."""
    found = metrics.get("worse_classes")
    if found is None:
        return []
    worse = f"{found['worse']:,}" if found["worse"] else "none"
    return [
        f"R@1 of {worse} of {found['classes']:,} test classes is "
        f"lower than by the {metrics['pretrained_features']}."
    ]


def _relative(ratio: float) -> str:
    if ratio >= 2:
        return f"{ratio:.1f} times"
    return f"{percent(abs(ratio - 1))} {'more' if ratio >= 1 else 'less'}"


def _parts(metrics: Mapping[str, Any]) -> list[str]:
    """Returns a sentence on what each part of the method gained."""
    size, natural = metrics["image_size"], metrics["natural_size"]
    off_the_shelf, start, before, after = (
        metrics[name][HEADLINE]
        for name in ("off_the_shelf", "pretrained", "before", "after")
    )
    parts = []
    if metrics["pretrained"] != metrics["off_the_shelf"]:
        larger = start - off_the_shelf
        parts.append(
            f"images of {size} instead of {natural} pixels {larger:+.3f}"
        )
    if not is_kept(metrics):
        if metrics["shrinkage"] is not None:
            parts.append(
                f"weighting the features (whitening) {before - start:+.3f}"
            )
            start = before
        if parts and has_trained(metrics):
            parts.append(f"training {after - start:+.3f}")
    return [f"The gain by part: {', '.join(parts)}."] if parts else []


def _interval(gain: Mapping[str, float]) -> str:
    low, high = gain["low"], gain["high"]
    return (
        f"{gain['gain']:+.3f} with a 95 % interval of {low:+.3f} to {high:+.3f}"
    )


def _bounds(gain: Mapping[str, float]) -> str:
    return f"{gain['low']:+.4f} to {gain['high']:+.4f}"
