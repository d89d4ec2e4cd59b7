"""Measures the health of embeddings during training."""

import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_dml import evaluation
from keras_dml.callbacks.retrieval_evaluation import RetrievalEvaluation
from keras_dml.checks import require

CONSTANTS = {"class_dim"}


class EmbeddingHealth(keras.callbacks.Callback):
    """Writes the health of the embeddings into the logs.

    It measures the embeddings that a `RetrievalEvaluation` computes in the
    same epoch, and adds `val_effective_dim`, `val_similarity_gap`, ... to the
    logs; see `evaluation.embedding_health`. The `RetrievalEvaluation` must
    stand before it in the list of callbacks. It warns once, when
    `evaluation.collapse_warning` finds a collapse in two evaluations in a
    row: after one alone, the training may have barely started.

    Args:
        retrieval: `RetrievalEvaluation`.
        proxies: `Proxies` layer, `SampledProxies` or another with the
            attribute `proxies`, or a function without arguments that
            returns an array `(num_proxies, dim)`, for `proxy_occupancy`.
            Defaults to `None`: the callback does not measure it.
        warn: Function that takes a message. Defaults to `warnings.warn`.

    Attributes:
        health: Dict, the latest results by name without prefix.

    Raises:
        ValueError: If `retrieval` is not a `RetrievalEvaluation`, or stands
            after this callback, or `proxies` is none of those.

    Example:

    ```python
    retrieval = RetrievalEvaluation(embedder, validation_batches)
    health = EmbeddingHealth(retrieval, trainer.get_layer("proxies"))
    trainer.fit(batches, epochs=20, callbacks=[retrieval, health])
    ```
    """

    def __init__(
        self,
        retrieval: RetrievalEvaluation,
        proxies: keras.layers.Layer | Callable[[], Any] | None = None,
        warn: Callable[[str], Any] = warnings.warn,
    ) -> None:
        super().__init__()
        if not isinstance(retrieval, RetrievalEvaluation):
            raise ValueError(
                "`retrieval` of `EmbeddingHealth` must be the "
                "`RetrievalEvaluation` that embeds the images. "
                f"Received: retrieval={retrieval!r}"
            )
        # A layer may make its proxies later.
        holds = proxies is None or callable(proxies)
        if isinstance(proxies, keras.layers.Layer) and proxies.built:
            holds = hasattr(proxies, "proxies")
        require(
            holds,
            "proxies",
            "a layer with the attribute `proxies`, a function or None",
            proxies,
        )
        self.retrieval = retrieval
        self.proxies = proxies
        self.warn = warn
        self.health: dict[str, float] = {}
        self._was_collapsed = False
        self._warned = False

    def on_epoch_end(self, epoch, logs=None):
        if not self.retrieval.is_due(epoch):
            return
        self.health = self.measure()
        if logs is not None:
            for name, value in self.health.items():
                if name not in CONSTANTS:
                    logs[self.retrieval.prefix + name] = value
        self._check(epoch)

    def measure(self) -> dict[str, float]:
        """Measures the latest embeddings; returns results without prefix."""
        if self.retrieval.embeddings is None:
            raise ValueError(
                "`EmbeddingHealth` must stand after its `RetrievalEvaluation` "
                "in the list of callbacks. Received: no embeddings yet"
            )
        return evaluation.embedding_health(
            self.retrieval.embeddings,
            self.retrieval.labels,
            self._proxies(),
            self.retrieval.normalize,
        )

    def _proxies(self) -> np.ndarray | None:
        if self.proxies is None:
            return None
        own = self.proxies
        rows = own.proxies if isinstance(own, keras.layers.Layer) else own()
        values = np.asarray(ops.convert_to_numpy(rows))
        # Each center of a class counts as a proxy.
        return values.reshape(-1, values.shape[-1])

    def _check(self, epoch):
        reason = evaluation.collapse_warning(
            self.health, self.retrieval.normalize
        )
        if reason and self._was_collapsed and not self._warned:
            self._warned = True
            self.warn(
                f"The embeddings have collapsed by epoch {epoch + 1}. {reason} "
                "Lower the learning rate, mine easier negatives, or look for "
                "a loss that only pulls images together."
            )
        self._was_collapsed = reason is not None
