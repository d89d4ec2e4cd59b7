"""Finds the images of a gallery that are similar to given images."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import positive_integer, require
from keras_dml.console import logger
from keras_dml.data import verification
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.registry import build_index, check_index
from keras_dml.evaluation.index.spaces import distances
from keras_dml.files import readable
from keras_dml.run.prefixes import with_dim
from keras_dml.run.thresholds import (
    FALSE_MATCH_RATES,
    RunThreshold,
    check_rate,
    threshold_of,
    usual_threshold,
)
from keras_dml.run.trained_run import EmbeddedImages, TrainedRun
from keras_dml.wording import counted, source_title


@dataclasses.dataclass(frozen=True)
class Neighbor:
    """Describes an image that was found.

    Args:
        id: String, its path within the data set, or its number there.
        label: String, its class.
        score: Float; larger is closer.
        distance: Float; smaller is closer: 1 minus the cosine, or the
            Euclidean distance.
        row: Integer, its row in the gallery.
        accepted: Boolean, whether the score reaches the threshold; `None`
            without a threshold.
    """

    id: str
    label: str
    score: float
    distance: float
    row: int
    accepted: bool | None


@dataclasses.dataclass(frozen=True)
class Answer:
    """Lists the neighbors of one image, nearest first.

    Args:
        path: The file of the image.
        neighbors: List of `Neighbor`.
        left_out: Whether the file is one of the gallery, and was left out.
            Defaults to `False`.
    """

    path: str
    neighbors: list[Neighbor]
    left_out: bool = False

    @property
    def match(self) -> bool | None:
        """Whether the nearest neighbor reaches the threshold.

        `None` without a threshold, or if there is no neighbor.
        """
        return self.neighbors[0].accepted if self.neighbors else None


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SearchResult(Brief):
    """Holds the answers for all images, and the gallery.

    Args:
        answers: One `Answer` for each image.
        queries: `Manifest` of the images, in the order of the answers.
        gallery: `EmbeddedImages`.
        threshold: `RunThreshold`, or `None` if none could be calibrated.
        source: The source whose images were searched. Defaults to `None`, the
            run's test images.
    """

    answers: list[Answer]
    queries: Manifest
    gallery: EmbeddedImages
    threshold: RunThreshold | None
    source: str | None = None

    @property
    def num_references(self) -> int:
        """Number of images that were searched."""
        return len(self.gallery.embeddings)

    def searched(self, answer: Answer | None = None) -> str:
        """Says which images were searched.

        Args:
            answer: For which image. Defaults to `None`, any.
        """
        left_out = answer is not None and answer.left_out
        count, other = self.num_references - left_out, "other " * left_out
        if self.source is None:
            return f"the run's {counted(count, f'{other}test image')}"
        images = counted(count, f"{other}image")
        return f"{images} of {source_title(self.source)}"

    def _brief_title(self) -> str:
        images = counted(len(self.answers), "image")
        return f"SearchResult of {images} in {self.searched()}"

    def _brief_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "image": os.path.basename(answer.path),
                "nearest": answer.neighbors[0].id,
                "label": answer.neighbors[0].label,
                "distance": answer.neighbors[0].distance,
                "match": answer.match,
            }
            for answer in self.answers
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns the answers as plain values, for JSON."""
        threshold = self.threshold
        return {
            "num_references": self.num_references,
            "threshold": (
                None if threshold is None else threshold.threshold.score
            ),
            "max_distance": None if threshold is None else threshold.distance,
            "answers": [
                {
                    "image": answer.path,
                    "match": answer.match,
                    "neighbors": [
                        {
                            "id": one.id,
                            "label": one.label,
                            "distance": one.distance,
                            "score": one.score,
                            "match": one.accepted,
                        }
                        for one in answer.neighbors
                    ],
                }
                for answer in self.answers
            ],
        }


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
        opened.embed_images(queries), k, exclude_ids=own
    )
    return SearchResult(
        _answers(
            queries, searched, threshold, found, scores, built.metric, own
        ),
        queries,
        searched,
        threshold,
        source,
    )


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
            "The validation images are few, so a match is less sure than "
            "usual: up to %g %% of the %s are called a match, where at most "
            "%g %% is usual. A run on more classes can be stricter.",
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


def _own_ids(queries: Manifest, gallery: EmbeddedImages) -> np.ndarray:
    """Returns each query's id in the gallery, or an empty string."""
    ids = np.full(len(queries), "", gallery.embeddings.ids.dtype)
    if gallery.images is None or gallery.images.paths is None:
        return ids
    paths = gallery.images.paths.tolist()
    rows = {_file(path): row for row, path in enumerate(paths)}
    for query, path in enumerate(queries.paths.tolist()):
        row = rows.get(_file(path))
        if row is not None:
            ids[query] = gallery.embeddings.ids[row]
    return ids


def _file(path: str) -> tuple[int, int] | None:
    """Returns device and inode, which are equal for all names of a file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _answers(
    queries: Manifest,
    gallery: EmbeddedImages,
    threshold: RunThreshold | None,
    found: np.ndarray,
    scores: np.ndarray,
    metric: str,
    own: np.ndarray,
) -> list[Answer]:
    ids = gallery.embeddings.ids
    # Embeddings have the labels that count in a test, images all of them.
    labeled = gallery.embeddings if gallery.images is None else gallery.images
    names = labeled.names
    order = np.argsort(ids, kind="stable")
    rows = order[np.searchsorted(ids[order], found)]

    answers = []
    for path, its_rows, its_scores, its_own in zip(
        queries.paths.tolist(),
        rows.tolist(),
        scores.tolist(),
        own.tolist(),
        strict=True,
    ):
        neighbors = []
        for row, score in zip(its_rows, its_scores, strict=True):
            accepted = None
            if threshold is not None:
                accepted = bool(threshold.threshold.accepts(score))
            label, gap = str(names[row]), float(distances(score, metric))
            # The excluded file comes last, with a score of -infinity.
            if np.isfinite(score):
                neighbors.append(
                    Neighbor(str(ids[row]), label, score, gap, row, accepted)
                )
        answers.append(Answer(readable(path), neighbors, its_own != ""))
    return answers
