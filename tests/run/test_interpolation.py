"""The choice between the start and the end of a training."""

import dataclasses
import logging

import numpy as np
import pytest

from keras_dml.models import pooled_features
from keras_dml.run import interpolation
from keras_dml.run.interpolation import interpolate
from keras_dml.run.measure import embed, evaluate, measure
from keras_dml.run.start import start_from_features
from tests.run import made_up


def values(embedder):
    return [np.array(variable) for variable in embedder.variables]


def assert_equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def random_values(like, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=value.shape).astype(value.dtype) for value in like]


def assign(embedder, weights):
    for variable, value in zip(embedder.variables, weights, strict=True):
        variable.assign(value)


@pytest.fixture(name="case")
def whitened_start():
    """Images, settings, an embedder that starts as a whitening, its values."""
    models, data, config = made_up.models(), made_up.stage(), made_up.settings()
    start_from_features(models, data, config)
    return data, config, models.embedder, values(models.embedder)


def validated(embedder, data, config):
    return measure(embedder, data.validation, config).metrics["map@r"]


def test_a_harmful_training_is_undone_exactly(case):
    data, config, embedder, start = case
    before = validated(embedder, data, config)
    assign(embedder, random_values(start))
    assert validated(embedder, data, config) < before
    found = interpolate(embedder, start, data, config)
    assert (found["share"], found["kept"]) == (0.0, False)
    assert_equal(values(embedder), start)
    assert found["values"]["0"] == pytest.approx(before)


def test_a_useful_training_is_kept_exactly(case):
    data, config, embedder, trained = case
    start = random_values(trained)
    config = config.changed(evaluation={"interpolate": [1.0]})
    found = interpolate(embedder, start, data, config)
    assert (found["share"], found["kept"]) == (1.0, False)
    assert_equal(values(embedder), trained)


def test_the_weights_in_between_are_the_mean(case):
    data, config, embedder, start = case
    trained = [value + 0.01 for value in start]
    assign(embedder, trained)
    config = config.changed(evaluation={"interpolate": [0.5]})
    found = interpolate(embedder, start, data, config)
    share = found["share"]
    assert found["values"].keys() == {"0", "0.5"}
    assert found["values"][f"{share:g}"] == max(found["values"].values())
    for value, one in zip(values(embedder), start, strict=True):
        np.testing.assert_allclose(value, one + share * 0.01, atol=1e-6)


def test_the_best_share_never_falls_below_the_start(case):
    """Whatever the training did: the start is one of the candidates."""
    data, config, embedder, start = case
    for seed in range(3):
        noise = random_values(start, seed)
        assign(embedder, [a + b for a, b in zip(start, noise, strict=True)])
        found = interpolate(embedder, start, data, config)
        assert not found["kept"]
        after = validated(embedder, data, config)
        assert after >= found["values"]["0"] - 1e-6
        assign(embedder, start)


def test_nothing_gained_keeps_the_pretrained_network_and_says_so(caplog):
    """Without shared patterns, a random head cannot beat the features."""
    models, config = made_up.models(), made_up.settings()
    fit = made_up.manifest(nuisance=0.0)
    data = dataclasses.replace(
        made_up.stage(),
        fit=fit,
        validation=made_up.manifest(seed=2, nuisance=0.0),
    )
    embedder = models.embedder
    start = values(embedder)
    assign(embedder, random_values(start))
    with caplog.at_level(logging.INFO, "keras_dml"):
        found = interpolate(embedder, start, data, config)
    assert (found["share"], found["kept"]) == (0.0, True)
    said = "network was kept, and training discarded: on 120 validation images"
    assert said in caplog.text
    assert "which is no gain beyond chance" in caplog.text
    features = embed(pooled_features(embedder), data.validation, config)
    pretrained = evaluate(features, data.validation, config).metrics["map@r"]
    assert found["pretrained"] == pytest.approx(pretrained)
    # A principal component analysis of 16 dimensions loses little.
    assert validated(embedder, data, config) > pretrained - 0.05


def test_shuffled_labels_teach_nothing(caplog):
    """A whitening within classes that are none gains nothing."""
    models, config = made_up.models(), made_up.settings()
    data = made_up.stage()
    rng = np.random.default_rng(0)
    validation = dataclasses.replace(
        data.validation, labels=rng.permutation(data.validation.labels)
    )
    data = dataclasses.replace(data, validation=validation)
    start_from_features(models, data, config)
    start = values(models.embedder)
    assign(models.embedder, random_values(start))
    with caplog.at_level(logging.INFO, "keras_dml"):
        assert interpolate(models.embedder, start, data, config)["kept"]
    assert "The pretrained network was kept" in caplog.text


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "The network before training, its features weighted,"),
        (0.75, "An average of both networks, 75 % of it trained,"),
        (1.0, "The trained network"),
    ],
)
def test_what_was_kept_is_called_by_what_it_is(share, words):
    assert interpolation._mixture(share) == words
