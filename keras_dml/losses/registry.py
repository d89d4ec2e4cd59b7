"""Losses by name."""

import inspect

import keras

from keras_dml.errors import UsageError
from keras_dml.losses.arc_face import ArcFace
from keras_dml.losses.circle import Circle
from keras_dml.losses.contrastive import Contrastive
from keras_dml.losses.cos_face import CosFace
from keras_dml.losses.lifted_structure import LiftedStructure
from keras_dml.losses.margin import Margin
from keras_dml.losses.multi_similarity import MultiSimilarity
from keras_dml.losses.n_pair import NPair
from keras_dml.losses.normalized_softmax import NormalizedSoftmax
from keras_dml.losses.nt_xent import NTXent
from keras_dml.losses.our_loss_1 import OurLoss1
from keras_dml.losses.our_loss_2 import OurLoss2
from keras_dml.losses.proxy_anchor import ProxyAnchor
from keras_dml.losses.proxy_isa import ProxyISA
from keras_dml.losses.proxy_nca import ProxyNCA
from keras_dml.losses.proxy_nca_plus_plus import ProxyNCAPlusPlus
from keras_dml.losses.smooth_ap import SmoothAP
from keras_dml.losses.soft_triple import SoftTriple
from keras_dml.losses.softmax import Softmax
from keras_dml.losses.sub_centre_arc_face import SubCentreArcFace
from keras_dml.losses.sup_con import SupCon
from keras_dml.losses.triplet import Triplet
from keras_dml.naming import nearest

LOSSES: dict[str, type[keras.losses.Loss]] = {
    "arc_face": ArcFace,
    "circle": Circle,
    "contrastive": Contrastive,
    "cos_face": CosFace,
    "lifted_structure": LiftedStructure,
    "margin": Margin,
    "multi_similarity": MultiSimilarity,
    "n_pair": NPair,
    "normalized_softmax": NormalizedSoftmax,
    "nt_xent": NTXent,
    "our_loss_1": OurLoss1,
    "our_loss_2": OurLoss2,
    "proxy_anchor": ProxyAnchor,
    "proxy_isa": ProxyISA,
    "proxy_nca": ProxyNCA,
    "proxy_nca_plus_plus": ProxyNCAPlusPlus,
    "smooth_ap": SmoothAP,
    "soft_triple": SoftTriple,
    "softmax": Softmax,
    "sub_centre_arc_face": SubCentreArcFace,
    "sup_con": SupCon,
    "triplet": Triplet,
}


def get(name: str, **arguments) -> keras.losses.Loss:
    """Makes a loss by its name.

    Args:
        name: The snake_case name of a loss class, a key of `LOSSES`.
        **arguments: Arguments of the loss.

    Returns:
        The loss.

    Raises:
        UsageError: If the name or an argument is unknown.

    Example:

    >>> get("proxy_nca").name
    'proxy_nca'
    """
    if name not in LOSSES:
        raise UsageError(
            f"Unknown loss {name!r}. Did you mean {nearest(name, LOSSES)}? "
            f"There are: {', '.join(LOSSES)}. Received: name={name!r}"
        )
    known = list(inspect.signature(LOSSES[name]).parameters)
    for argument in arguments:
        if argument not in known:
            raise UsageError(
                f"The loss {name!r} has no argument {argument!r}. Did you "
                f"mean {nearest(argument, known)}? It takes: "
                f"{', '.join(known)}. Received: {argument}="
                f"{arguments[argument]!r}"
            )
    return LOSSES[name](**arguments)
