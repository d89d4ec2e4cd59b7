"""Losses on the embeddings of a teacher, against loops over rows."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.conformance import numerical_gradient, roundtrip
from tests.losses.steps import assert_finite, value_and_gradient

RNG = np.random.default_rng(0)
TEACHER = RNG.standard_normal((6, 7))
ROWS = RNG.standard_normal((6, 3))
EACH = pytest.mark.parametrize("key", losses.DISTILLATIONS)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def gap(x, i, j):
    return np.linalg.norm(x[i] - x[j])


def huber(x):
    return x**2 / 2 if abs(x) <= 1 else abs(x) - 0.5


def relational(teacher, rows, distance_weight=1.0, angle_weight=2.0):
    n = len(rows)
    both = teacher, rows
    means = [
        np.mean([gap(x, i, j) for i in range(n) for j in range(n) if i != j])
        for x in both
    ]

    def cosine(x, i, j, k):
        first, second = x[j] - x[i], x[k] - x[i]
        lengths = np.linalg.norm(first) * np.linalg.norm(second)
        return first @ second / lengths

    found = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        distances = [
            huber(gap(teacher, i, j) / means[0] - gap(rows, i, j) / means[1])
            for j in others
        ]
        angles = [
            huber(cosine(teacher, i, j, k) - cosine(rows, i, j, k))
            for j in others
            for k in others
            if j != k
        ]
        found.append(
            distance_weight * np.mean(distances)
            + angle_weight * np.mean(angles)
        )
    return found


def similarity_preserving(teacher, rows):
    theirs, own = [unit(x @ x.T) for x in (teacher, rows)]
    return [np.mean((theirs[i] - own[i]) ** 2) for i in range(len(rows))]


def relaxed_contrastive(teacher, rows, margin=1.0, bandwidth=1.0):
    n, teacher = len(rows), unit(teacher)
    found = []
    for i in range(n):
        mean = sum(gap(rows, i, k) for k in range(n)) / n
        total = 0.0
        for j in range(n):
            if j != i:
                weight = np.exp(-(gap(teacher, i, j) ** 2) / bandwidth)
                gap_ij = gap(rows, i, j) / mean
                total += weight * gap_ij**2
                total += (1 - weight) * max(0, margin - gap_ij) ** 2
        found.append(total)
    return found


LOOPS = {
    one.__name__: one
    for one in (relational, similarity_preserving, relaxed_contrastive)
}


def test_every_loss_on_a_teacher_has_a_loop():
    assert LOOPS.keys() == losses.DISTILLATIONS.keys()


@EACH
def test_function_and_documentation(key):
    assert inspect.isfunction(getattr(losses, f"{key}_loss"))
    text = inspect.getdoc(losses.DISTILLATIONS[key])
    for part in ("L", "Args:", "Example:", "```python", "Reference:"):
        assert part in text, part


@pytest.mark.parametrize(
    ("key", "arguments"),
    [
        *((key, {}) for key in losses.DISTILLATIONS),
        ("relational", {"distance_weight": 0.0, "angle_weight": 1.0}),
        ("relational", {"distance_weight": 3.0, "angle_weight": 0.0}),
        ("relaxed_contrastive", {"margin": 1.5, "bandwidth": 0.5}),
    ],
)
@pytest.mark.parametrize("normalize", [True, False])
def test_against_loops(key, arguments, normalize):
    loss = losses.DISTILLATIONS[key](
        normalize=normalize, dtype="float64", reduction="none", **arguments
    )
    both = (unit(TEACHER), unit(ROWS)) if normalize else (TEACHER, ROWS)
    np.testing.assert_allclose(
        loss(TEACHER, ROWS), LOOPS[key](*both, **arguments), rtol=1e-9
    )


@EACH
def test_gradient_against_differences(key):
    loss = losses.DISTILLATIONS[key](dtype="float64")
    # The weights of pairs are constants of the teacher alone.
    _, gradient = value_and_gradient(loss, TEACHER, ROWS)
    expected = numerical_gradient(lambda rows: float(loss(TEACHER, rows)), ROWS)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)


@EACH
def test_the_embeddings_of_the_teacher_cost_least(key):
    loss = losses.DISTILLATIONS[key]()
    own, turned = (float(loss(TEACHER, x)) for x in (TEACHER, TEACHER[::-1]))
    assert own < turned
    if key != "relaxed_contrastive":
        assert abs(own) < 1e-6


@EACH
def test_turned_and_longer_embeddings_cost_the_same(key):
    loss = losses.DISTILLATIONS[key](dtype="float64")
    turn, _ = np.linalg.qr(RNG.standard_normal((3, 3)))
    np.testing.assert_allclose(
        loss(TEACHER, 5 * ROWS @ turn), loss(TEACHER, ROWS), rtol=1e-9
    )


@EACH
@pytest.mark.parametrize("count", [1, 2, 6])
def test_equal_rows_and_small_batches_are_finite(key, count):
    loss = losses.DISTILLATIONS[key]()
    for rows in (np.ones((count, 3)), np.zeros((count, 3)), ROWS[:count]):
        teacher = TEACHER[:count].astype("float32")
        assert_finite(
            *value_and_gradient(loss, teacher, rows.astype("float32"))
        )


@EACH
def test_roundtrip(key):
    assert roundtrip(losses.DISTILLATIONS[key](normalize=False)).name == key


@EACH
@pytest.mark.parametrize(
    ("teacher", "rows", "message"),
    [
        (np.arange(6), ROWS, "must be embeddings of the teacher"),
        (TEACHER[:, 0], ROWS, r"shapes \(batch, teacher_dim\).*\(6,"),
    ],
)
def test_refused_input(key, teacher, rows, message):
    with pytest.raises(ValueError, match=message):
        losses.DISTILLATIONS[key]()(teacher, rows)


@pytest.mark.parametrize(
    ("cls", "argument", "value"),
    [
        (losses.Relational, "distance_weight", -1.0),
        (losses.Relational, "angle_weight", -1.0),
        (losses.RelaxedContrastive, "margin", 0.0),
        (losses.RelaxedContrastive, "bandwidth", 0.0),
    ],
)
def test_numbers_are_checked(cls, argument, value):
    with pytest.raises(ValueError, match=f"`{argument}`.*Received"):
        cls(**{argument: value})


def test_a_loss_without_weights_is_refused():
    message = "`distance_weight` must be above 0 where `angle_weight` is 0"
    with pytest.raises(ValueError, match=message):
        losses.Relational(distance_weight=0.0, angle_weight=0.0)
    zeros = losses.relational_loss(TEACHER, ROWS, 0.0, 0.0)
    np.testing.assert_array_equal(zeros, np.zeros(6))


def model_of(key, predictions):
    """A network, the head `predictions`, and the layer of a teacher."""
    keras.utils.set_random_seed(0)
    x, teacher = keras.Input((4,), name="x"), keras.Input((7,), name="teacher")
    embedding = keras.layers.Dense(3)(x)
    layer = layers.Distillation(
        losses.DISTILLATIONS[key](), prefixes=[2], name="distillation"
    )
    output = layer([predictions(embedding), embedding, teacher])
    return keras.Model({"x": x, "teacher": teacher}, output)


@EACH
@pytest.mark.parametrize("centers", [1, 2])
def test_the_layer_and_its_loss_add_the_loss_of_the_teacher(key, centers):
    proxies = layers.Proxies(3, centers=centers)
    model = model_of(key, proxies)
    labels = np.array([0, 1, 2, 0, 1, 2], "int32")
    inputs = {
        "x": RNG.standard_normal((6, 4)).astype("float32"),
        "teacher": TEACHER.astype("float32"),
    }
    loss = losses.SoftTriple()
    both = losses.WithDistillation(loss, weight=0.5)
    embedding = model.layers[1](inputs["x"])
    alone = 0.5 * float(loss(labels, proxies(embedding)))
    distilled = losses.DISTILLATIONS[key]()
    weighted = distilled.usual_weight * sum(
        float(distilled(inputs["teacher"], embedding[:, :size]))
        for size in (2, 3)
    )
    np.testing.assert_allclose(
        both(labels, model(inputs, training=True)),
        alone + weighted,
        rtol=1e-5,
    )
    np.testing.assert_allclose(
        both(labels, model(inputs, training=False)), alone, rtol=1e-5
    )


def test_the_layer_is_saved_and_loaded(tmp_path):
    model = model_of("relational", lambda x: x)
    model.save(tmp_path / "model.keras")
    layer = keras.saving.load_model(tmp_path / "model.keras").get_layer(
        "distillation"
    )
    assert type(layer.loss) is losses.Relational and layer.weight == 1.0
    weighted = layers.Distillation(losses.SimilarityPreserving())
    assert roundtrip(weighted).weight == 3000.0
    assert layer.prefixes == [2]


@pytest.mark.slow
@EACH
def test_replicas_do_not_change_training(key, strategy):
    rows = RNG.standard_normal((16, 4)).astype("float32")
    teacher = RNG.standard_normal((16, 7)).astype("float32")
    labels = np.tile(np.arange(4, dtype="int32"), 4)
    data = tf.data.Dataset.from_tensor_slices(
        ({"x": rows, "teacher": teacher}, labels)
    ).batch(8)

    def train():
        model = model_of(key, lambda x: x)
        loss = losses.WithDistillation(losses.Contrastive())
        model.compile(keras.optimizers.SGD(0.05), loss)
        history = model.fit(data, epochs=2, shuffle=False, verbose=0)
        return history.history["loss"], model.get_weights()

    alone = train()
    with strategy.scope():
        several = train()
    np.testing.assert_allclose(several[0], alone[0], rtol=1e-4)
    for one, two in zip(several[1], alone[1], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_teacher_and_student_have_the_same_rows(rows):
    """One row of a teacher was compared with all of the batch."""
    loss = losses.SimilarityPreserving()
    with pytest.raises(ValueError, match="the same number of rows"):
        loss(np.ones((rows, 2), "float32"), np.ones((4, 3), "float32"))


@EACH
def test_the_teacher_gets_no_gradient(key):
    loss = losses.DISTILLATIONS[key](dtype="float64")
    teacher = tf.constant(TEACHER)
    with tf.GradientTape() as tape:
        tape.watch(teacher)
        value = loss(teacher, tf.constant(ROWS))
    assert tape.gradient(value, teacher) is None


@pytest.mark.parametrize("normalize", [True, False])
def test_equal_rows_of_the_student_get_no_huge_gradient(normalize):
    """The direction of a zero difference had a gradient of a million."""
    rows = ROWS.astype("float32")
    rows[1] = rows[0]
    loss = losses.Relational(normalize=normalize)
    _, gradient = value_and_gradient(loss, TEACHER.astype("float32"), rows)
    assert 0 < np.abs(gradient).max() < 10
