"""Losses by name."""

import importlib
import inspect

import keras

from keras_dml import former
from keras_dml.errors import UsageError
from keras_dml.losses.arcface import ArcFace
from keras_dml.losses.circle import Circle
from keras_dml.losses.contrastive import Contrastive
from keras_dml.losses.cosface import CosFace
from keras_dml.losses.lifted import LiftedStructure
from keras_dml.losses.margin import Margin
from keras_dml.losses.multi_similarity import MultiSimilarity
from keras_dml.losses.n_pair import NPair
from keras_dml.losses.nca import NCA
from keras_dml.losses.norm_softmax import NormalizedSoftmax
from keras_dml.losses.nt_xent import NTXent
from keras_dml.losses.our_loss_1 import OurLoss1
from keras_dml.losses.our_loss_2 import OurLoss2
from keras_dml.losses.proxy_anchor import ProxyAnchor
from keras_dml.losses.proxy_isa import ProxyISA
from keras_dml.losses.proxynca import ProxyNCA
from keras_dml.losses.proxynca_isa import ProxyNCAISA
from keras_dml.losses.proxynca_pp import ProxyNCAPlusPlus
from keras_dml.losses.smooth_ap import SmoothAP
from keras_dml.losses.soft_triple import SoftTriple
from keras_dml.losses.softmax import Softmax
from keras_dml.losses.sub_center_arcface import SubCenterArcFace
from keras_dml.losses.supcon import SupCon
from keras_dml.losses.triplet import Triplet
from keras_dml.naming import nearest

LOSSES: dict[str, type[keras.losses.Loss]] = {
    "arcface": ArcFace,
    "circle": Circle,
    "contrastive": Contrastive,
    "cosface": CosFace,
    "lifted": LiftedStructure,
    "margin": Margin,
    "multi_similarity": MultiSimilarity,
    "n_pair": NPair,
    "nca": NCA,
    "norm_softmax": NormalizedSoftmax,
    "nt_xent": NTXent,
    "our_loss_1": OurLoss1,
    "our_loss_2": OurLoss2,
    "proxy_anchor": ProxyAnchor,
    "proxy_isa": ProxyISA,
    "proxynca": ProxyNCA,
    "proxynca_isa": ProxyNCAISA,
    "proxynca_pp": ProxyNCAPlusPlus,
    "smooth_ap": SmoothAP,
    "soft_triple": SoftTriple,
    "softmax": Softmax,
    "sub_center_arcface": SubCenterArcFace,
    "supcon": SupCon,
    "triplet": Triplet,
}

# What a loss may take as `y_pred`, the attribute `takes` of its class.
INPUTS = {
    "logits": "of every class, scaled by the layer `ScaledLogits`",
    "similarities": "of rows and proxies, which the loss scales by itself",
    "weighted_similarities": "the output of `SampleAwareProxies`",
    "embeddings": "which the loss normalizes if it wants to",
    "unit_embeddings": "of length 1, for a loss that does not normalize",
    "embeddings_and_boundaries": "the output of `ClassBoundaries`",
}


def get(name: str, **arguments) -> keras.losses.Loss:
    """Makes a loss by its name.

    Args:
        name: The snake_case name of a loss class, a key of `LOSSES`, or the
            path of any other subclass of `keras.losses.Loss`, such as
            `"keras.losses.Circle"` or `"my_package.losses.MyLoss"`.
        **arguments: Arguments of the loss.

    Returns:
        The loss.

    Raises:
        UsageError: If the name or an argument is unknown.

    Example:

    >>> get("proxynca").name
    'proxynca'
    """
    loss = _class_of(name)
    known = list(inspect.signature(loss).parameters)
    for argument in arguments:
        if argument not in known:
            raise UsageError(
                f"The loss {name!r} has no argument {argument!r}. Did you "
                f"mean {nearest(argument, known)}? It takes: "
                f"{', '.join(known)}. Received: {argument}="
                f"{arguments[argument]!r}"
            )
    return loss(**arguments)


def input_of(name: str, takes: str | None = None) -> str:
    """What a loss takes as `y_pred`.

    Args:
        name: As for `get`.
        takes: A key of `INPUTS`, for a loss of another package, which does
            not say it by itself. Defaults to `None`.

    Returns:
        A key of `INPUTS`.

    Raises:
        UsageError: If the name is unknown, or what the loss takes.

    Example:

    >>> input_of("proxy_anchor")
    'similarities'
    """
    known = getattr(_class_of(name), "takes", None)
    if known is not None and takes in (None, known):
        return known
    if known is not None:
        raise UsageError(
            f"The loss {name!r} takes {known}, whatever `takes` says. "
            f"Received: takes={takes!r}. Leave it out."
        )
    if takes not in INPUTS:
        choices = "; ".join(f"`{key}`, {text}" for key, text in INPUTS.items())
        raise UsageError(
            f"`takes` must say what the loss {name!r} takes: {choices}. "
            f"Received: takes={takes!r}"
        )
    return takes


def _class_of(name: str) -> type[keras.losses.Loss]:
    name = former.LOSSES.get(name, name)
    if name in LOSSES:
        return LOSSES[name]
    module, dot, attribute = name.rpartition(".")
    if not dot:
        raise UsageError(
            f"Unknown loss {name!r}. Did you mean {nearest(name, LOSSES)}? "
            f"There are: {', '.join(LOSSES)}. Received: name={name!r}"
        )
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"The loss {name!r} cannot be imported: {error}. Give the path of "
            "a class, such as `keras.losses.Circle`."
        ) from error
    if not (inspect.isclass(found) and issubclass(found, keras.losses.Loss)):
        raise UsageError(
            f"{name!r} must be a subclass of `keras.losses.Loss`. "
            f"Received: {found!r}"
        )
    return found
