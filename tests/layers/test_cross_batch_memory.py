import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.conformance import roundtrip
from tests.losses import naive_pair_losses as naive

RNG = np.random.default_rng(0)
BATCHES = [
    (RNG.standard_normal((4, 3)).astype("float32"), RNG.integers(0, 3, 4))
    for _ in range(5)
]

COMPARABLE = (
    losses.Circle(),
    losses.Contrastive(),
    losses.Contrastive(similarity="l1", name="l1"),
    losses.Contrastive(similarity="signal_to_noise", name="ratio"),
    losses.DynamicSoftMargin(),
    losses.FastAP(),
    losses.Histogram(),
    losses.Instance(scale=8.0),
    losses.IntraPairVariance(),
    losses.LiftedStructure(),
    losses.MultiSimilarity(),
    losses.NCA(),
    losses.NTXent(),
    losses.PNP(),
    losses.RankedList(),
    losses.RecallSurrogate(),
    losses.SignalToNoise(),
    losses.SmoothAP(),
    losses.SupCon(),
    losses.Triplet(margin=0.5),
    losses.Triplet(margin=0.5, mining="all", name="all_triplets"),
    losses.TupletMargin(),
)


def added(output):
    return float(np.mean(output[:, -1]))


def test_nothing_is_added_outside_of_training():
    layer = layers.CrossBatchMemory(losses.Contrastive(), 8, warm_up_steps=0)
    x, labels = BATCHES[0]
    np.testing.assert_array_equal(
        layer([x, labels]), np.c_[x, np.zeros(len(x), "float32")]
    )
    assert int(layer.filled) == 0


def test_compares_with_the_rows_of_earlier_batches_alone():
    layer = layers.CrossBatchMemory(
        losses.MultiSimilarity(), 100, weight=0.5, warm_up_steps=0
    )
    assert added(layer([*BATCHES[0]], training=True)) == 0.0
    old, old_labels = BATCHES[0]
    x, labels = BATCHES[1]
    output = layer([x, labels], training=True)
    both = np.concatenate([x, old])
    positive = np.zeros((8, 8), bool)
    negative = positive.copy()
    positive[:4, 4:] = labels[:, None] == old_labels
    negative[:4, 4:] = labels[:, None] != old_labels
    # The last four rows have no pair: they are zero and halve the mean.
    wanted = 2 * naive.multi_similarity(positive, negative, both)
    np.testing.assert_allclose(added(output), 0.5 * wanted, rtol=1e-5)


def test_the_oldest_rows_are_replaced():
    layer = layers.CrossBatchMemory(losses.Contrastive(), 10, warm_up_steps=0)
    filled = []
    for x, labels in BATCHES:
        layer([x, labels], training=True)
        filled.append(int(layer.filled))
    assert filled == [4, 8, 10, 10, 10]
    last = np.concatenate([x for x, _ in BATCHES])[-10:]
    labels = np.concatenate([y for _, y in BATCHES])[-10:]
    # Twenty rows in a ring of ten: the order is that of arrival.
    np.testing.assert_allclose(
        layer.memory.numpy(), naive.unit(last), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(layer.labels.numpy(), labels)


@pytest.mark.parametrize("known", [True, False])
def test_a_batch_larger_than_the_memory_leaves_its_last_rows(known):
    layer = layers.CrossBatchMemory(losses.Contrastive(), 3, warm_up_steps=0)
    rows, labels = BATCHES[0]
    labels = np.arange(4)
    number = 4 if known else None
    step = tf.function(
        lambda x, y: layer([x, y], training=True),
        [tf.TensorSpec((number, 3)), tf.TensorSpec((number,), tf.int64)],
    )
    step(rows, labels)
    np.testing.assert_array_equal(layer.labels, [1, 2, 3])
    np.testing.assert_allclose(layer.memory, naive.unit(rows[1:]), rtol=1e-5)
    layer([rows[:2], labels[:2]], training=True)
    np.testing.assert_array_equal(layer.labels, [0, 1, 3])
    assert (int(layer.filled), int(layer.position)) == (3, 2)


def test_waits_for_the_warm_up():
    layer = layers.CrossBatchMemory(losses.Contrastive(), 8, warm_up_steps=2)
    filled = []
    for x, labels in BATCHES:
        layer([x, labels], training=True)
        filled.append(int(layer.filled))
    assert filled == [0, 0, 4, 8, 8]


@pytest.mark.parametrize("loss", COMPARABLE, ids=lambda loss: loss.name)
def test_gradients_are_finite_with_every_loss(loss):
    layer = layers.CrossBatchMemory(loss, 8, warm_up_steps=0)
    gradients = []
    for x, labels in BATCHES[:3]:
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = layer([x, labels], training=True)
            value = tf.reduce_mean(output[:, -1])
        gradients.append(tape.gradient(value, x).numpy())
    assert np.isfinite(gradients).all()
    np.testing.assert_array_equal(gradients[0], 0.0)
    assert abs(gradients[2]).max() > 0


def test_roundtrip():
    roundtrip(
        layers.CrossBatchMemory(
            losses.Triplet(margin=0.3), 8, weight=0.1, warm_up_steps=3
        )
    )


def build(cls=losses.Contrastive):
    keras.utils.set_random_seed(0)
    x = keras.Input((6,), name="image")
    label = keras.Input((), dtype="int32", name="label")
    h = keras.layers.Dense(4, name="head")(x)
    y = layers.CrossBatchMemory(cls(), 24, warm_up_steps=1, name="memory")(
        [h, label]
    )
    model = keras.Model({"image": x, "label": label}, y)
    model.compile(keras.optimizers.SGD(0.1), losses.WithMemory(cls()))
    return model


def batches():
    data = np.random.default_rng(1).standard_normal((32, 6)).astype("float32")
    labels = np.tile([0, 1, 2, 3], 8).astype("int32")
    return tf.data.Dataset.from_tensor_slices(
        ({"image": data, "label": labels}, labels)
    ).batch(8)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [losses.Contrastive, losses.MultiSimilarity])
def test_replicas_do_not_change_training(cls, strategy):
    wanted = build(cls)
    expected = wanted.fit(batches(), epochs=2, verbose=0, shuffle=False)
    with strategy.scope():
        model = build(cls)
        history = model.fit(batches(), epochs=2, verbose=0, shuffle=False)
    np.testing.assert_allclose(
        history.history["loss"], expected.history["loss"], rtol=1e-4
    )
    for a, w in zip(model.get_weights(), wanted.get_weights(), strict=True):
        np.testing.assert_allclose(a, w, rtol=1e-3, atol=1e-5)


def test_a_reloaded_model_goes_on_with_its_memory(tmp_path):
    model = build()
    model.fit(batches(), verbose=0, shuffle=False)
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert int(revived.get_layer("memory").filled) == 24
    for trained in (model, revived):
        trained.fit(batches(), verbose=0, shuffle=False)
    for a, w in zip(revived.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, w)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"loss": losses.NPair(), "size": 8}, "`loss`.*'n_pair'"),
        (
            {"loss": losses.LiftedStructure(form="pairs"), "size": 8},
            "`loss`.*'lifted'",
        ),
        ({"loss": losses.Softmax(), "size": 8}, "`loss`.*'softmax'"),
        ({"loss": losses.Angular(), "size": 8}, "`loss`.*'angular'"),
        (
            {"loss": losses.Triplet(mining="all", swap=True), "size": 8},
            "`loss`.*'triplet'",
        ),
        ({"loss": losses.Triplet(), "size": 0}, "`size`.*size=0"),
        (
            {"loss": "triplet", "size": 8},
            "`loss` must.*`keras_dml.losses.get",
        ),
        (
            {"loss": losses.Triplet(), "size": 8, "warm_up_steps": -1},
            "`warm_up_steps`.*-1",
        ),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        layers.CrossBatchMemory(**arguments)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0.2, 0.9, 1.0, 2.0], "float32"), "whole numbers"),
        (np.array([1, 2, 3, 2**24], "float32"), "whole numbers"),
        (np.array([1, 2, 3, 2**32 + 1]), "lie between -2"),
    ],
)
def test_labels_that_would_merge_are_refused(labels, message):
    layer = layers.CrossBatchMemory(losses.Contrastive(), 8, warm_up_steps=0)
    x, _ = BATCHES[0]
    with pytest.raises(ValueError, match=f"labels of the layer.*{message}"):
        layer([x, labels], training=True)
    step = tf.function(
        lambda labels: layer([tf.constant(x), labels], training=True),
        jit_compile=True,
    )
    values = np.asarray(step(tf.constant(labels)))[:, -1]
    assert np.isnan(values).any()


def test_whole_floats_are_labels():
    x, labels = BATCHES[0]
    found = []
    for given in (labels, labels.astype("float32")):
        layer = layers.CrossBatchMemory(losses.Contrastive(), 8)
        layer.build([x.shape, labels.shape])
        layer([x, given], training=True)
        found.append(layer([x, given], training=True))
    np.testing.assert_array_equal(*found)
