"""The choice between the start and the end of a training."""

import dataclasses
import logging
import types

import numpy as np
import pytest

from keras_dml.models import pooled_features
from keras_dml.run import interpolation
from keras_dml.run.data import StageData
from keras_dml.run.interpolation import interpolate
from keras_dml.run.measure import embed, evaluate
from keras_dml.run.start import start_from_features
from tests.run import made_up

pytestmark = pytest.mark.slow


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
    rows = embed(embedder, data.validation, config)
    return evaluate(rows, data.validation, config).metrics["map@r"]


def test_a_harmful_training_is_undone_exactly(case):
    data, config, embedder, start = case
    before = validated(embedder, data, config)
    assign(embedder, random_values(start))
    assert validated(embedder, data, config) < before
    found = interpolate(embedder, start, data, config).record
    assert (found["share"], found["kept"]) == (0.0, False)
    assert_equal(values(embedder), start)
    assert found["values"]["0"] == pytest.approx(before)


def test_a_useful_training_is_kept_exactly(case):
    data, config, embedder, trained = case
    start = random_values(trained)
    config = config.changed(evaluation={"interpolate": [1.0]})
    choice = interpolate(embedder, start, data, config)
    chosen, found = choice.embedder, choice.record
    assert chosen is embedder
    assert (found["share"], found["kept"]) == (1.0, False)
    assert_equal(values(embedder), trained)


def test_the_weights_in_between_are_the_mean(case):
    data, config, embedder, start = case
    trained = [value + 0.01 for value in start]
    assign(embedder, trained)
    config = config.changed(evaluation={"interpolate": [0.5]})
    found = interpolate(embedder, start, data, config).record
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
        found = interpolate(embedder, start, data, config).record
        assert not found["kept"]
        after = validated(embedder, data, config)
        assert after >= found["values"]["0"] - 1e-6
        assign(embedder, start)


def without_patterns():
    """Images whose features a random head cannot beat."""
    return StageData(
        made_up.manifest(nuisance=0.0), made_up.manifest(seed=2, nuisance=0.0)
    )


@pytest.mark.parametrize(
    ("refit", "said"), [("true", ", and not repeated"), ("false", "")]
)
def test_nothing_gained_keeps_the_pretrained_features_exactly(
    caplog, refit, said
):
    """They were shortened by a principal component analysis."""
    models, config = made_up.models(), made_up.settings(f"refit={refit}")
    data = without_patterns()
    embedder = models.embedder
    start = values(embedder)
    assign(embedder, random_values(start))
    with caplog.at_level(logging.INFO, "keras_dml"):
        choice = interpolate(embedder, start, data, config)
        chosen, found = choice.embedder, choice.record
    assert (found["share"], found["kept"]) == (0.0, True)
    assert f"Training is discarded{said}: on 120 validation" in caplog.text
    assert "which is no gain beyond chance (99 % interval" in caplog.text
    features = embed(pooled_features(embedder), data.validation, config)
    kept = embed(chosen, data.validation, config)
    np.testing.assert_allclose(
        kept, features / np.linalg.norm(features, axis=1, keepdims=True), 1e-5
    )
    assert validated(chosen, data, config) == found["pretrained"]


@pytest.mark.parametrize(
    ("whitening", "kept"), [("[]", True), ("[0.1]", False)]
)
def test_without_validation_the_measured_choice_is_repeated(
    case, whitening, kept
):
    """Share 0 of a whitening is the whitening, and without one the features."""
    data, config, embedder, start = case
    config = made_up.settings(
        f"model.whitening={whitening}", "evaluation.interpolate=[0.0]"
    )
    assign(embedder, random_values(start))
    alone = StageData(data.fit, None)
    choice = interpolate(embedder, start, alone, config)
    chosen, found = choice.embedder, choice.record
    assert found == {"share": 0.0, "kept": kept, "values": {}}
    assert (chosen is embedder) is not kept
    assert_equal(values(embedder), start)


def test_without_validation_half_of_the_way_is_kept(case):
    """With 20 photos of 5 classes the end was worse than the start."""
    data, config, embedder, start = case
    shares = [0.0, 0.25, 0.5, 0.75, 1.0]
    config = made_up.settings(f"evaluation.interpolate={shares}")
    trained = random_values(start)
    assign(embedder, trained)
    choice = interpolate(embedder, start, StageData(data.fit, None), config)
    assert choice.record == {"share": 0.5, "kept": False, "values": {}}
    for found, old, new in zip(values(embedder), start, trained, strict=True):
        if np.issubdtype(old.dtype, np.floating):
            np.testing.assert_allclose(found, (old + new) / 2, rtol=1e-6)


def with_shuffled_classes(data):
    """Validation images under labels that mean nothing."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(data.validation.labels)
    return dataclasses.replace(
        data, validation=dataclasses.replace(data.validation, labels=labels)
    )


@pytest.mark.parametrize("shuffles", [True, False])
def test_shuffled_labels_teach_nothing(shuffles):
    """A whitening gains much, but nothing on classes that are none."""
    models, config = made_up.models(), made_up.settings()
    data = made_up.stage()
    if shuffles:
        data = with_shuffled_classes(data)
    start_from_features(models, data, config)
    start = values(models.embedder)
    assign(models.embedder, random_values(start))
    found = interpolate(models.embedder, start, data, config).record
    assert found["kept"] is shuffles


def results(**gains):
    """Results before and after, with gains of 8 classes of 5 images each."""
    before = {name: np.full(40, 0.5) for name in gains}
    after = {
        name: before[name] + np.repeat(gain, 5) for name, gain in gains.items()
    }
    return made_up_result(after), made_up_result(before)


def made_up_result(per_query):
    metrics = {name: rows.mean() for name, rows in per_query.items()}
    return types.SimpleNamespace(metrics=metrics, per_query=per_query)


EVEN = np.full(8, 0.1) + 0.001 * np.arange(8)
# Sixfold in one class, and a little less in all others.
ONE_CLASS = np.array([0.45, *[-0.02] * 7])


@pytest.mark.parametrize(
    ("gains", "recall", "share"),
    [
        (EVEN, np.zeros(8), 1.0),
        (EVEN, -EVEN, None),
        (ONE_CLASS, np.zeros(8), None),
        (np.zeros(8), np.zeros(8), None),
    ],
    ids=["better", "lower R@1", "one class alone", "equal"],
)
def test_a_gain_of_one_class_or_at_the_cost_of_the_nearest_is_none(
    case, monkeypatch, gains, recall, share
):
    """A bootstrap of images found the gain of one class sure."""
    data, config, embedder, start = case
    after, before = results(**{"map@r": gains, "recall@1": recall})
    data = StageData(data.fit, made_up.manifest(seed=2, classes=8, each=5))
    config = config.changed(evaluation={"interpolate": [1.0]})
    measured = iter([before, before, after])
    monkeypatch.setattr(
        interpolation, "evaluate_briefly", lambda *_: next(measured)
    )
    found = interpolate(embedder, start, data, config).record
    assert found["kept"] is (share is None)
    assert found["share"] == (share or 0.0)


def test_the_share_of_the_best_that_keeps_the_nearest_is_taken(
    case, monkeypatch
):
    """The end has the best MAP@R, at the cost of R@1."""
    data, config, embedder, start = case
    data = StageData(data.fit, made_up.manifest(seed=2, classes=8, each=5))
    half, before = results(**{"map@r": EVEN, "recall@1": np.zeros(8)})
    whole, _ = results(**{"map@r": 2 * EVEN, "recall@1": -EVEN})
    measured = iter([before, before, half, whole])
    monkeypatch.setattr(
        interpolation, "evaluate_briefly", lambda *_: next(measured)
    )
    found = interpolate(embedder, start, data, config).record
    assert (found["share"], found["kept"]) == (0.5, False)
    assert found["lower"] == [1.0]


@pytest.mark.parametrize("monitor", ["recall@1", "map@r"])
def test_the_nearest_counts_whatever_is_measured_in_the_end(monitor):
    """Without 1 in `k`, R@1 failed after the training, or was not asked."""
    config = made_up.settings(
        "evaluation.k=[10]", f"evaluation.monitor={monitor}"
    )
    models, data = made_up.models(), without_patterns()
    start_from_features(models, data, config)
    start = values(models.embedder)
    assign(models.embedder, [0 * value for value in start])
    found = interpolate(models.embedder, start, data, config).record
    assert 1.0 in found["lower"]


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
