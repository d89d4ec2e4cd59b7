"""Networks of keras-hub, small and random, from folders."""

import functools
import sys

import keras
import numpy as np
import pytest

from keras_dml.errors import RunError, UsageError
from keras_dml.layers import (
    FrozenStatisticsBatchNormalization,
    ImagePreprocessing,
    NestedNetwork,
)
from keras_dml.models import (
    build_embedder,
    build_trainer,
    float32_clone,
    get_backbone,
    pooled_features,
    with_image_size,
)
from keras_dml.models.batch_norm import set_batch_norm_mode
from keras_dml.models.weights import build_with_weights
from tests.conformance import to_numpy
from tests.models import hub_presets
from tests.models.hub_presets import SIDE

pytest.importorskip(
    "keras_hub", reason="keras-hub is not installed: `pip install .[hub]`."
)

SHAPE = (SIDE, SIDE, 3)
IMAGES = np.random.default_rng(0).uniform(0, 255, (4, *SHAPE))
IMAGES = IMAGES.astype("float32")

# How many tokens come before the 16 patches, of which the first is the class
# token; `None` for maps.
PREFIX = {
    "dinov2": 4,
    "dinov3": 4,
    "siglip": 0,
    "vit": 1,
    "vit_without_class_token": 0,
    "deit": 2,
    "clip": 1,
    "resnet": None,
}


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Function from the name of a network to that of its backbone."""
    folder, made = tmp_path_factory.mktemp("presets"), {}

    def make(name):
        if name not in made:
            made[name] = hub_presets.save(name, folder)
        return made[name]

    return make


@pytest.fixture(scope="module")
def embedder_of(preset):
    """Function from a network and its pooling to an embedder, made once."""

    @functools.lru_cache
    def make(name, pooling="k_max"):
        return build(preset(name), pooling=pooling, k=3)

    return make


@functools.lru_cache
def network_of(name):
    return hub_presets.make(name)


def build(name, shape=SHAPE, **arguments):
    return build_embedder(name, shape, dim=5, **arguments)


def whole_features(name):
    """What the network itself gives for preprocessed images."""
    network = network_of(name)
    if name == "siglip":
        encoder = network.vision_encoder
        network = keras.Model(encoder.input, encoder.post_layer_norm.output)
    return network


def call(network, images):
    names = list(network.input) if isinstance(network.input, dict) else None
    return network({names[0]: images} if names else images)


@pytest.mark.slow
@pytest.mark.parametrize("name", PREFIX)
def test_features_and_pooling_are_those_of_the_network(name, embedder_of):
    embedder = embedder_of(name)
    preprocessed = embedder.get_layer("preprocessing")(IMAGES)
    features = to_numpy(call(whole_features(name), preprocessed))
    if PREFIX[name] is not None:
        assert features.shape[1] == 16 + PREFIX[name]
        features = features[:, PREFIX[name] :]
    flat = features.reshape(len(features), -1, features.shape[-1])
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)),
        np.sort(flat, axis=1)[:, -3:].mean(axis=1),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("name", ["dinov2", "vit"])
def test_the_class_token_can_be_taken(name, embedder_of):
    embedder = embedder_of(name, "class_token")
    preprocessed = embedder.get_layer("preprocessing")(IMAGES)
    tokens = to_numpy(call(whole_features(name), preprocessed))
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)), tokens[:, 0], atol=1e-5
    )


@pytest.mark.parametrize(
    "name", ["siglip", "vit_without_class_token", "resnet"]
)
def test_a_class_token_that_is_not_there_is_refused(name, preset):
    with pytest.raises(UsageError, match=r"`pooling.*average, max"):
        build(preset(name), pooling="class_token")


def test_siglip_can_pool_by_itself(embedder_of):
    embedder = embedder_of("siglip", "none")
    preprocessed = embedder.get_layer("preprocessing")(IMAGES)
    network = network_of("siglip").vision_encoder
    np.testing.assert_allclose(
        to_numpy(pooled_features(embedder)(IMAGES)),
        to_numpy(network({"images": preprocessed})),
        atol=1e-5,
    )


def test_others_cannot(preset):
    with pytest.raises(UsageError, match="gives tokens, which need class_tok"):
        build(preset("vit"), pooling="none")


def test_more_than_the_patches_are_refused(preset):
    name = preset("dinov2")
    with pytest.raises(UsageError, match="at most 16, the number of patches"):
        build(name, pooling="k_max", k=17)


@pytest.mark.parametrize("name", ["dinov2", "dinov3", "siglip", "resnet"])
def test_trained_embedders_save_and_load(name, embedder_of, tmp_path):
    """DINOv2's own class would lose what moved its position embeddings."""
    embedder = keras.models.clone_model(embedder_of(name))
    for weight in embedder.trainable_weights:
        noise = np.random.default_rng(1).normal(size=weight.shape)
        weight.assign(weight - 0.1 * abs(noise))
    embedder.save(tmp_path / "embedder.keras")
    loaded = keras.saving.load_model(tmp_path / "embedder.keras")
    np.testing.assert_array_equal(to_numpy(loaded(IMAGES)), embedder(IMAGES))
    assert len(loaded.weights) == len(embedder.weights)


@pytest.mark.parametrize("name", ["dinov2", "resnet"])
def test_half_precision_and_back(name, preset):
    half = build(preset(name), policy="mixed_bfloat16")
    backbone = half.get_layer("backbone")
    inside = backbone._flatten_layers(include_self=False)
    assert "bfloat16" in {layer.compute_dtype for layer in inside}
    clone = float32_clone(half)
    inside = clone._flatten_layers(include_self=False)
    assert {layer.compute_dtype for layer in inside} == {"float32"}
    np.testing.assert_allclose(
        to_numpy(clone(IMAGES)), to_numpy(half(IMAGES)), atol=0.05
    )


@pytest.mark.parametrize("name", ["dinov2", "resnet"])
def test_some_take_other_sizes(name, preset):
    shape = (48, 48, 1)
    embedder = build(preset(name), shape)
    assert embedder(np.zeros((2, *shape))).shape == (2, 5)


@pytest.mark.parametrize(
    ("name", "size"), [("dinov2", 32), ("dinov3", 32), ("resnet", 28)]
)
def test_a_network_of_tokens_takes_one_size_at_a_time(name, size, preset):
    """The default trains at two thirds of the size, and DINO cannot."""
    backbone = get_backbone(preset(name))
    assert backbone.any_size == (name == "resnet")
    if backbone.any_size:
        embedder = build(preset(name), any_size=True)
        smaller = with_image_size(embedder, size)
        assert smaller(np.zeros((1, size, size, 3))).shape == (1, 5)
    else:
        with pytest.raises(UsageError, match="`any_size` needs"):
            build(preset(name), any_size=True)


@pytest.mark.parametrize("name", ["siglip"])
def test_others_have_a_fixed_size(name, preset):
    assert get_backbone(preset(name)).image_size == SIDE
    with pytest.raises(UsageError, match=r"32 pixels only.*48 x 48"):
        build(preset(name), (48, 48, 3))


def test_a_graph_of_keras_layers_needs_keras_hub_no_more(embedder_of):
    backbone = embedder_of("resnet").get_layer("backbone")
    assert type(backbone) is not NestedNetwork
    clone = set_batch_norm_mode(backbone, "frozen_statistics")
    kinds = {type(layer) for layer in clone.layers}
    assert FrozenStatisticsBatchNormalization in kinds


def test_transformers_have_no_batch_norm_to_freeze(embedder_of):
    backbone = embedder_of("vit").get_layer("backbone")
    assert set_batch_norm_mode(backbone, "frozen_statistics") is backbone


def test_trains(preset):
    name = preset("dinov2")
    embedder = build(name, pooling="average")
    backbone = embedder.get_layer("backbone")
    before = {w.path: to_numpy(w) for w in backbone.trainable_weights}
    trainer = build_trainer(embedder, num_classes=2)
    trainer.compile(
        "sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    labels = np.array([0, 1, 0, 1])
    trainer.fit({"image": IMAGES, "label": labels}, labels, verbose=0)
    moved = {
        weight.path.rpartition("/")[2]
        for weight in backbone.trainable_weights
        if np.any(to_numpy(weight) != before[weight.path])
    }
    assert moved == {path.rpartition("/")[2] for path in before}
    assert "mask_token" not in moved


@pytest.mark.parametrize("weights", ["auto", "imagenet", "none"])
def test_weights(weights, preset):
    name = preset("vit")
    assert get_backbone(name).pretrained == "preset"
    keras.utils.set_random_seed(7)
    built = build_with_weights(name, SHAPE, weights)
    same = [
        np.array_equal(to_numpy(first), to_numpy(second))
        for first, second in zip(
            built.weights, network_of("vit").weights, strict=True
        )
    ]
    assert all(same) == (weights != "none")


def test_random_weights_depend_on_the_seed_alone(tmp_path):
    """Not on whether the preset was looked at before."""
    name = hub_presets.save("vit", tmp_path)
    built = []
    for _ in range(2):
        keras.utils.set_random_seed(3)
        built.append(build(name, weights="none"))
    for first, second in zip(*(one.weights for one in built), strict=True):
        np.testing.assert_array_equal(to_numpy(first), to_numpy(second))


def test_weights_of_a_file(preset, tmp_path):
    name = preset("vit")
    network = hub_presets.make("vit")
    for weight in network.weights:
        weight.assign(weight + 1.0)
    network.save_weights(tmp_path / "vit.weights.h5")
    embedder = build(name, weights=str(tmp_path / "vit.weights.h5"))
    embedder.save(tmp_path / "embedder.keras")
    again = build_with_weights(name, SHAPE, str(tmp_path / "embedder.keras"))
    for first, second in zip(again.weights, network.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(first), to_numpy(second))


def test_preprocessing_is_that_of_the_converter(preset, tmp_path):
    import keras_hub

    assert get_backbone(preset("vit")).preprocessing == "tf"
    converter = keras_hub.layers.ViTImageConverter(
        image_size=(SIDE, SIDE),
        scale=[0.01, 0.02, 0.03],
        offset=[-1.0, -2.0, 0.5],
    )
    other = hub_presets.save("vit", tmp_path / "other")
    converter.save_to_preset(other.removeprefix("hub:"))
    backbone = get_backbone(other)
    layer = ImagePreprocessing(
        backbone.preprocessing, scale=backbone.scale, offset=backbone.offset
    )
    np.testing.assert_allclose(
        to_numpy(layer(IMAGES)), to_numpy(converter(IMAGES)), rtol=1e-5
    )


@pytest.mark.parametrize(
    "name, mode",
    [("dinov2", "torch"), ("siglip", "tf"), ("vit", "tf"), ("resnet", "torch")],
)
def test_preprocessing_without_a_converter_is_the_documented_one(
    name, mode, preset
):
    assert get_backbone(preset(name)).preprocessing == mode


def test_the_preprocessing_of_clip(embedder_of):
    """Mean and deviation of OpenAI's code, for values in 0..1."""
    embedder = embedder_of("clip")
    mean = np.array([0.48145466, 0.4578275, 0.40821073])
    deviation = np.array([0.26862954, 0.26130258, 0.27577711])
    np.testing.assert_allclose(
        to_numpy(embedder.get_layer("preprocessing")(IMAGES)),
        (IMAGES / 255 - mean) / deviation,
        atol=1e-5,
    )


def test_gray_images_become_rgb(preset):
    embedder = build(preset("vit"), (SIDE, SIDE, 1))
    assert embedder(IMAGES[..., :1]).shape == (4, 5)


def test_a_network_of_texts_is_refused(preset):
    with pytest.raises(UsageError, match="BertBackbone, which is no network"):
        get_backbone(preset("text"))


def test_an_unknown_preset_is_refused():
    with pytest.raises(UsageError, match=r"no preset 'vit_bas.*'vit_base_pat"):
        get_backbone("hub:vit_base_patch16_224")


def test_a_folder_that_is_no_preset_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no complete preset.*config\.json"):
        get_backbone(f"hub:{tmp_path}")


def test_a_preset_without_weights_is_refused_where_they_are_wanted(tmp_path):
    name = hub_presets.save("vit", tmp_path)
    (tmp_path / "vit" / "model.weights.h5").unlink()
    with pytest.raises(UsageError, match="weights='none'"):
        build(name)


def test_a_failed_download_is_one_sentence(monkeypatch):
    import keras_hub

    def fail(*arguments, **others):
        raise ConnectionError("Name resolution failed\n" * 50)

    monkeypatch.setattr(keras_hub.models.Backbone, "from_preset", fail)
    with pytest.raises(RunError, match="could not be loaded by keras-hub"):
        get_backbone("hub:dinov2_small")


def test_without_keras_hub_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_hub", None)
    with pytest.raises(UsageError, match=r"pip install keras-dml\[hub\]"):
        get_backbone("hub:some_preset")
