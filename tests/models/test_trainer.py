"""The trainer: what each kind of loss takes."""

import keras
import numpy as np
import pytest

from keras_dml import layers, losses, regularizers
from keras_dml.errors import UsageError
from keras_dml.models import HeadOptions, build_embedder, build_trainer
from tests.conformance import to_numpy

RNG = np.random.default_rng(0)
SHAPE = (16, 16, 1)
IMAGES = RNG.uniform(0, 255, (6, *SHAPE)).astype("float32")
LABELS = np.arange(6, dtype="int32") % 3
INPUTS = {"image": IMAGES, "label": LABELS}


def embedder(**arguments):
    return build_embedder("small_cnn", SHAPE, dim=5, **arguments)


def crossentropy():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def names(model):
    return [layer.name for layer in model.layers]


def trainer_of(head="logits", num_classes=3, policy="float32", **options):
    return build_trainer(
        embedder(policy=policy),
        num_classes,
        head,
        HeadOptions(**options),
        policy,
    )


@pytest.mark.parametrize(
    "takes, shape, layer",
    [
        ("logits", (6, 3), "logits"),
        ("similarities", (6, 3), "proxies"),
        ("embeddings", (6, 5), "head"),
        ("unit_embeddings", (6, 5), "unit"),
        ("embeddings_and_boundaries", (6, 7), "boundaries"),
        ("predictions", (6, 10), "predictor"),
    ],
)
def test_last_layer_for_each_input(takes, shape, layer):
    trainer = trainer_of(takes)
    output = to_numpy(trainer(INPUTS))
    assert output.shape == shape
    assert trainer.output_shape == (None, *shape[1:])
    assert names(trainer)[-1] == layer


def test_similarities_are_not_scaled():
    assert np.abs(to_numpy(trainer_of("similarities")(INPUTS))).max() <= 1.001


def test_unit_embeddings_have_length_one():
    output = to_numpy(trainer_of("unit_embeddings")(INPUTS))
    np.testing.assert_allclose(np.linalg.norm(output, axis=1), 1, rtol=1e-5)


def test_boundaries_start_where_the_options_say():
    output = to_numpy(
        trainer_of("embeddings_and_boundaries", boundary=0.7)(INPUTS)
    )
    np.testing.assert_allclose(output[:, -2], 0.7, rtol=1e-6)


def test_a_memory_appends_its_column_and_remembers():
    memory = layers.CrossBatchMemory(
        losses.Contrastive(), size=12, warm_up_steps=0, name="memory"
    )
    trainer = trainer_of("embeddings", memory=memory)
    assert trainer.output_shape == (None, 6)
    trainer.compile("sgd", losses.WithMemory(losses.Contrastive()))
    trainer.fit(INPUTS, LABELS, batch_size=6, shuffle=False, verbose=0)
    assert int(memory.filled) == 6


def test_a_memory_without_embeddings_is_refused():
    memory = layers.CrossBatchMemory(losses.Contrastive(), size=12)
    with pytest.raises(UsageError, match="loss that takes logits"):
        trainer_of("logits", memory=memory)


def test_moments_are_of_the_features_before_pooling():
    layer = layers.HighOrderMoments(3, 16, name="moments")
    model = embedder()
    trainer = build_trainer(model, 3, "embeddings", HeadOptions(moments=layer))
    assert trainer.output_shape == (None, 15)
    trainer.compile("sgd", losses.OnMoments(losses.Contrastive(), 3))
    before = [np.array(v) for v in trainer.variables]
    trainer.fit(INPUTS, LABELS, batch_size=6, shuffle=False, verbose=0)
    moved = {
        variable.path
        for variable, old in zip(trainer.variables, before, strict=True)
        if not np.array_equal(np.array(variable), old)
    }
    assert {"moments/order_2", "moments/order_3"} <= moved
    assert "moments/random" not in moved
    assert model.output_shape == (None, 5)


def test_moments_that_cannot_be_are_refused():
    layer = layers.HighOrderMoments(3, 16, name="moments")
    with pytest.raises(UsageError, match="`moments` needs.*takes logits"):
        trainer_of("logits", moments=layer)
    memory = layers.CrossBatchMemory(losses.Contrastive(), size=12)
    with pytest.raises(UsageError, match="exclude each other"):
        trainer_of("embeddings", moments=layer, memory=memory)
    with pytest.raises(UsageError, match="a frozen network"):
        build_trainer(
            embedder(),
            3,
            "embeddings",
            HeadOptions(moments=layer),
            on_features=True,
        )


def test_an_unknown_input_is_refused():
    with pytest.raises(UsageError, match="one of: `logits`.*'distances'"):
        trainer_of("distances")


def test_proxy_isa_gets_sample_aware_proxies():
    trainer = trainer_of(
        "weighted_similarities",
        sample_aware={"memory_size": 9, "tau": 2.0},
    )
    assert trainer.get_layer("proxies").tau == 2.0
    trained = {v.path for v in trainer.trainable_variables}
    assert "proxies/similarity/proxies" in trained


@pytest.mark.slow
def test_trainer_trains_the_embedder():
    model = embedder()
    before = model.predict(IMAGES, verbose=0)
    trainer = build_trainer(model, num_classes=3)
    assert {"head", "proxies", "label", "logits"} < set(names(trainer))
    assert "unit" not in names(trainer)
    trainer.compile("adam", crossentropy())
    trainer.fit({"image": IMAGES, "label": LABELS}, LABELS, verbose=0)
    assert not np.allclose(model.predict(IMAGES, verbose=0), before)


def test_logits_are_scaled_cosines():
    model = embedder()
    trainer = build_trainer(model, 3, options=HeadOptions(scale=7.0))
    proxies = to_numpy(trainer.get_layer("proxies").proxies)
    proxies /= np.linalg.norm(proxies, axis=1, keepdims=True)
    np.testing.assert_allclose(
        to_numpy(trainer({"image": IMAGES, "label": LABELS})),
        7 * to_numpy(model(IMAGES)) @ proxies.T,
        atol=1e-4,
    )


def test_proxies_follow_the_options():
    trainer = trainer_of(
        proxies={
            "metric": "dot",
            "centers": 2,
            "unit_proxies": False,
            "initializer": "normal",
        }
    )
    proxies = trainer.get_layer("proxies")
    assert trainer.output_shape == (None, 3, 2)
    assert "logits" not in names(trainer)
    assert (proxies.metric, proxies.unit_proxies) == ("dot", False)
    assert proxies.initializer.stddev == 1.0
    assert trainer_of(logits_bias=True).get_layer("logits").use_bias


def test_groups_are_found_by_path():
    trainer = trainer_of(logits_bias=True)
    heads = {v.path.split("/")[0] for v in trainer.trainable_variables}
    assert {"head", "proxies", "logits"} < heads


def test_same_seed_same_weights():
    weights = []
    for _ in range(2):
        keras.utils.set_random_seed(3)
        weights.append([to_numpy(w) for w in trainer_of().weights])
    for first, second in zip(*weights, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("half", ["mixed_float16", "mixed_bfloat16"])
def test_only_the_backbone_is_in_half_precision(half):
    model = embedder(policy=half)
    trainer = build_trainer(model, 3, policy=half)
    assert keras.config.dtype_policy().name == "float32"
    halves = {
        layer.name
        for layer in trainer.layers
        if layer.compute_dtype != "float32"
    }
    assert halves == {"backbone"}
    assert all(w.dtype == "float32" for w in trainer.weights)
    for one in (model, trainer):
        assert one.output.dtype == "float32"


def test_a_regularizer_of_the_proxies():
    regularizer = regularizers.CenterDistance()
    trainer = trainer_of(proxies={"regularizer": regularizer, "centers": 2})
    assert trainer.get_layer("proxies").regularizer is regularizer
    assert len(trainer.losses) == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"memory": 9}, "sample_aware`: .*'memory'"),
        ({"volume": 0.5}, "sample_aware`: `volume` must be above 1"),
    ],
)
def test_arguments_of_sample_aware_proxies_are_checked(arguments, message):
    with pytest.raises(UsageError, match=message):
        trainer_of("weighted_similarities", sample_aware=arguments)


@pytest.mark.parametrize(
    ("policy", "scaled"), [("mixed_float16", True), ("mixed_bfloat16", False)]
)
def test_keras_scales_the_loss_of_a_float16_trainer_only(policy, scaled):
    trainer = trainer_of(policy=policy)
    trainer.compile("sgd", "sparse_categorical_crossentropy")
    assert trainer.output.dtype == "float32"
    assert scaled == isinstance(
        trainer.optimizer, keras.optimizers.LossScaleOptimizer
    )


@pytest.mark.parametrize(
    ("share", "columns"), [(1.0, 30), (0.5, 15), (0.41, 13), (1e-6, 1)]
)
def test_a_share_of_the_classes_is_sampled(share, columns):
    trainer = trainer_of(num_classes=30, sample=share)
    assert trainer.output_shape == (None, columns)
    assert type(trainer.get_layer("proxies")) is layers.SampledProxies
    assert trainer.get_layer("proxies").proxies.shape == (30, 5)


@pytest.mark.parametrize(("least", "columns"), [(9, 9), (2, 3), (99, 30)])
def test_a_sample_has_room_for_the_classes_of_a_batch(least, columns):
    trainer = trainer_of(num_classes=30, sample=0.1, sample_at_least=least)
    assert trainer.output_shape == (None, columns)


def test_sampled_centers_keep_their_axis():
    trainer = trainer_of("similarities", 30, sample=0.5, proxies={"centers": 3})
    assert trainer.output_shape == (None, 15, 3)


@pytest.mark.parametrize(
    ("changes", "takes", "message"),
    [
        ({}, "embeddings", "needs a loss on logits.*takes embeddings"),
        ({}, "weighted_similarities", "needs a loss on logits"),
        ({"logits_bias": True}, "logits", "needs `logits_bias=False`"),
        (
            {"policy": "mixed_float16"},
            "logits",
            "needs.*such as mixed_bfloat16",
        ),
        (
            {"proxies": {"regularizer": regularizers.CenterDistance()}},
            "similarities",
            "needs `regularizer=None`",
        ),
    ],
)
def test_what_needs_all_proxies_is_refused(changes, takes, message):
    with pytest.raises(UsageError, match=f"`sample` {message}"):
        trainer_of(takes, 30, sample=0.5, **changes)


def test_training_at_another_image_size_trains_the_embedder():
    image = keras.Input((None, None, 1))
    maps = keras.Model(image, keras.layers.Conv2D(6, 3)(image))
    small = build_embedder(maps, SHAPE, dim=5)
    trainer = build_trainer(small, 3, "similarities", image_size=24)
    shapes = {one.name: one.shape for one in trainer.inputs}
    assert shapes["image"] == (None, 24, 24, 1)
    for layer in small.layers[1:-1]:
        assert trainer.get_layer(layer.name) is layer
    before = to_numpy(small(IMAGES))
    larger = RNG.uniform(0, 255, (6, 24, 24, 1)).astype("float32")
    trainer.compile("sgd", losses.NormalizedSoftmax())
    trainer.fit({"image": larger, "label": LABELS}, LABELS, verbose=0)
    assert np.abs(to_numpy(small(IMAGES)) - before).max() > 1e-4


@pytest.mark.parametrize("image_size", [None, 16])
def test_images_have_the_size_of_the_embedder(image_size):
    small = embedder()
    trainer = build_trainer(small, 3, "similarities", image_size=image_size)
    assert trainer.inputs[0].shape == small.inputs[0].shape
