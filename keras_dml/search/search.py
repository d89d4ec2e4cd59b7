"""Finds the images of a gallery that are similar to given images."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.checks import positive_integer, require
from keras_dml.console import logger
from keras_dml.data import verification
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.registry import build_index, check_index
from keras_dml.evaluation.index.spaces import distances
from keras_dml.files import readable
from keras_dml.run.prefixes import with_dim
from keras_dml.run.run_threshold import RunThreshold
from keras_dml.run.thresholds import (
    FALSE_MATCH_RATES,
    check_rate,
    threshold_of,
    usual_threshold,
)
from keras_dml.run.trained_run import EmbeddedImages, TrainedRun
from keras_dml.search.result import Answer, Neighbor, SearchResult


def search_run(
    run: TrainedRun | str | Path,
    images: Sequence[str | os.PathLike[str]],
    *,
    k: int = 10,
    gallery: str | os.PathLike[str] | None = None,
    data_dir: str | Path | None = None,
    index: str = "exact",
    dim: int | None = None,
    max_false_match_rate: float | None = None,
    decision: str = "pairs",
) -> SearchResult:
    """Finds the nearest images to each of the given image files.

    An image that is itself a file of the gallery does not find itself.

    Args:
        run: The run folder. In Python also a `TrainedRun`.
        images: Image files to look up.
        k: Number of neighbors to find. Defaults to `10`.
        gallery: A source, all images of which are searched. Defaults to
            `None`, the run's test images.
        data_dir: Folder that holds the data set's files. Defaults to `None`,
            the folder that the run used.
        index: `"exact"`, or `"scann"` (approximate). Defaults to `"exact"`.
        dim: Number of values of an embedding, one of the sizes in
            `model.matryoshka` of the run. Defaults to `None`, all of them.
        max_false_match_rate: The share in (0, 1) of wrong decisions on
            validation classes that sets the threshold below which an image
            has no match. Defaults to `None`, which is 0.001, or the next
            looser one that the validation images are enough for.
        decision: What the rate is a share of: `"pairs"` of images, or
            searches (`"nearest"`). Defaults to `"pairs"`.

    Returns:
        `SearchResult`.

    Raises:
        UsageError: If the run is not finished, an image cannot be read, or
            an argument is out of range.

    Example:

    ```python
    result = search_run("runs/shoes", ["photo.jpg"], k=5)
    print(result.answers[0].neighbors[0].id)
    ```
    """
    check_rate(max_false_match_rate, decision)
    check_index(index)
    positive_integer("k", k)
    opened = TrainedRun.of(run, data_dir if gallery is None else None)
    opened = with_dim(opened, dim)
    queries = read_queries(images)
    threshold = _threshold(opened, max_false_match_rate, decision)
    source = None if gallery is None else os.fspath(gallery)
    searched = _gallery(opened, source, data_dir)
    built = build_index(
        index, searched.embeddings, normalize=opened.config.evaluation.normalize
    )
    own = _own_ids(queries, searched)
    found, scores = built.search(
        opened.embed_images(queries), k + max(map(len, own))
    )
    table = IdTable.of(searched.embeddings.ids, len(searched.embeddings))
    rows = table.rows_of_lists(found, "found")
    # Embeddings have the labels that count in a test, images all of them.
    labeled = searched.images
    names = (searched.embeddings if labeled is None else labeled).names
    answers = []
    for query, path in enumerate(queries.paths.tolist()):
        others = ~np.isin(found[query], own[query])
        neighbors = [
            Neighbor(
                id=str(searched.embeddings.ids[row]),
                label=str(names[row]),
                score=score,
                distance=float(distances(score, built.metric)),
                row=row,
                accepted=(
                    None
                    if threshold is None
                    else bool(threshold.threshold.accepts(score))
                ),
            )
            for row, score in zip(
                rows[query, others][:k].tolist(),
                scores[query, others][:k].tolist(),
                strict=True,
            )
        ]
        answers.append(Answer(readable(path), neighbors, len(own[query])))
    return SearchResult(answers, queries, searched, threshold, source)


def read_queries(images: Sequence[str | os.PathLike[str]]) -> Manifest:
    """Returns the image files as a manifest, without repetitions.

    Raises:
        UsageError: If one of them is not a readable image.
    """
    paths = list(dict.fromkeys(os.fspath(image) for image in images))
    require(paths, "images", "at least one file", images)
    queries = Manifest(
        name="images",
        labels=np.zeros(len(paths), np.int64),
        class_names=["unknown"],
        ids=[readable(path) for path in paths],
        paths=paths,
    )
    for path, why in verification.verify(queries).bad:
        raise UsageError(
            f"{path} cannot be read as an image: {why}. Name image files alone."
        )
    return queries


def _threshold(
    run: TrainedRun, rate: float | None, decision: str
) -> RunThreshold | None:
    """Returns the threshold; raises only if a rate was given."""
    if rate is not None:
        return threshold_of(run, rate, decision)
    found, reason = usual_threshold(run, decision)
    if found is None:
        logger.warning("%s Every image gets its nearest.", reason)
    elif reason:
        logger.warning(
            "Take a match with care. The validation images are few, so up to "
            "%g %% of the %s count as a match, where %g %% is usual. Training "
            "on more classes helps.",
            100 * found.threshold.target_fmr,
            "pairs of images of different classes"
            if decision == "pairs"
            else "searches for a class that the gallery lacks",
            100 * FALSE_MATCH_RATES[0],
        )
    return found


def _gallery(
    run: TrainedRun, source: str | None, data_dir: str | Path | None
) -> EmbeddedImages:
    """Returns the images to search: test references, or all of a source."""
    if source is not None:
        everything = run.part("all", source, data_dir)
        assert everything is not None
        return everything
    test = run.part("test")
    assert test is not None
    rows = test.embeddings.references
    return EmbeddedImages(
        test.embeddings.select(rows),
        None if test.images is None else test.images.select(rows),
    )


def _own_ids(queries: Manifest, gallery: EmbeddedImages) -> list[list[Any]]:
    """Returns each query's ids in the gallery, which may name a file twice."""
    known: dict[tuple[int, int] | None, list[Any]] = {}
    if gallery.images is not None and gallery.images.paths is not None:
        ids = gallery.embeddings.ids.tolist()
        for path, one in zip(gallery.images.paths.tolist(), ids, strict=True):
            known.setdefault(_file(path), []).append(one)
    known.pop(None, None)
    return [known.get(_file(path), []) for path in queries.paths.tolist()]


def _file(path: str) -> tuple[int, int] | None:
    """Returns device and inode, which are equal for all names of a file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
