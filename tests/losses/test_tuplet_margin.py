import numpy as np

from keras_dml import losses

X = np.random.default_rng(0).standard_normal((8, 4))
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")


def test_without_a_margin_it_is_nt_xent_of_the_inverse_scale():
    loss = losses.TupletMargin(margin=0.0, scale=10.0, dtype="float64")
    plain = losses.NTXent(temperature=0.1, dtype="float64")
    np.testing.assert_allclose(loss(LABELS, X), plain(LABELS, X), rtol=1e-9)


def test_the_margin_makes_positives_look_nearer():
    values = [
        float(losses.TupletMargin(margin=margin)(LABELS, X))
        for margin in (0.0, 0.1, 0.3)
    ]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]
