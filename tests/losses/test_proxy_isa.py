import numpy as np
import pytest

from keras_dml import losses
from tests.losses.cases import BATCHES, LABELS, cosines
from tests.losses.naive_weighted_exponents import join


@pytest.mark.parametrize("batch", BATCHES)
def test_all_weights_one_is_proxy_anchor(batch):
    labels = BATCHES[batch]
    s = cosines(labels)
    isa = losses.ProxyISA(dtype="float64")(labels, join(labels, s, 1.0 + 0 * s))
    anchor = losses.ProxyAnchor(dtype="float64")(labels, s)
    # The divisor of Proxy-ISA leaves out a class that has no other rows.
    factor = 4 / 3 if len(set(labels.tolist())) == 1 else 1
    repelled = anchor - losses.OurLoss1(dtype="float64")(labels, s)
    np.testing.assert_allclose(
        isa, anchor + (factor - 1) * repelled, rtol=1e-10
    )


@pytest.mark.parametrize("shape", [(8, 4), (8, 3, 4)])
def test_another_shape_is_refused(shape):
    message = r"'proxy_isa' must be the output of `SampleAwareProxies`.*\(8, "
    with pytest.raises(ValueError, match=message):
        losses.ProxyISA()(LABELS, np.ones(shape, "float32"))
