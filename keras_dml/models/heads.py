"""The heads: the layers and callbacks that each kind of loss needs.

A loss names its head in the class attribute `takes`. This module alone maps
that name to the layers in front of the loss, the callbacks that it needs, and
whether the head has variables to optimize.
"""

import math

import keras

from keras_dml import callbacks
from keras_dml.errors import UsageError
from keras_dml.layers import (
    ClassBoundaries,
    ManifoldSimilarities,
    Predictor,
    Proxies,
    SampleAwareProxies,
    SampledProxies,
    ScaledLogits,
    TrainingStep,
)
from keras_dml.models.head import Head

# Layers of the heads. Optimizers find their variables by these names; those of
# embeddings follow the settings of the head of the embedder.
OF_EMBEDDINGS = ("head", "moments")
LAYERS = ("proxies", "logits", "boundaries", "predictor")


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


class AlongTheManifold(Head):
    """Gives the loss where random walks from rows to proxies end."""

    name = "manifold_similarities"
    gives = "the output of `ManifoldSimilarities`"
    # As many proxies as in the paper: each stands for a group of classes.
    most_proxies = 50

    def connect(self, embedding, label, num_classes, options):
        layer = ManifoldSimilarities(
            min(num_classes, self.most_proxies), name="proxies"
        )
        return layer(embedding)


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
        AlongTheManifold(),
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
