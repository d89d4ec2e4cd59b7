"""Losses on class labels and logits: pure functions and thin classes."""

from keras_dml.losses.arcface import ArcFace, arcface_loss
from keras_dml.losses.circle import Circle, circle_loss
from keras_dml.losses.contrastive import Contrastive, contrastive_loss
from keras_dml.losses.cosface import CosFace, cosface_loss
from keras_dml.losses.lifted import (
    LiftedStructure,
    lifted_loss,
    lifted_pairs_loss,
)
from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.margin import Margin, margin_loss
from keras_dml.losses.multi_similarity import (
    MultiSimilarity,
    multi_similarity_loss,
)
from keras_dml.losses.n_pair import NPair, n_pair_loss
from keras_dml.losses.nca import NCA, nca_loss
from keras_dml.losses.norm_softmax import NormalizedSoftmax
from keras_dml.losses.nt_xent import NTXent, nt_xent_loss
from keras_dml.losses.on_sampled_classes import OnSampledClasses
from keras_dml.losses.our_loss_1 import OurLoss1
from keras_dml.losses.our_loss_2 import OurLoss2
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.proxy_anchor import ProxyAnchor, proxy_anchor_loss
from keras_dml.losses.proxy_isa import ProxyISA, proxy_isa_loss
from keras_dml.losses.proxynca import ProxyNCA, proxynca_loss
from keras_dml.losses.proxynca_isa import ProxyNCAISA, proxynca_isa_loss
from keras_dml.losses.proxynca_pp import ProxyNCAPlusPlus
from keras_dml.losses.registry import INPUTS, LOSSES, get, input_of
from keras_dml.losses.smooth_ap import SmoothAP, smooth_ap_loss
from keras_dml.losses.soft_triple import SoftTriple, soft_triple_loss
from keras_dml.losses.softmax import Softmax, softmax_loss
from keras_dml.losses.sub_center_arcface import (
    SubCenterArcFace,
    sub_center_arcface_loss,
)
from keras_dml.losses.supcon import SupCon, supcon_loss
from keras_dml.losses.triplet import Triplet, triplet_loss
from keras_dml.losses.weighted_sum import WeightedSum
from keras_dml.losses.with_memory import WithMemory
from keras_dml.ops.sampling import distance_weighted_negatives
from keras_dml.regularizers import ProxyRepulsion

__all__ = [
    "INPUTS",
    "LOSSES",
    "NCA",
    "ArcFace",
    "Circle",
    "Contrastive",
    "CosFace",
    "LiftedStructure",
    "LogitsLoss",
    "Margin",
    "MultiSimilarity",
    "NPair",
    "NTXent",
    "NormalizedSoftmax",
    "OnSampledClasses",
    "OurLoss1",
    "OurLoss2",
    "PairLoss",
    "ProxyAnchor",
    "ProxyISA",
    "ProxyNCA",
    "ProxyNCAISA",
    "ProxyNCAPlusPlus",
    "ProxyRepulsion",
    "SmoothAP",
    "SoftTriple",
    "Softmax",
    "SubCenterArcFace",
    "SupCon",
    "Triplet",
    "WeightedSum",
    "WithMemory",
    "arcface_loss",
    "circle_loss",
    "contrastive_loss",
    "cosface_loss",
    "distance_weighted_negatives",
    "get",
    "input_of",
    "lifted_pairs_loss",
    "lifted_loss",
    "margin_loss",
    "multi_similarity_loss",
    "n_pair_loss",
    "nca_loss",
    "nt_xent_loss",
    "proxy_anchor_loss",
    "proxy_isa_loss",
    "proxynca_isa_loss",
    "proxynca_loss",
    "smooth_ap_loss",
    "soft_triple_loss",
    "softmax_loss",
    "sub_center_arcface_loss",
    "supcon_loss",
    "triplet_loss",
]
