"""Losses on class labels and logits: pure functions and thin classes."""

from keras_dml.losses.logits_loss import LogitsLoss
from keras_dml.losses.normalized_softmax import NormalizedSoftmax
from keras_dml.losses.proxy_nca import ProxyNCA, proxy_nca_loss
from keras_dml.losses.proxy_nca_plus_plus import ProxyNCAPlusPlus
from keras_dml.losses.registry import LOSSES, get
from keras_dml.losses.softmax import Softmax, softmax_cross_entropy
from keras_dml.losses.weighted_sum import WeightedSum

__all__ = [
    "LOSSES",
    "LogitsLoss",
    "NormalizedSoftmax",
    "ProxyNCA",
    "ProxyNCAPlusPlus",
    "Softmax",
    "WeightedSum",
    "get",
    "proxy_nca_loss",
    "softmax_cross_entropy",
]
