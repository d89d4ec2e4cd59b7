"""The prefixes of a run's embeddings: how well they retrieve, and alone."""

import dataclasses

import keras
import numpy as np

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.layers import EmbeddingHead
from keras_dml.models import cut_embedder
from keras_dml.ops.similarities import unit_rows
from keras_dml.run.conclusion import HEADLINE
from keras_dml.run.measure import evaluate_briefly
from keras_dml.run.trained_run import EmbeddedImages, TrainedRun
from keras_dml.wording import listed


def prefix_rows(
    embedder: keras.Model, rows: np.ndarray, size: int
) -> np.ndarray:
    """Returns what an embedder cut to `size` makes of the same images.

    Args:
        embedder: The whole embedder.
        rows: Its embeddings, `(n, dim)`.
        size: Number of values to keep.
    """
    kept = embedder.get_layer("head").prefix(rows, size)
    if embedder.layers[-1].name == "unit":
        kept = unit_rows(kept)
    return keras.ops.convert_to_numpy(kept)


def measure_prefixes(
    embedder: keras.Model,
    embeddings: np.ndarray,
    manifest: Manifest,
    config: RunConfig,
) -> dict[str, dict[str, float]]:
    """Measures how well each prefix of the embeddings retrieves alone.

    Args:
        embedder: The embedder that made the embeddings.
        embeddings: One row for each image.
        manifest: The images.
        config: Configuration that names the prefixes.

    Returns:
        By size a dict of `recall@1` and `map@r`; empty if there are no
        prefixes, or the pretrained network was kept, which was not trained
        for any.
    """
    if not isinstance(embedder.get_layer("head"), EmbeddingHead):
        return {}
    found = {}
    for size in config.model.prefixes:
        rows = prefix_rows(embedder, embeddings, size)
        metrics = evaluate_briefly(rows, manifest, config).metrics
        found[str(size)] = {
            name: metrics[name] for name in ("recall@1", HEADLINE)
        }
    return found


class CutRun(TrainedRun):
    """A run whose embeddings are a prefix of those of another one.

    Args:
        whole: The run, trained for this prefix.
        dim: Size of the prefix.

    Raises:
        UsageError: If the run was not trained for it.
    """

    def __init__(self, whole: TrainedRun, dim: int) -> None:
        sizes = [int(size) for size in whole.metrics.get("prefixes", {})]
        if dim not in sizes:
            known = listed(str(size) for size in [*sizes, whole.dim])
            raise UsageError(
                "`dim` must be a size that the run was trained for, "
                f"{known}. Received: {dim}. Train one with "
                f"`model.matryoshka=[{dim}]`."
            )
        self.whole = whole
        self.folder = whole.folder
        self.metrics = {
            **whole.metrics,
            "after": whole.metrics["prefixes"][str(dim)],
            "dim": dim,
            "prefixes": {},
        }
        self.config = whole.config.changed(
            model={"dim": dim, "matryoshka": [], "matryoshka_weights": []}
        )
        self.embedder = cut_embedder(whole.embedder, dim)
        self.suffix = f"-{dim}"

    def part(self, part, source=None, data_dir=None):
        found = self.whole.part(part, source, data_dir)
        if found is None:
            return None
        rows = prefix_rows(
            self.whole.embedder, found.embeddings.embeddings, self.dim
        )
        embeddings = dataclasses.replace(
            found.embeddings, embeddings=rows, weights_hash=self.weights_hash
        )
        return EmbeddedImages(embeddings, found.images)


def with_dim(run: TrainedRun, dim: int | None) -> TrainedRun:
    """Returns a run with embeddings of `dim` values, its first ones.

    Args:
        run: The run.
        dim: One of its prefixes; all values if it is `None`.

    Raises:
        UsageError: If the run was not trained for this prefix.
    """
    return run if dim in (None, run.dim) else CutRun(run, dim)
