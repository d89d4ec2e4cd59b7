"""What the losses on pairs promise beyond the laws of every loss."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses, miners
from tests.conformance import roundtrip
from tests.losses import naive_pair_losses as naive
from tests.losses.cases import PAIR_CASES
from tests.losses.steps import value_and_gradient

RNG = np.random.default_rng(0)
EACH = pytest.mark.parametrize("case", PAIR_CASES)
X = RNG.standard_normal((8, 4))
# Two rows have no partner.
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")


@EACH
def test_a_matrix_of_pairs_may_stand_for_the_labels(case):
    loss = PAIR_CASES[case].make()
    same = LABELS[:, None] == LABELS[None, :]
    wanted, wanted_gradient = value_and_gradient(loss, LABELS, X)
    for matrix in (same, same.astype("int32"), same & ~np.eye(8, dtype=bool)):
        value, gradient = value_and_gradient(loss, matrix, X)
        np.testing.assert_array_equal(value, wanted)
        np.testing.assert_array_equal(gradient, wanted_gradient)


@EACH
def test_rows_of_several_labels(case):
    tags = RNG.random((8, 5)) < 0.3
    share = tags.astype(int) @ tags.T.astype(int) > 0
    other = ~np.eye(8, dtype=bool)
    arguments = PAIR_CASES[case].arguments
    loop = getattr(naive, PAIR_CASES[case].make().name)
    wanted = loop(share & other, ~share & other, X, **arguments)
    value = PAIR_CASES[case].make(dtype="float64")(share, X)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)


@EACH
def test_normalizing_is_the_same_as_unit_embeddings(case):
    loss = PAIR_CASES[case].make(dtype="float64")
    if loss.normalize:
        np.testing.assert_allclose(
            loss(LABELS, 3.0 * X), loss(LABELS, naive.unit(X)), rtol=1e-9
        )
    else:
        assert abs(loss(LABELS, 3.0 * X) - loss(LABELS, X)) > 1e-3


def test_a_matrix_of_pairs_in_fit_and_under_replicas(strategy):
    same = (LABELS[:, None] == LABELS[None, :]).astype("int32")

    def run():
        keras.utils.set_random_seed(0)
        x = keras.Input((4,))
        model = keras.Model(x, keras.layers.Dense(3)(x))
        model.compile("sgd", losses.MultiSimilarity())
        data = tf.data.Dataset.from_tensors((X.astype("float32"), same))
        model.fit(data, epochs=2, verbose=0, shuffle=False)
        return model.get_weights()

    wanted = run()
    with strategy.scope():
        actual = run()
    for a, w in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(a, w, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("label", [2**24, 2**24 + 1, -(2**24), 2**31 - 1])
def test_classes_that_float32_merges_are_refused(label):
    loss, labels = losses.NTXent(), np.array([0, 0, label, label])
    wanted = r"'nt_xent' must lie strictly between -2\*\*24 and 2\*\*24"
    message = f"{wanted}.*label {label} in row 2.*np.unique"
    for given in (labels, labels[:, None], tf.constant(labels, "int32")):
        with pytest.raises(ValueError, match=message):
            loss(given, X[:4])
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        tf.function(loss)(tf.constant(labels), X[:4])
    assert f"Received: label] [{label}] [in row] [2]" in str(error.value)
    # No step that XLA compiles can raise.
    compiled = tf.function(loss, jit_compile=True)
    assert np.isnan(compiled(tf.constant(labels), X[:4]))


def test_classes_below_the_limit_of_float32_are_told_apart():
    low, high = np.array([0, 0, 1, 1]), np.array([2, 2, 1, 1]) - 2**24
    loss = losses.NTXent()
    for compiled in (loss, tf.function(loss)):
        for labels in (high, -high, high.astype("int32")):
            wanted = compiled(tf.constant(low), X[:4])
            np.testing.assert_array_equal(
                compiled(tf.constant(labels), X[:4]), wanted
            )
    for dtype in ("int8", "uint8", "uint64"):
        labels = tf.constant(low, dtype)
        np.testing.assert_array_equal(tf.function(loss)(labels, X[:4]), wanted)


def test_merged_classes_are_refused_in_fit():
    x = keras.Input((4,))
    model = keras.Model(x, keras.layers.Dense(3)(x))
    model.compile("sgd", losses.NTXent(), jit_compile=False)
    labels = np.array([0, 0, 1, 1]) + 2**24
    with pytest.raises(tf.errors.InvalidArgumentError, match="np.unique"):
        model.evaluate(X[:4], labels, verbose=0)


def test_a_matrix_of_pairs_may_hold_any_integers():
    same = LABELS[:, None] == LABELS[None, :]
    loss = losses.NTXent()
    np.testing.assert_array_equal(
        loss(same * (2**24 + 1), X), loss(same.astype("int32"), X)
    )


def test_float_labels_are_refused_in_fit():
    x = keras.Input((4,))
    model = keras.Model(x, keras.layers.Dense(3)(x))
    model.compile("sgd", losses.MultiSimilarity())
    with pytest.raises(ValueError, match="must be integer class labels"):
        model.fit(X, LABELS.astype("float32"), verbose=0)


@pytest.mark.parametrize(
    "cls, arguments, message",
    [
        (losses.MultiSimilarity, {"alpha": 0}, "`alpha`.*positive.*alpha=0"),
        (losses.Contrastive, {"form": "cosine"}, "`form`.*form='cosine'"),
        (losses.Contrastive, {"power": -1}, "`power`.*positive.*power=-1"),
        (losses.Triplet, {"mining": "semihard"}, "`mining`.*mean 'semi_hard'"),
        (losses.Triplet, {"distance": "l0"}, "`distance`.*distance='l0'"),
        (losses.Triplet, {"average": "mean"}, "`average`.*average='mean'"),
        (losses.NTXent, {"average": {"lo": 1}}, "`average`.*dict of low, high"),
        (losses.NTXent, {"average": {"low": "1"}}, "`low`.*finite.*low='1'"),
        (
            losses.NTXent,
            {"average": {"class_weights": [1.0, -1.0]}},
            "`class_weights`.*at least zero",
        ),
        (losses.Angular, {"average": "all"}, "`average`.*None for Angular"),
        (losses.Triplet, {"soft": True}, "`soft=True` needs.*semi_hard"),
        (losses.Triplet, {"swap": True}, "`swap=True` needs.*semi_hard"),
        (
            losses.Triplet,
            {"swap": True, "mining": "hard"},
            "`swap=True` needs.*'hard'",
        ),
        (losses.LiftedStructure, {"form": "tfa"}, "`form`.*form='tfa'"),
        (
            losses.LiftedStructure,
            {"form": "pairs", "hinge": False},
            "`form='pairs'` has no.*hinge=False",
        ),
        (
            losses.LiftedStructure,
            {"form": "distance", "similarity": "cosine"},
            "`similarity`.*None where `form` is given.*'cosine'.*'distance'",
        ),
        (losses.NPair, {"l2": float("nan")}, "`l2`.*finite.*l2=nan"),
        (losses.SupCon, {"temperature": 0.0}, "`temperature`.*positive"),
        (losses.SmoothAP, {"temperature": 0}, "`temperature`.*positive"),
        (losses.Circle, {"gamma": 0}, "`gamma`.*positive"),
        (losses.Circle, {"constant_weights": 1}, "`constant_weights`.*True or"),
        (losses.NCA, {"temperature": 0}, "`temperature`.*positive"),
        (losses.NTXent, {"temperature": -1}, "`temperature`.*positive"),
        (losses.Angular, {"angle": 40}, "`angle`.*angle=40.*radians"),
        (losses.FastAP, {"bins": 0}, "`bins`.*bins=0"),
        (losses.DynamicSoftMargin, {"bins": 0}, "`bins`.*bins=0"),
        (losses.Instance, {"scale": 0}, "`scale`.*positive"),
        (losses.Histogram, {"bins": 1.5}, "`bins`.*bins=1.5"),
        (
            losses.IntraPairVariance,
            {"positive_tolerance": float("inf")},
            "`positive_tolerance`.*finite",
        ),
        (losses.PNP, {"penalty": "Ds"}, "`penalty`.*penalty='Ds'"),
        (losses.PNP, {"parameter": 0}, "`parameter`.*positive"),
        *(
            (
                losses.PNP,
                {"penalty": penalty, "parameter": 2.0},
                f"`parameter` belongs to.*ib and dq.*'{penalty}'",
            )
            for penalty in ("o", "iu", "ds")
        ),
        (losses.RankedList, {"boundary": 0}, "`boundary`.*positive"),
        (losses.RankedList, {"balance": 1.1}, "`balance`.*balance=1.1"),
        (losses.RankedList, {"negative_scale": -1}, "`negative_scale`.*-1"),
        *(
            (losses.RecallSurrogate, {"k": k}, "`k`.*1 to 100 integers")
            for k in ([], 0, [1, 0], [1.0], [True], "1", 10**7, [1] * 101)
        ),
        *(
            (
                cls,
                {argument: "euclidean", "similarity": "l1"},
                f"`similarity`.*'euclidean' or None where `{argument}`.*'l1'",
            )
            for cls, argument in (
                (losses.Contrastive, "form"),
                (losses.Triplet, "distance"),
            )
        ),
        (losses.Contrastive, {"similarity": "l0.5"}, "`similarity`.*'l0.5'"),
        (losses.Contrastive, {"similarity": 2}, "`similarity`.*similarity=2"),
        (
            losses.Contrastive,
            {"similarity": "dot"},
            "`normalize`.*False where `similarity` is 'dot'",
        ),
        (
            losses.Contrastive,
            {"similarity": "l1", "form": "euclidean"},
            "`similarity`.*None where `form` is given.*'euclidean'",
        ),
        (losses.Circle, {"similarity": "l1"}, "`similarity`.*None for Circle"),
        (losses.FastAP, {"similarity": "l1"}, "`similarity`.*None for FastAP"),
        (losses.SignalToNoise, {"zero_mean": -1}, "`zero_mean`.*-1"),
        (losses.TupletMargin, {"margin": 5.73}, "`margin`.*radians"),
        (losses.VICReg, {"covariance": -1}, "`covariance`.*-1"),
        (losses.VICReg, {"epsilon": 0}, "`epsilon`.*positive"),
        (losses.BarlowTwins, {"redundancy": -1}, "`redundancy`.*-1"),
        *(
            (cls, {"miner": "batch_hard"}, "`miner`.*chooses its pairs")
            for cls in (
                losses.VICReg,
                losses.BarlowTwins,
                losses.SimSiam,
            )
        ),
    ],
)
def test_refused_arguments(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)


@pytest.mark.parametrize(
    "cls",
    [
        losses.Angular,
        losses.DynamicSoftMargin,
        losses.FastAP,
        losses.Histogram,
        losses.Instance,
        losses.SimSiam,
        losses.TupletMargin,
    ],
)
def test_a_loss_of_cosines_takes_rows_of_length_one_only(cls):
    message = f"`normalize` of {cls.__name__}.*length 1.*normalize=False"
    with pytest.raises(ValueError, match=message):
        cls(normalize=False)


def test_semi_hard_takes_the_nearest_of_the_farther_negatives():
    """Positive at 0.5; negatives at 0.5 (not farther), 0.55, 0.58 and 0.9."""
    distance = np.array([[0.0, 0.5, 0.5, 0.55, 0.58, 0.9]])
    positive = np.array([[False, True] + 4 * [False]])
    negative = ~positive & (distance > 0)
    for mining, wanted in (
        ("semi_hard", 0.05),
        ("facenet", 0.05),
        ("all_semi_hard", (0.05 + 0.02) / 2),
        ("hard", 0.1),
    ):
        value = losses.triplet_loss(
            distance, positive, negative, margin=0.1, mining=mining
        )
        np.testing.assert_allclose(value, [wanted], rtol=1e-6)


@pytest.mark.parametrize("cls", [losses.Triplet, losses.HierarchicalTriplet])
@pytest.mark.parametrize("mining", ["semi_hard", "facenet", "all_semi_hard"])
def test_weights_of_one_change_no_triplets(cls, mining):
    """Pairs without a triplet count with and without weights."""
    plain, weighted = (
        cls(mining=mining, average=average, dtype="float64")
        for average in ("all", {"class_weights": [1, 1, 1, 1]})
    )
    np.testing.assert_allclose(weighted(LABELS, X), plain(LABELS, X), rtol=1e-9)


def test_only_the_facenet_rule_falls_back_to_the_farthest_negative():
    distance = np.array([[0.0, 0.5, 0.1, 0.4]])
    positive = np.array([[False, True, False, False]])
    negative = np.array([[False, False, True, True]])
    for mining, wanted in (("semi_hard", 0.0), ("facenet", 0.5 - 0.4 + 0.1)):
        value = losses.triplet_loss(
            distance, positive, negative, margin=0.1, mining=mining
        )
        np.testing.assert_allclose(value, [wanted], rtol=1e-6)


def test_all_triplets():
    """Two positives at 0.3 and 0.6, two negatives at 0.5 and 0.9."""
    distance = np.array([[0.0, 0.3, 0.6, 0.5, 0.9]])
    positive = np.array([[False, True, True, False, False]])
    negative = np.array([[False, False, False, True, True]])
    for average, number in (("non_zero", 2), ("all", 4)):
        value = losses.triplet_loss(
            distance,
            positive,
            negative,
            margin=0.25,
            mining="all",
            average=average,
        )
        np.testing.assert_allclose(
            value, [(0.05 + 0.35) / number], rtol=1e-6, err_msg=average
        )


def test_swap_takes_the_negative_that_is_near_the_positive():
    """On a line: the anchor at 0, the positive at 1, the negative at 1.5."""
    x = np.array([[0.0], [1.0], [1.5]])
    labels = np.array([0, 0, 1], "int32")
    arguments = {
        "margin": 0.0,
        "mining": "all",
        "distance": "euclidean",
        "normalize": False,
        "average": "all",
    }
    # The triplets (0, 1, 1.5) and (1, 0, 1.5).
    for swap, wanted in ((False, (0 + 0.5) / 2), (True, (0.5 + 0.5) / 2)):
        value = losses.Triplet(swap=swap, **arguments)(labels, x)
        np.testing.assert_allclose(value, wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        losses.Triplet(mining="semi_hard"),
        losses.Triplet(mining="facenet"),
        losses.Triplet(mining="all_semi_hard"),
        losses.Triplet(mining="all", swap=True),
        losses.SmoothAP(),
        losses.PNP(),
        losses.RecallSurrogate(),
        losses.Angular(),
        losses.DynamicSoftMargin(),
        losses.Contrastive(similarity="l1"),
        losses.MultiSimilarity(similarity="l2.5"),
    ],
)
def test_no_cube_is_allocated(loss):
    """Compiled, with 96 rows in classes of four."""
    rows = 96
    labels = tf.range(rows) // 4
    x = tf.constant(RNG.standard_normal((rows, 8)), "float32")

    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(labels, x)
        return value, tape.gradient(value, x)

    program = step.experimental_get_compiler_ir(x)(stage="optimized_hlo")
    sizes = [
        np.prod([int(n) for n in shape.split(",")])
        for shape in re.findall(r"(?:f32|s32|pred)\[([\d,]+)\]", program)
    ]
    assert rows**2 <= max(sizes) <= 4 * rows**2


def test_sup_con_and_nt_xent_agree_on_two_views():
    labels = np.arange(8) // 2
    np.testing.assert_allclose(
        losses.SupCon()(labels, X), losses.NTXent()(labels, X), rtol=1e-6
    )


def test_n_pair_uses_one_pair_of_each_class():
    """A third row of a class changes the regularizer alone."""
    labels = np.array([0, 1, 0, 1, 0], "int32")
    loss = losses.NPair(l2=0.0, dtype="float64")
    x = X[:5]
    np.testing.assert_allclose(loss(labels, x), loss(labels[:4], x[:4]))


def test_circle_is_that_of_keras_on_one_device():
    x = naive.unit(X)
    theirs = keras.losses.Circle(dtype="float64")
    wanted, wanted_gradient = value_and_gradient(theirs, LABELS, x)
    value, gradient = value_and_gradient(
        losses.Circle(dtype="float64", normalize=False), LABELS, x
    )
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    np.testing.assert_allclose(gradient, wanted_gradient, atol=1e-9)


def test_smooth_ap_is_the_average_precision_when_cold():
    """Ranks 1 and 3 of the positives: (1/1 + 2/3) / 2."""
    similarity = np.array([[0.9, 0.8, 0.7, 0.1]])
    positive = np.array([[True, False, True, False]])
    value = losses.smooth_ap_loss(similarity, positive, ~positive, 1e-3)
    np.testing.assert_allclose(value, [1 - (1 + 2 / 3) / 2], rtol=1e-6)


@pytest.mark.parametrize("form", ["similarity", "euclidean"])
def test_duplicates_do_not_count_by_rounding(form):
    """Of the three positives, one pair are duplicates: two terms are left."""
    labels = np.zeros(3, "int32")
    for seed in range(20):
        a, b = np.random.default_rng(seed).standard_normal((2, 64))
        x = np.stack([a, a, b]).astype("float32")
        unit = naive.unit(x.astype("float64"))
        wanted = 1 - unit[0] @ unit[2]
        if form == "euclidean":
            wanted = np.sqrt(2 * wanted)
        value = losses.Contrastive(form=form)(labels, x)
        np.testing.assert_allclose(value, wanted, rtol=1e-5)


def test_weights_of_classes_in_an_array_are_saved():
    weighted = {"class_weights": np.array([1.0, 2.0, 1.0, 1.0])}
    loss = losses.NTXent(average=weighted)
    again = roundtrip(loss)
    assert float(again(LABELS, X)) == float(loss(LABELS, X))


@pytest.mark.parametrize(
    "call",
    [
        lambda: losses.triplet_loss(X, X > 0, X < 0, mining="semihard"),
        lambda: losses.our_loss_2_loss(LABELS, X, reduction_over_batch="avg"),
        lambda: layers.preprocess_images(X, "tensorflow"),
        lambda: layers.pool_tokens(X[None], "cls"),
        lambda: miners.margin_triplets(X, kind="semihard"),
    ],
)
def test_functions_refuse_unknown_words(call):
    """They took them for the default, without a word."""
    with pytest.raises(ValueError, match="must be one of"):
        call()


@pytest.mark.parametrize("similarity", ["euclidean", "squared_euclidean"])
def test_multi_similarity_pushes_negatives_of_a_distance(similarity):
    """With the base of cosines negatives weighed nothing, and rows met."""
    loss = losses.MultiSimilarity(similarity=similarity)
    assert loss.base == -1.0
    near = np.array([[1.0, 0.0], [0.9, 0.3]])
    _, gradient = value_and_gradient(loss, np.array([0, 1]), near)
    assert np.sum(np.asarray(gradient)[1] * (near[0] - near[1])) > 0.1
    assert losses.MultiSimilarity(base=0.3, similarity=similarity).base == 0.3
    assert losses.MultiSimilarity().base == 0.5
    assert roundtrip(loss).base == -1.0


def test_the_average_of_triplets_is_documented():
    plain, default = losses.Triplet(average=None), losses.Triplet()
    assert float(plain(LABELS, X)) == float(default(LABELS, X))
    assert float(losses.Triplet(average="all")(LABELS, X)) != float(
        default(LABELS, X)
    )


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (losses.Contrastive, {"form": "euclidean"}),
        (losses.LiftedStructure, {"form": "distance"}),
        (losses.Triplet, {"distance": "euclidean"}),
        (losses.HierarchicalTriplet, {"distance": "euclidean"}),
        (losses.Contrastive, {}),
    ],
)
def test_a_form_may_agree_with_the_similarity(cls, arguments):
    both = cls(**arguments, similarity="euclidean")
    assert both.metric == "euclidean"
    assert roundtrip(both).metric == "euclidean"


def test_constant_weights_give_the_gradient_of_the_paper_of_circle():
    """Equation 10, for cosines; Keras pulls the negative at -0.2 closer."""
    gamma, margin = 4.0, 0.4
    s = np.array([[0.7, 0.2, 0.3, -0.2, -0.6]])
    positive = np.array([[True, True, False, False, False]])
    arguments = {"gamma": gamma, "margin": margin}
    values, gradients = zip(
        *(
            value_and_gradient(
                lambda positive, s, constant=constant: losses.circle_loss(
                    s, positive, ~positive, constant_weights=constant,
                    **arguments,
                ),
                positive,
                s,
            )
            for constant in (True, False)
        ),
        strict=True,
    )  # fmt: skip
    np.testing.assert_array_equal(values[0], values[1])
    pull = np.exp(-gamma * (1 + margin - s) * (s - 1 + margin)) * positive
    above = np.maximum(s + margin, 0)
    push = np.exp(gamma * above * (s - margin)) * ~positive
    share = 1 - np.exp(-np.asarray(values[0]))
    wanted = share * gamma * push / push.sum() * above
    wanted -= share * gamma * pull / pull.sum() * (1 + margin - s)
    np.testing.assert_allclose(gradients[0], wanted, rtol=1e-9)
    assert wanted[0, 3] > 0 > np.asarray(gradients[1])[0, 3]
    loss = losses.Circle(constant_weights=True, dtype="float64")
    assert roundtrip(loss).constant_weights is True
    assert loss(LABELS, X) == losses.Circle(dtype="float64")(LABELS, X)


def test_ranks_may_be_of_numpy():
    loss = losses.RecallSurrogate(k=[np.int64(1), np.int32(4)])
    assert roundtrip(loss).k == [1, 4]


@pytest.mark.parametrize("columns", [3, None])
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_one_hot_rows_are_refused_where_the_batch_is_unknown(columns, dtype):
    loss = losses.NTXent()
    step = tf.function(
        loss,
        input_signature=[
            tf.TensorSpec((None, columns), dtype),
            tf.TensorSpec((None, 4), "float32"),
        ],
    )
    x = X.astype("float32")
    one_hot = np.eye(3, dtype=dtype)[LABELS % 3]
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        step(tf.constant(one_hot), x)
    assert "not one-hot rows" in str(error.value)
    assert "y_true.shape=] [8 3] [Take the `argmax`" in str(error.value)
    same = (LABELS[:3, None] == LABELS[:3]).astype(dtype)
    np.testing.assert_allclose(
        step(tf.constant(same), x[:3]), loss(same, x[:3]), rtol=1e-6
    )


@pytest.mark.parametrize("floatx", ["bfloat16", "float16"])
def test_a_half_precision_of_keras_is_not_that_of_losses(floatx):
    usual = keras.config.floatx()
    keras.config.set_floatx(floatx)
    try:
        loss = losses.Contrastive()
        value = loss(LABELS, X)
        with pytest.raises(ValueError, match="half precision.*float16"):
            losses.Contrastive(dtype=floatx)
    finally:
        keras.config.set_floatx(usual)
    assert loss.dtype == "float32"
    np.testing.assert_allclose(value, losses.Contrastive()(LABELS, X))
