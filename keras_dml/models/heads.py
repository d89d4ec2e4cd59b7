"""The heads: the layers and callbacks that each kind of loss needs.

A loss names its head in the class attribute `takes`. This module alone maps
that name to the layers in front of the loss, the callbacks that it needs,
whether the head has variables to optimize, and the options that it rejects.
"""

import abc
import math
from collections.abc import Callable, Iterable
from typing import Any

import keras

from keras_dml import callbacks
from keras_dml.errors import UsageError
from keras_dml.layers import (
    ClassBoundaries,
    Predictor,
    Proxies,
    SampleAwareProxies,
    SampledProxies,
    ScaledLogits,
    TrainingStep,
)
from keras_dml.models.head_options import HeadOptions

# Layers of the heads. Optimizers find their variables by these names; those of
# embeddings follow the settings of the head of the embedder.
OF_EMBEDDINGS = ("head", "moments")
LAYERS = ("proxies", "logits", "boundaries", "predictor")


class Head(abc.ABC):
    """Base of the heads.

    Attributes:
        name: The value of `takes` of the losses that need this head.
        gives: Description of the input of the loss, for error messages.
        compares_rows: Whether the loss compares the rows of a batch with each
            other: it then needs batches with positive pairs, and the rows of
            all replicas.
        has_variables: Whether the head has trainable variables.
        has_class_columns: Whether the loss gets one column for each class,
            so that a sample of the classes can replace all of them.

    Example:

    >>> from keras_dml.losses import ProxyAnchor
    >>> from keras_dml.models import get_head
    >>> get_head(ProxyAnchor.takes).has_class_columns
    True
    """

    name = ""
    gives = ""
    compares_rows = False
    has_variables = True
    has_class_columns = False

    @abc.abstractmethod
    def connect(
        self,
        embedding: keras.KerasTensor,
        label: keras.KerasTensor,
        num_classes: int,
        options: HeadOptions,
    ) -> keras.KerasTensor:
        """Applies the layers of the head to an embedding.

        Args:
            embedding: Float32 `(batch, dim)`.
            label: Int32 `(batch,)`.
            num_classes: Number of classes in training.
            options: `HeadOptions`.

        Returns:
            The `y_pred` of the loss.
        """

    def check(self, options: HeadOptions, policy: str) -> None:
        """Raises if the head cannot use an option.

        Args:
            options: `HeadOptions`.
            policy: Dtype policy of the trainer.

        Raises:
            UsageError: If the head cannot use an option.
        """
        for layer in ("memory", "moments"):
            if getattr(options, layer) and self.name != "embeddings":
                raise UsageError(
                    f"`{layer}` needs a loss that takes embeddings. Received: "
                    f"{layer} and a loss that takes {self.name}"
                )
        others = {
            "memory": options.memory,
            "prefixes": options.prefixes,
            "distillation": options.distillation,
        }
        for name, other in others.items():
            if other and options.moments is not None:
                raise UsageError(
                    f"`moments` and `{name}` exclude each other. Received: "
                    "both. Leave one out."
                )
        if options.sample is not None:
            self._check_sample(options, policy)

    def check_replicas(self, loss: str, replicas: int) -> None:
        """Raises if a loss of another package would see one replica only.

        Args:
            loss: Name of the loss.
            replicas: Number of replicas.

        Raises:
            UsageError: If the loss compares rows on several replicas.
        """
        if replicas > 1 and self.compares_rows:
            raise UsageError(
                f"The loss {loss!r} compares the rows of each device only "
                "with each other, so that it would depend on the number of "
                f"devices. Received: {replicas} devices. Use a loss of "
                "keras_dml or one device."
            )

    def callbacks(
        self,
        labels: Callable[[int], Iterable[Any]],
        warn: Callable[[str], Any],
    ) -> list[keras.callbacks.Callback]:
        """Makes the callbacks that training with this head needs.

        Args:
            labels: Function of the epoch that returns the labels of its
                batches.
            warn: Function that takes a message.
        """
        if not self.compares_rows:
            return []
        return [callbacks.BatchCheck(labels, warn=warn)]

    def proxies(self, trainer: keras.Model) -> keras.layers.Layer | None:
        """Returns the layer whose proxies show whether classes collapse."""
        return trainer.get_layer("proxies") if self.has_class_columns else None

    def _check_sample(self, options, policy):
        """Raises for options that need the proxies of all classes in a step."""
        regularizer = options.proxies.get("regularizer")
        needs = {
            "a loss on logits or similarities": self.has_class_columns,
            "`regularizer=None`": regularizer is None,
            "`logits_bias=False`": not options.logits_bias,
            "another `policy` than mixed_float16, such as mixed_bfloat16": (
                policy != "mixed_float16"
            ),
        }
        for need, met in needs.items():
            if not met:
                raise UsageError(
                    f"`sample` needs {need}: a step sees the proxies of its "
                    f"sample only. Received: sample={options.sample}, "
                    f"regularizer={regularizer}, "
                    f"logits_bias={options.logits_bias}, policy={policy!r}, "
                    f"a loss that takes {self.name}"
                )


class Similarities(Head):
    """Gives the loss the similarities of rows to the proxies of classes.

    The shape is `(batch, num_classes)`, or `(batch, num_classes, centers)`
    with several centers, which the loss combines before it scales. With
    `sample`, only that share of the classes has columns.
    """

    name = "similarities"
    gives = "similarities of rows and proxies, which the loss scales"
    has_class_columns = True

    def connect(self, embedding, label, num_classes, options):
        if options.sample is None:
            layer = Proxies(num_classes, **options.proxies, name="proxies")
            return layer(embedding)
        share = math.ceil(options.sample * num_classes)
        arguments = dict(options.proxies)
        arguments.pop("regularizer", None)
        layer = SampledProxies(
            num_classes,
            min(max(share, options.sample_at_least), num_classes),
            **arguments,
            name="proxies",
        )
        return layer([embedding, label])


class Logits(Similarities):
    """Gives the loss logits: similarities times a scale, plus a bias.

    With several centers it gives similarities without scale and bias.
    """

    name = "logits"
    gives = "logits of every class, scaled by the layer `ScaledLogits`"

    def connect(self, embedding, label, num_classes, options):
        similarity = super().connect(embedding, label, num_classes, options)
        if len(similarity.shape) == 3:
            return similarity
        return ScaledLogits(options.scale, options.logits_bias, name="logits")(
            similarity
        )


class ProductsAndLengths(Head):
    """Gives the loss inner products with the proxies, and lengths."""

    name = "products_and_lengths"
    gives = "the output of `Proxies` with `lengths=True`"

    def connect(self, embedding, label, num_classes, options):
        plain = {"metric": "dot", "unit_proxies": False, "lengths": True}
        arguments = {**plain, **options.proxies}
        return Proxies(num_classes, **arguments, name="proxies")(embedding)


class WeightedSimilarities(Head):
    """Gives the loss exponents, weighted by how informative a row is."""

    name = "weighted_similarities"
    gives = "the output of `SampleAwareProxies`"

    def connect(self, embedding, label, num_classes, options):
        arguments = dict(options.sample_aware)
        if "initializer" in options.proxies:
            arguments["initializer"] = options.proxies["initializer"]
        try:
            layer = SampleAwareProxies(num_classes, **arguments, name="proxies")
        except (TypeError, ValueError) as error:
            raise UsageError(f"`sample_aware`: {error}") from error
        return layer([embedding, label])

    def callbacks(self, labels, warn):
        return [callbacks.CountEpochs()]


class Embeddings(Head):
    """Gives the loss the embeddings; a memory and the step add a column."""

    name = "embeddings"
    gives = "embeddings, which the loss normalizes if it needs to"
    compares_rows = True
    has_variables = False

    def connect(self, embedding, label, num_classes, options):
        if options.memory is not None:
            embedding = options.memory([embedding, label])
        return (
            TrainingStep(name="step")(embedding) if options.step else embedding
        )


class UnitEmbeddings(Embeddings):
    """Gives the loss the embeddings scaled to length 1."""

    name = "unit_embeddings"
    gives = "embeddings of length 1, for a loss that does not normalize"

    def connect(self, embedding, label, num_classes, options):
        layer = keras.layers.UnitNormalization(dtype="float32", name="unit")
        return layer(embedding)


class EmbeddingsAndBoundaries(Embeddings):
    """Gives the loss the embeddings, the class boundaries and the step."""

    name = "embeddings_and_boundaries"
    gives = "the output of `ClassBoundaries`"
    has_variables = True

    def connect(self, embedding, label, num_classes, options):
        layer = ClassBoundaries(
            num_classes, initial=options.boundary, name="boundaries"
        )
        return layer([embedding, label])


class Predictions(Embeddings):
    """Gives the loss a prediction of another view, and the embeddings."""

    name = "predictions"
    gives = "the output of `Predictor`"
    has_variables = True

    def connect(self, embedding, label, num_classes, options):
        return Predictor(name="predictor")(embedding)


HEADS: dict[str, Head] = {
    head.name: head
    for head in (
        Logits(),
        Similarities(),
        ProductsAndLengths(),
        WeightedSimilarities(),
        Embeddings(),
        UnitEmbeddings(),
        EmbeddingsAndBoundaries(),
        Predictions(),
    )
}


def get_head(name: str | None) -> Head:
    """Returns the head of a kind of loss.

    Args:
        name: The value of `takes` of the loss.

    Raises:
        UsageError: If no head has that name.

    Example:

    >>> get_head("similarities").has_class_columns
    True
    """
    if name not in HEADS:
        known = "; ".join(
            f"`{one.name}`, {one.gives}" for one in HEADS.values()
        )
        raise UsageError(
            "`takes` must say what the loss takes, one of: "
            f"{known}. Received: takes={name!r}"
        )
    return HEADS[name]
