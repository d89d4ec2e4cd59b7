"""Names the regularizers of proxies, as recipes do."""

from keras_dml.regularizers.center_invariance import CenterInvariance
from keras_dml.regularizers.lp_norm import LpNorm
from keras_dml.regularizers.proxies import CenterDistance, ProxyRepulsion
from keras_dml.regularizers.regular_face import RegularFace
from keras_dml.regularizers.zero_mean import ZeroMean

PROXY_REGULARIZERS = {
    "center_distance": CenterDistance,
    "center_invariance": CenterInvariance,
    "lp_norm": LpNorm,
    "proxy_repulsion": ProxyRepulsion,
    "regular_face": RegularFace,
    "zero_mean": ZeroMean,
}
