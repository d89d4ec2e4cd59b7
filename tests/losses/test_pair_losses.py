"""Laws of every loss on the pairs of a batch, and the input they refuse."""

import functools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.conformance import numerical_gradient, roundtrip
from tests.losses import naive_pair_losses as naive

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 4))
# Two rows have no partner.
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")

CASES = {
    "multi_similarity": (
        losses.MultiSimilarity,
        {},
        naive.multi_similarity,
    ),
    "multi_similarity_mined": (
        losses.MultiSimilarity,
        {"mining_margin": 0.1},
        functools.partial(naive.multi_similarity, mining=0.1),
    ),
}
for form, power in (("similarity", 1), ("euclidean", 1), ("euclidean", 2)):
    arguments = {"form": form, "power": power}
    CASES[f"contrastive_{form}_{power}"] = (
        losses.Contrastive,
        arguments,
        functools.partial(naive.contrastive, **arguments),
    )
for arguments in (
    {"margin": 0.3},
    {"margin": 0.3, "mining": "all_semi_hard", "distance": "euclidean"},
    {
        "margin": 1.0,
        "mining": "facenet",
        "distance": "euclidean",
        "average": "all",
        "normalize": False,
    },
    {"mining": "hard", "distance": "squared_euclidean", "average": "all"},
    {"mining": "hard", "soft": True, "distance": "euclidean"},
    {"mining": "easy", "margin": 0.5},
):
    CASES["triplet_" + "_".join(map(str, arguments.values()))] = (
        losses.Triplet,
        arguments,
        functools.partial(naive.triplet, **arguments),
    )
for arguments in (
    {"mining_margin": 0.1},
    {"positive_scale": 2.0, "negative_scale": 40.0, "hinge": False},
    {"form": "distance", "margin": 1.0},
    {"form": "pairs", "margin": 1.0, "normalize": False},
):
    CASES["lifted_structure_" + "_".join(map(str, arguments.values()))] = (
        losses.LiftedStructure,
        arguments,
        functools.partial(naive.lifted, **arguments),
    )
CASES["n_pair"] = (losses.NPair, {}, naive.n_pair)
CASES["supcon"] = (losses.SupCon, {}, naive.supcon)
CASES["smooth_ap"] = (
    losses.SmoothAP,
    {"temperature": 0.1},
    functools.partial(naive.smooth_ap, temperature=0.1),
)
CASES["circle"] = (losses.Circle, {}, naive.circle)
for arguments in ({"temperature": 0.5}, {"normalize": False}):
    CASES["nca_" + "_".join(map(str, arguments.values()))] = (
        losses.NCA,
        arguments,
        functools.partial(naive.nca, **arguments),
    )
CASES["nt_xent"] = (losses.NTXent, {}, naive.nt_xent)
EACH = pytest.mark.parametrize("case", CASES)


def make(case, **arguments):
    cls, own, _ = CASES[case]
    return cls(**own, **arguments)


def expected(case, labels, x):
    positive, negative = naive.masks(labels)
    return CASES[case][2](positive, negative, np.asarray(x, "float64"))


def value_and_gradient(loss, labels, x):
    x = tf.Variable(x)
    with tf.GradientTape() as tape:
        value = loss(labels, x)
    return value, tape.gradient(value, x)


def test_every_pair_loss_has_a_case():
    pair_losses = {
        cls
        for cls in losses.LOSSES.values()
        if issubclass(cls, losses.PairLoss)
    }
    assert {cls for cls, _, _ in CASES.values()} >= pair_losses - {
        getattr(losses, "Margin", None)
    }


@EACH
def test_against_loops(case):
    loss = make(case, dtype="float64")
    np.testing.assert_allclose(
        loss(LABELS, X), expected(case, LABELS, X), rtol=1e-10
    )
    rows = make(case, reduction="none")(LABELS, X.astype("float32"))
    assert rows.shape == (8,)
    np.testing.assert_allclose(
        np.mean(rows), expected(case, LABELS, X), rtol=1e-5
    )


@EACH
def test_gradient_against_differences(case):
    loss = make(case, dtype="float64")
    _, gradient = value_and_gradient(loss, LABELS, X)
    difference = numerical_gradient(lambda x: float(loss(LABELS, x)), X, 1e-6)
    assert abs(difference).max() > 1e-4
    np.testing.assert_allclose(
        gradient, difference, atol=1e-5 * abs(difference).max()
    )


@EACH
def test_roundtrip(case):
    roundtrip(make(case, reduction="sum", name="other"))


@EACH
def test_computes_in_float32_under_any_policy(case, policy):
    loss = make(case)
    assert loss(LABELS, X).dtype == "float32"
    half = tf.cast(X, "float16")
    np.testing.assert_allclose(
        loss(LABELS, half),
        expected(case, LABELS, half.numpy()),
        rtol=1e-4,
        atol=1e-6,
    )


@EACH
def test_eager_graph_and_xla_agree(case):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = make(case)(LABELS, x)
        return value, tape.gradient(value, x)

    x = tf.constant(X, "float32")
    wanted = run(x)
    for compiled in (tf.function(run), tf.function(run, jit_compile=True)):
        for a, w in zip(compiled(x), wanted, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-4, atol=1e-5)


DEGENERATE = {
    "no positives": (np.arange(8), X),
    "one class only": (np.zeros(8, "int32"), X),
    "one row only": (LABELS[:1], X[:1]),
    "duplicates": (LABELS, np.repeat(X[:1], 8, axis=0)),
    "duplicates in pairs": (LABELS, np.repeat(X[:4], 2, axis=0)),
    "zero vectors": (LABELS, 0 * X),
    "one zero vector": (LABELS, X * (np.arange(8) != 2)[:, None]),
    "long vectors": (LABELS, 1e4 * X),
    "far labels": (LABELS * 33333, X),
}


@EACH
@pytest.mark.parametrize("batch", DEGENERATE)
def test_degenerate_batches_give_finite_values_and_gradients(case, batch):
    labels, x = DEGENERATE[batch]
    if batch == "long vectors" and not make(case).normalize:
        x = x / 1e3
    value, gradient = value_and_gradient(
        make(case), labels.astype("int32"), x.astype("float32")
    )
    assert np.isfinite(value)
    # `None` would be a graph that is not connected.
    assert np.isfinite(gradient).all()
    # Equal vectors, and zero next to unit ones, lie on a margin by rounding.
    if "duplicates" not in batch and batch != "one zero vector":
        np.testing.assert_allclose(
            value, expected(case, labels, x), rtol=1e-4, atol=1e-5
        )


@EACH
def test_a_matrix_of_pairs_may_stand_for_the_labels(case):
    same = LABELS[:, None] == LABELS[None, :]
    wanted, wanted_gradient = value_and_gradient(make(case), LABELS, X)
    for matrix in (same, same.astype("int32"), same & ~np.eye(8, dtype=bool)):
        value, gradient = value_and_gradient(make(case), matrix, X)
        np.testing.assert_array_equal(value, wanted)
        np.testing.assert_array_equal(gradient, wanted_gradient)


@EACH
def test_rows_of_several_labels(case):
    tags = RNG.random((8, 5)) < 0.3
    share = tags.astype(int) @ tags.T.astype(int) > 0
    other = ~np.eye(8, dtype=bool)
    wanted = CASES[case][2](share & other, ~share & other, X)
    value = make(case, dtype="float64")(share, X)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)


@EACH
def test_labels_may_be_a_column(case):
    np.testing.assert_array_equal(
        make(case)(LABELS[:, None], X), make(case)(LABELS, X)
    )


@EACH
def test_normalizing_is_the_same_as_unit_embeddings(case):
    loss = make(case, dtype="float64")
    if loss.normalize:
        np.testing.assert_allclose(
            loss(LABELS, 3.0 * X), loss(LABELS, naive.unit(X)), rtol=1e-9
        )
    else:
        assert abs(loss(LABELS, 3.0 * X) - loss(LABELS, X)) > 1e-3


@EACH
@pytest.mark.parametrize(
    "labels, x, message",
    [
        (LABELS.astype("float32"), X, "dtype float32.*astype"),
        (np.eye(4, dtype="float32")[LABELS], X, "dtype float32"),
        (np.eye(4, dtype="int32")[LABELS], X, r"one-hot.*\(8, 4\).*argmax"),
        (LABELS[:5], X, r"same number of rows.*\(5,\).*\(8, 4\)"),
        (LABELS, X[:, :, None], r"\(batch, dim\).*\(8, 4, 1\)"),
        (LABELS, X[:, 0], r"\(batch, dim\).*y_pred.shape=\(8,\)"),
        (LABELS[:, None, None], X, r"y_true.*\(8, 1, 1\)"),
    ],
)
def test_refused_input(case, labels, x, message):
    with pytest.raises(ValueError, match=f"'{make(case).name}'.*{message}"):
        make(case)(labels, x)


@EACH
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_precision_is_refused(case, dtype):
    with pytest.raises(ValueError, match="half precision.*float16"):
        make(case, dtype=dtype)


def train(case):
    """Five steps; both replicas hold one row of every class."""
    keras.utils.set_random_seed(0)
    x = keras.Input((6,))
    model = keras.Model(x, layers.EmbeddingHead(5, name="head")(x))
    model.compile(keras.optimizers.SGD(0.05), make(case))
    data = np.random.default_rng(1).standard_normal((40, 6)).astype("float32")
    labels = np.tile([0, 1, 2, 3, 0, 1, 2, 3], 5).astype("int32")
    batches = tf.data.Dataset.from_tensor_slices((data, labels)).batch(8)
    history = model.fit(batches, epochs=1, verbose=0, shuffle=False)
    return history.history["loss"], model.get_weights()


@EACH
def test_replicas_do_not_change_training(case, strategy):
    expected_loss, expected_weights = train(case)
    with strategy.scope():
        loss, weights = train(case)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-4)
    for actual, wanted in zip(weights, expected_weights, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-5)


@EACH
def test_model_with_the_loss_is_saved_and_loaded(case, tmp_path):
    x = keras.Input((4,))
    model = keras.Model(x, keras.layers.Dense(3)(x))
    model.compile("sgd", make(case))
    model.fit(X, LABELS, verbose=0)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        revived.evaluate(X, LABELS, verbose=0),
        model.evaluate(X, LABELS, verbose=0),
        rtol=1e-6,
    )


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
        (losses.Triplet, {"distance": "l2"}, "`distance`.*distance='l2'"),
        (losses.Triplet, {"average": "mean"}, "`average`.*average='mean'"),
        (losses.Triplet, {"soft": True}, "`soft=True` needs.*semi_hard"),
        (losses.LiftedStructure, {"form": "tfa"}, "`form`.*form='tfa'"),
        (
            losses.LiftedStructure,
            {"form": "pairs", "hinge": False},
            "`form='pairs'` has no.*hinge=False",
        ),
        (losses.NPair, {"l2": float("nan")}, "`l2`.*finite.*l2=nan"),
        (losses.SupCon, {"temperature": 0.0}, "`temperature`.*positive"),
        (losses.SmoothAP, {"temperature": 0}, "`temperature`.*positive"),
        (losses.Circle, {"gamma": 0}, "`gamma`.*positive"),
        (losses.NCA, {"temperature": 0}, "`temperature`.*positive"),
        (losses.NTXent, {"temperature": -1}, "`temperature`.*positive"),
    ],
)
def test_refused_arguments(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)


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


def test_only_the_facenet_rule_falls_back_to_the_farthest_negative():
    distance = np.array([[0.0, 0.5, 0.1, 0.4]])
    positive = np.array([[False, True, False, False]])
    negative = np.array([[False, False, True, True]])
    for mining, wanted in (("semi_hard", 0.0), ("facenet", 0.5 - 0.4 + 0.1)):
        value = losses.triplet_loss(
            distance, positive, negative, margin=0.1, mining=mining
        )
        np.testing.assert_allclose(value, [wanted], rtol=1e-6)


@pytest.mark.parametrize(
    "loss",
    [
        losses.Triplet(mining="semi_hard"),
        losses.Triplet(mining="facenet"),
        losses.Triplet(mining="all_semi_hard"),
        losses.SmoothAP(),
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
    assert rows**2 <= max(sizes) < 4 * rows**2


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


def test_circle_of_keras_works_in_a_stock_model():
    inputs = keras.Input((4,))
    unit = keras.layers.UnitNormalization()(keras.layers.Dense(3)(inputs))
    model = keras.Model(inputs, unit)
    model.compile("sgd", keras.losses.Circle())
    history = model.fit(X, LABELS, batch_size=8, epochs=5, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


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
