"""Collects the content of each section of a page."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_dml.config.sections import REFIT
from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import (
    collapse_warning,
    embedding_health,
    embedding_spectrum,
    evaluate,
)
from keras_dml.evaluation.measured import CLASS_METRICS
from keras_dml.report import charts, confusions, retrieval
from keras_dml.report import embedding_map as maps
from keras_dml.report.health import health_lines
from keras_dml.report.thumbnails import Thumbnails
from keras_dml.run.conclusion import (
    CAVEATS,
    HEADLINE,
    LAST_EPOCH,
    columns,
    conclusion,
)
from keras_dml.run.run_threshold import CAUTIONS
from keras_dml.run.thresholds import thresholds_of, usual_threshold
from keras_dml.run.trained_run import TrainedRun
from keras_dml.wording import percent

SHOWN_RATES = (0.1, 0.01, 0.001)
CONFUSIONS = 12
FLAGS = {
    **CAVEATS,
    "final": (
        "The run trained on the test classes too. The numbers of this section "
        "are those of the measured run before it; the images and tables after "
        "it were trained on."
    ),
}


@dataclasses.dataclass(frozen=True)
class Material:
    """What the sections of a page show.

    Args:
        run: The run.
        embeddings: `EmbeddingSet` of its test images.
        images: `Thumbnails` of the same rows.
        normalize: Whether embeddings are compared by their direction.
        seed: Integer, the seed of everything that is drawn at random.
    """

    run: TrainedRun
    embeddings: EmbeddingSet
    images: Thumbnails
    normalize: bool
    seed: int


def result(material: Material) -> dict[str, Any]:
    """Returns the headline, what to conclude, the table and the flags."""
    metrics = material.run.metrics
    table = columns(metrics)
    first, *_, after = table.values()
    intervals = metrics.get("gains", {}).get("off_the_shelf", {})
    rows = [
        {
            "name": name,
            "cells": [column[name] for column in table.values()],
            "gain": after[name] - first[name],
            "interval": intervals.get(name),
        }
        for name in sorted(after, key=lambda name: name != HEADLINE)
    ]
    headline = rows[0]
    return {
        "columns": list(table),
        "results": rows,
        "headline": headline,
        "conclusion": conclusion(metrics),
        "flags": flags(metrics),
        "kept": kept_weights(metrics),
    }


def training(material: Material) -> dict[str, Any]:
    """Draws the curves, and says how long training was and how it ended."""
    run = material.run
    monitor = run.config.evaluation.monitor
    # No epoch was kept if the pretrained network was.
    selected = not run.metrics.get("interpolation", {}).get("kept")
    stages = [name.partition("/")[0] for name in run.history.phases]
    refit_epochs = stages.count(REFIT)
    of_stage = " of the last stage" if len({*stages}) > 1 else ""
    epochs, curves = charts.training_curves(
        run.history,
        f"val_{monitor}",
        selected and run.metrics["selected_by"] != LAST_EPOCH,
    )
    return {
        "epochs": epochs,
        "refit_epochs": refit_epochs,
        "of_stage": " of the refit" if refit_epochs else of_stage,
        "curves": curves,
        "length": run.metrics.get("length"),
        "minutes": run.config.minutes,
        "monitor": monitor,
        "way": way(run.metrics),
    }


def queries_and_classes(material: Material) -> dict[str, Any]:
    """Returns queries with what they find, confusions and all classes."""
    embeddings, normalize = material.embeddings, material.normalize
    images = material.images
    exact = evaluate(
        embeddings, k=(1,), normalize=normalize, per_class=True
    ).exact
    assert exact.per_class is not None

    def rows(queries: np.ndarray) -> list[retrieval.QueryRow]:
        return retrieval.query_rows(
            queries, embeddings, exact, images, normalize
        )

    confused = confusions.confusions(embeddings, normalize)
    table = confusions.class_rows(exact.per_class, embeddings, confused)
    return {
        "typical": rows(retrieval.typical_queries(embeddings, material.seed)),
        "worst": rows(retrieval.worst_queries(embeddings, exact)),
        "confusions": [
            {
                "query": retrieval.shown(one.query, embeddings, images),
                "found": retrieval.shown(
                    one.found, embeddings, images, right=False
                ),
                "count": one.count,
                "of": one.of,
            }
            for one in confused[:CONFUSIONS]
        ],
        "score_name": "the cosine"
        if normalize
        else "minus the squared distance",
        "has_gallery": embeddings.has_gallery,
        "classes": table,
        "class_metrics": CLASS_METRICS,
        "hidden_classes": len(exact.per_class.labels) - len(table),
    }


def similarities(material: Material) -> dict[str, Any]:
    """Draws histograms of pairs of one class and of different classes."""
    edges, positive, negative = charts.similarity_shares(
        material.embeddings, material.normalize, material.seed
    )
    name = "cosine" if material.normalize else "minus the distance"
    centers = (edges[1:] + edges[:-1]) / 2
    return {
        "similarities": {
            "uri": charts.histograms(edges, positive, negative, name),
            "alt": f"Histograms of the {name} of pairs of images: on average "
            f"{positive @ centers:.3f} within a class, "
            f"{negative @ centers:.3f} between classes.",
        }
    }


def thresholds(material: Material) -> dict[str, Any]:
    """Returns thresholds for the rates with enough validation pairs.

    They are on the axis of the histograms: minus the distance, not its square.
    Where the pairs are enough for none of them it is the one of `search`.
    """
    found = thresholds_of(material.run, SHOWN_RATES)
    if not found:
        usual, _ = usual_threshold(material.run)
        found = [] if usual is None else [usual]
    measured_on = found[0].measured_on if found else "classes"
    return {
        "calibrated_on": "images" if "images" in measured_on else "classes",
        "caution": CAUTIONS[measured_on],
        "thresholds": [
            {
                "target_fmr": one.threshold.target_fmr,
                "at": one.threshold.score
                if material.normalize
                else -one.distance,
                "fnmr": one.threshold.fnmr,
                "num_impostors": one.threshold.num_impostors,
            }
            for one in found
        ],
    }


def health(material: Material) -> dict[str, Any]:
    """Returns the health of the embeddings, and draws their spectrum."""
    rows, normalize = material.embeddings.embeddings, material.normalize
    shares = embedding_spectrum(rows, normalize)
    numbers = embedding_health(
        rows, material.embeddings.labels, normalize=normalize
    )
    return {
        "collapse": collapse_warning(numbers, normalize),
        "health": health_lines(numbers, len(shares), material.run.history),
        "spectrum": {
            "uri": charts.spectrum(shares),
            "alt": "Share of the variance along each principal direction: "
            f"{percent(shares[0], 1)} along the first of {len(shares)}.",
        },
    }


def embedding_map(material: Material) -> dict[str, Any]:
    """Draws the embeddings in two dimensions, if there are enough."""
    embeddings, seed = material.embeddings, material.seed
    if len(embeddings) < maps.MIN_IMAGES:
        return {"map": None}
    rows = maps.choose_rows(embeddings.groups, seed)
    labels = embeddings.groups[rows]
    places = maps.positions(
        embeddings.embeddings[rows], material.normalize, seed
    )
    return {
        "map": {
            "uri": maps.draw_map(places, labels, material.images, rows),
            "count": len(rows),
            "num_classes": len(np.unique(labels)),
            "alt": f"{len(rows)} test images as dots in the colors of their "
            "classes, near ones near each other, with thumbnails.",
        }
    }


def kept_weights(metrics: Mapping[str, Any]) -> str:
    """Says which weights were kept.

    Args:
        metrics: The content of `metrics.json`.
    """
    end = metrics["selected_by"]
    if end != LAST_EPOCH:
        end = f"epoch with the best {end}"
    chosen = metrics.get("interpolation", {})
    if chosen.get("kept"):
        return "those of the pretrained network"
    if chosen.get("share", 1) < 1:
        return (
            f"{percent(chosen['share'])} of the way from the start to those of "
            f"the {end}"
        )
    return f"those of the {end}"


def way(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the validation values between the start and the end.

    Args:
        metrics: The content of `metrics.json`.

    Returns:
        Dicts of the `"place"`, its `"value"` and whether it was `"chosen"`;
        none for runs that chose nothing in between.
    """
    found = metrics.get("interpolation", {})
    if not found.get("values"):
        return []
    kept = found["kept"]
    return [
        {
            "place": metrics["pretrained_features"],
            "value": found["pretrained"],
            "chosen": kept,
        },
        *(
            {
                "place": percent(float(share)),
                "value": value,
                "chosen": not kept and share == f"{found['share']:g}",
            }
            for share, value in found["values"].items()
        ),
    ]


def flags(metrics: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns the name and the meaning of each flag that is set.

    Args:
        metrics: The content of `metrics.json`.
    """
    return [
        {"name": name, "meaning": meaning}
        for name, meaning in FLAGS.items()
        if metrics.get(name)
    ]
