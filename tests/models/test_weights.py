"""Initial weights: published, from a file, or none."""

import dataclasses
import warnings

import keras
import numpy as np
import pytest

from keras_dml.errors import RunError, UsageError
from keras_dml.models import BACKBONES, build_embedder, get_backbone
from keras_dml.models.weights import build_with_weights
from tests.conformance import to_numpy

SHAPE = (16, 16, 1)


def same(first, second):
    return all(
        np.array_equal(to_numpy(a), to_numpy(b))
        for a, b in zip(first.weights, second.weights, strict=True)
    )


@pytest.fixture
def source():
    """A backbone whose moving statistics are not the initial ones."""
    model = build_with_weights("small_cnn", SHAPE, "none")
    for weight in model.weights:
        weight.assign(weight + 0.5)
    return model


@pytest.mark.parametrize("suffix", [".weights.h5", ".h5", ".keras"])
def test_loads_a_file_of_the_backbone(source, suffix, tmp_path):
    path = tmp_path / f"backbone{suffix}"
    if suffix == ".weights.h5":
        source.save_weights(path)
    else:
        source.save(path)
    loaded = build_with_weights("small_cnn", SHAPE, str(path))
    assert loaded.name == "backbone"
    assert same(loaded, source)


def test_loads_the_backbone_of_an_embedder(tmp_path):
    embedder = build_embedder("small_cnn", SHAPE, dim=4)
    path = tmp_path / "embedder.keras"
    embedder.save(path)
    again = build_embedder("small_cnn", SHAPE, dim=7, weights=str(path))
    assert same(again.get_layer("backbone"), embedder.get_layer("backbone"))


@pytest.mark.parametrize("suffix", [".weights.h5", ".h5"])
def test_of_an_embedder_only_its_keras_file_loads(suffix, tmp_path):
    embedder = build_embedder("small_cnn", SHAPE, dim=4)
    path = tmp_path / f"embedder{suffix}"
    # Keras warns that `.h5` is its former format.
    with warnings.catch_warnings(action="ignore"):
        embedder.save_weights(path) if "w" in suffix else embedder.save(path)
    with pytest.raises(UsageError, match="Of an embedder, .*`.keras` file"):
        build_embedder("small_cnn", SHAPE, weights=str(path))


def test_loads_under_a_strategy(source, strategy, tmp_path):
    path = tmp_path / "backbone.weights.h5"
    source.save_weights(path)
    with strategy.scope():
        embedder = build_embedder(
            "small_cnn",
            SHAPE,
            weights=str(path),
            batch_norm="frozen_statistics",
        )
    assert same(embedder.get_layer("backbone"), source)


def test_random_weights_follow_the_seed():
    models = []
    for seed in (0, 0, 1):
        keras.utils.set_random_seed(seed)
        models.append(build_with_weights("small_cnn", SHAPE, "none"))
    assert same(models[0], models[1])
    assert not same(models[0], models[2])


def test_auto_is_none_where_nothing_is_published():
    models = []
    for weights in ("auto", "none", None):
        keras.utils.set_random_seed(0)
        models.append(build_with_weights("small_cnn", SHAPE, weights))
    assert all(same(models[0], one) for one in models[1:])


def test_none_in_the_idiom_of_keras_downloads_nothing(monkeypatch):
    def builder(input_shape, weights):
        assert weights is None
        return get_backbone("small_cnn").builder(input_shape, weights)

    published = dataclasses.replace(BACKBONES["mobilenet_v2"], builder=builder)
    monkeypatch.setitem(BACKBONES, "mobilenet_v2", published)
    build_embedder("mobilenet_v2", (32, 32, 3), weights=None)


def test_a_download_is_not_told_among_the_results(capsys):
    """Keras prints its progress bar to stdout, before the JSON of a command."""

    def downloads(input_shape, weights):
        print("Downloading data from https://...")
        return get_backbone("small_cnn").builder(input_shape, weights=None)

    told = dataclasses.replace(
        get_backbone("small_cnn"), builder=downloads, pretrained="imagenet"
    )
    build_with_weights("told", SHAPE, "imagenet", backbone=told)
    out, err = capsys.readouterr()
    assert not out
    assert "Downloading" in err


def test_missing_file_is_refused():
    with pytest.raises(UsageError, match=r"exists. Received: no/such\.w"):
        build_with_weights("small_cnn", SHAPE, "no/such.weights.h5")


def test_a_renamed_file_of_keras_3_is_called_so(source, tmp_path):
    """Keras would say that no layer fits."""
    path = tmp_path / "backbone.weights.h5"
    source.save_weights(path)
    renamed = path.rename(tmp_path / "backbone.h5")
    with pytest.raises(UsageError, match=r"must have a name .* `.weights.h5`"):
        build_with_weights("small_cnn", SHAPE, str(renamed))


def test_other_suffix_is_refused(tmp_path):
    with pytest.raises(UsageError, match="`imagenet`, `none`, or the path"):
        build_with_weights("small_cnn", SHAPE, "imagnet")


@pytest.mark.parametrize("suffix", [".weights.h5", ".h5", ".keras"])
def test_a_broken_file_is_refused(suffix, tmp_path):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(b"no weights")
    with pytest.raises(UsageError, match="do not fit the backbone 'small_cnn'"):
        build_with_weights("small_cnn", SHAPE, str(path))


def test_a_given_network_keeps_its_weights_if_a_file_does_not_fit(tmp_path):
    image = keras.Input((16, 16, 3))
    network = keras.Model(image, keras.layers.Conv2D(4, 3)(image))
    other = keras.Model(image, keras.layers.Conv2D(4, 5)(image))
    other.save_weights(tmp_path / "other.weights.h5")
    before = network.get_weights()
    with pytest.raises(UsageError, match="do not fit"):
        build_embedder(
            network, (16, 16, 3), weights=str(tmp_path / "other.weights.h5")
        )
    for value, expected in zip(network.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_a_network_that_was_fitted_loads_without_its_loss(source, tmp_path):
    def own_loss(y_true, y_pred):
        return y_pred

    source.compile("sgd", loss=own_loss)
    source.save(tmp_path / "fitted.keras")
    again = build_with_weights(
        "small_cnn", SHAPE, str(tmp_path / "fitted.keras")
    )
    assert same(again, source)


def test_a_damaged_keras_file_is_refused(source, tmp_path):
    path = tmp_path / "damaged.keras"
    source.save(path)
    content = bytearray(path.read_bytes())
    place = content.index(b"class_name")
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(UsageError, match="do not fit.*Bad CRC"):
        build_with_weights("small_cnn", SHAPE, str(path))


@pytest.mark.parametrize("suffix", [".weights.h5", ".keras"])
def test_other_shapes_are_both_named(source, suffix, tmp_path):
    path = tmp_path / f"other{suffix}"
    source.save_weights(path) if "weights" in suffix else source.save(path)
    with pytest.raises(UsageError) as caught:
        build_with_weights("small_cnn", (16, 16, 3), str(path))
    kernel = tuple(source.weights[0].shape)
    assert str(kernel) in str(caught.value)
    assert str((*kernel[:2], 3, kernel[-1])) in str(caught.value)
    assert "Choose the backbone the file was made with" in str(caught.value)


def test_a_file_of_fewer_layers_is_refused(tmp_path):
    """No layer is left at random weights in silence."""
    image = keras.Input(SHAPE)
    x = keras.layers.Conv2D(32, 3, use_bias=False)(image)
    path = tmp_path / "short.weights.h5"
    keras.Model(image, x).save_weights(path)
    with pytest.raises(UsageError, match="do not fit the backbone"):
        build_with_weights("small_cnn", SHAPE, str(path))


def test_nothing_published_is_refused():
    with pytest.raises(UsageError, match="not available for 'small_cnn'"):
        build_with_weights("small_cnn", SHAPE, "imagenet")


def test_without_network_the_error_names_the_way_out(monkeypatch):
    def fail(**kwargs):
        raise Exception("URL fetch failure on https://example.org: None")

    offline = dataclasses.replace(BACKBONES["mobilenet_v2"], builder=fail)
    monkeypatch.setitem(BACKBONES, "mobilenet_v2", offline)
    with pytest.raises(RunError, match=r"URL fetch failure.*path as `weights`"):
        build_with_weights("mobilenet_v2", (32, 32, 3), "imagenet")


@pytest.mark.slow
@pytest.mark.data
def test_published_weights_from_a_file(test_data):
    path = (
        test_data
        / "mobilenetv2_imagenet"
        / "mobilenetv2_1.0_224_notop.weights.h5"
    )
    embedder = build_embedder(
        "mobilenet_v2", (32, 32, 3), weights=str(path), pooling="average"
    )
    images = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3))
    original = keras.applications.MobileNetV2(
        include_top=False, weights=None, input_shape=(32, 32, 3)
    )
    original.load_weights(path)
    preprocessed = keras.applications.mobilenet_v2.preprocess_input(
        images.astype("float32")
    )
    backbone = embedder.get_layer("backbone")
    np.testing.assert_allclose(
        to_numpy(backbone(embedder.get_layer("preprocessing")(images))),
        to_numpy(original(preprocessed)),
        atol=1e-4,
    )
