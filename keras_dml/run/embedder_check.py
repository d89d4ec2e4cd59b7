"""Checks that an embedder is the one that a run made."""

from collections.abc import Mapping
from typing import Any

import keras

from keras_dml.config import RunConfig
from keras_dml.errors import RunError
from keras_dml.run.cache import weights_hash
from keras_dml.run.conclusion import is_kept


def check_embedder(
    embedder: keras.Model, config: RunConfig, metrics: Mapping[str, Any]
) -> None:
    """Raises if an embedder is not the one that the run made.

    Args:
        embedder: The model in `embedder.keras`.
        config: The run's configuration.
        metrics: The run's results; if they have a hash of the weights, it is
            compared. Version 0.1 wrote none.

    Raises:
        RunError: If shapes or weights differ.
    """
    expected = (tuple(config.data.image_shape), embedding_dim(config, metrics))
    found = (tuple(embedder.input_shape[1:]), embedder.output_shape[-1])
    if expected != found:
        raise RunError(
            "`embedder.keras` is not of this run: it embeds images of shape "
            f"{found[0]} in {found[1]} dimensions; the run says {expected[0]} "
            f"and {expected[1]}. Restore the file, or train the run again."
        )
    recorded = metrics.get("weights_hash")
    if recorded is not None and recorded != weights_hash(embedder):
        raise RunError(
            "`embedder.keras` has other weights than those that "
            "`metrics.json` was measured with. Restore the file, or train the "
            "run again."
        )


def embedding_dim(config: RunConfig, metrics: Mapping[str, Any]) -> int:
    """Returns how many numbers the embeddings of a run have."""
    # Kept features have as many numbers as the network gives.
    kept = is_kept(metrics)
    return metrics.get("dim", config.model.dim) if kept else config.model.dim
