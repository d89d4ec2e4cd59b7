"""Regularizers of proxies and embeddings."""

from keras_dml.regularizers.center_distance import CenterDistance
from keras_dml.regularizers.center_invariance import CenterInvariance
from keras_dml.regularizers.lp_norm import LpNorm
from keras_dml.regularizers.proxy_repulsion import ProxyRepulsion
from keras_dml.regularizers.regular_face import RegularFace
from keras_dml.regularizers.zero_mean import ZeroMean

__all__ = [
    "CenterDistance",
    "CenterInvariance",
    "LpNorm",
    "ProxyRepulsion",
    "RegularFace",
    "ZeroMean",
]
