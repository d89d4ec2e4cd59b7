"""Losses on class labels and logits: pure functions and thin classes."""

from keras_dml.losses.arc_face import ArcFace, arc_face_loss
from keras_dml.losses.contrastive import Contrastive, contrastive_loss
from keras_dml.losses.cos_face import CosFace, cos_face_loss
from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.multi_similarity import (
    MultiSimilarity,
    multi_similarity_loss,
)
from keras_dml.losses.normalized_softmax import NormalizedSoftmax
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.proxy_anchor import ProxyAnchor, proxy_anchor_loss
from keras_dml.losses.proxy_nca import ProxyNCA, proxy_nca_loss
from keras_dml.losses.proxy_nca_plus_plus import ProxyNCAPlusPlus
from keras_dml.losses.registry import LOSSES, get
from keras_dml.losses.soft_triple import SoftTriple, soft_triple_loss
from keras_dml.losses.softmax import Softmax, softmax_cross_entropy
from keras_dml.losses.sub_centre_arc_face import (
    SubCentreArcFace,
    sub_centre_arc_face_loss,
)
from keras_dml.losses.triplet import Triplet, triplet_loss
from keras_dml.losses.weighted_sum import WeightedSum

__all__ = [
    "LOSSES",
    "ArcFace",
    "Contrastive",
    "CosFace",
    "LogitsLoss",
    "MultiSimilarity",
    "NormalizedSoftmax",
    "PairLoss",
    "ProxyAnchor",
    "ProxyNCA",
    "ProxyNCAPlusPlus",
    "SoftTriple",
    "Softmax",
    "SubCentreArcFace",
    "Triplet",
    "WeightedSum",
    "arc_face_loss",
    "contrastive_loss",
    "cos_face_loss",
    "get",
    "multi_similarity_loss",
    "proxy_anchor_loss",
    "proxy_nca_loss",
    "soft_triple_loss",
    "softmax_cross_entropy",
    "sub_centre_arc_face_loss",
    "triplet_loss",
]
