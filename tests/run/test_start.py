"""What a training starts from."""

import numpy as np
import pytest

from keras_dml.data.manifest import Manifest
from keras_dml.models import pooled_features
from keras_dml.run import start
from keras_dml.run.data import RunData, StageData
from keras_dml.run.measure import embed, evaluate
from keras_dml.run.start import (
    apply_head,
    measure_baselines,
    renew_class_means,
    some_images,
    start_from_features,
)
from tests.run import made_up


def labeled(labels):
    labels = np.asarray(labels)
    return Manifest(
        name="made up",
        labels=labels,
        class_names=[str(label) for label in range(labels.max() + 1)],
        ids=np.arange(len(labels)),
        images=np.zeros((len(labels), 1, 1, 1), np.uint8),
    )


def test_some_images_are_of_every_class():
    """Evenly spread ones alone would leave out most of the small classes."""
    labels = np.concatenate([np.zeros(900, int), 1 + np.arange(50)])
    kept = some_images(labeled(labels), most=100)
    assert set(kept.labels.tolist()) == set(range(51))
    assert 100 <= len(kept) < 150


def test_some_images_keep_the_share_of_each_class():
    labels = np.random.default_rng(0).permutation(
        np.repeat([0, 1, 2], [600, 300, 100])
    )
    kept = some_images(labeled(labels), most=100)
    counts = np.bincount(kept.labels)
    assert counts.sum() == 100
    np.testing.assert_allclose(counts, [60, 30, 10], atol=1)
    rows = kept.ids.astype(int)
    assert (np.diff(rows) > 0).all()


def test_few_images_are_all_kept():
    images = labeled([0, 0, 1])
    assert some_images(images, most=3) is images


def test_a_whitening_retrieves_unseen_classes_better_than_the_features():
    """Patterns that all classes share hide the classes from the features."""
    models, data, config = made_up.models(), made_up.stage(), made_up.settings()
    unseen = made_up.manifest(seed=3)
    features = embed(pooled_features(models.embedder), unseen, config)
    before = evaluate(features, unseen, config).metrics["map@r"]
    assert start_from_features(models, data, config) == 0.1
    rows = embed(models.embedder, unseen, config)
    after = evaluate(rows, unseen, config).metrics["map@r"]
    assert after > before + 0.2


def test_validation_chooses_the_shrinkage():
    """Without one, what shrinks most is taken."""
    data = made_up.stage()
    alone = StageData(data.fit, None)
    config = made_up.settings("model.whitening=[0.1, 1.0]")
    assert start_from_features(made_up.models(), data, config) == 0.1
    assert start_from_features(made_up.models(), alone, config) == 1.0


def test_a_repetition_that_is_resumed_embeds_in_the_batches_of_the_first(
    monkeypatch,
):
    """The last digits of a row depend on the batch that it was in."""
    first = made_up.stage()
    config = made_up.settings("model.whitening=[0.1]")
    calls = []

    def listed(network, images, config):
        calls.append(images.ids.tolist())
        return embed(network, images, config)

    monkeypatch.setattr(start, "embed", listed)
    again = StageData(first.fit, None)
    start_from_features(made_up.models(), again, config, earlier=first)
    assert calls == [first.fit.ids.tolist(), first.validation.ids.tolist()]


@pytest.mark.parametrize("classes", [3, 0])
def test_a_repetition_starts_from_the_images_that_are_known(
    monkeypatch, classes
):
    """Others are looked at where these are not of every class."""
    everything = made_up.manifest()
    validates = everything.labels >= 9
    first = StageData(
        everything.select(~validates).relabeled(),
        everything.select(validates).relabeled() if classes else None,
    )
    monkeypatch.setattr(start, "MOST_IMAGES", 60)
    config = made_up.settings("model.whitening=[0.1]")
    known = start.StartFeatures(config)
    models = made_up.models()
    start_from_features(made_up.models(9), first, config, known)
    seen = 60 + 10 * classes
    if classes:
        known.of(models.embedder, first.validation)
    assert len(known.among(everything)) == seen
    again = StageData(everything, None)
    start_from_features(models, again, config, known, first)
    found = len(known.among(everything))
    assert found == seen if classes else found > seen


def test_proxies_start_at_the_means_of_their_classes():
    models, data = made_up.models(), made_up.stage()
    config = made_up.settings("model.proxies.class_means=true")
    start_from_features(models, data, config)
    proxies = np.array(models.trainer.get_layer("proxies").proxies)
    head = embed(models.embedder, data.fit, config)
    similarities = head @ proxies.T
    assert np.mean(similarities.argmax(1) == data.fit.labels) > 0.9


def test_all_proxies_start_at_means_with_more_classes_than_images_enough(
    monkeypatch,
):
    models, data = made_up.models(), made_up.stage()
    monkeypatch.setattr(start, "MOST_IMAGES", data.fit.num_classes // 2)
    before = np.array(models.trainer.get_layer("proxies").proxies)
    config = made_up.settings(
        "model.whitening=[1.0]", "model.proxies.class_means=true"
    )
    start_from_features(models, data, config)
    proxies = np.array(models.trainer.get_layer("proxies").proxies)
    assert (np.abs(proxies - before).max(axis=1) > 0).all()


def test_means_without_a_whitening_are_of_all_images(monkeypatch):
    """As in the authors' code on Stanford Online Products."""
    monkeypatch.setattr(start, "MOST_IMAGES", 20)
    models, data = made_up.models(), made_up.stage()
    config = made_up.settings(
        "model.whitening=[]", "model.proxies.class_means=true"
    )
    start_from_features(models, data, config)
    proxies = np.array(models.trainer.get_layer("proxies").proxies)
    features = embed(pooled_features(models.embedder), data.fit, config)
    rows = np.array(models.embedder.get_layer("head")(features))
    for label, proxy in enumerate(proxies):
        mean = rows[data.fit.labels == label].mean(0)
        np.testing.assert_allclose(
            proxy, mean / np.linalg.norm(mean), atol=1e-5
        )


def test_a_loss_without_proxies_has_no_means_to_renew():
    models, data = made_up.models(takes="embeddings"), made_up.stage()
    config = made_up.settings("model.proxies.class_means=true")
    before = models.trainer.get_weights()
    renew_class_means(models, data.fit, config)
    for value, old in zip(models.trainer.get_weights(), before, strict=True):
        np.testing.assert_array_equal(value, old)


@pytest.mark.parametrize("wanted", [True, False])
def test_class_means_are_renewed_if_proxies_began_as_such(wanted):
    models, data = made_up.models(), made_up.stage()
    config = made_up.settings("model.whitening=[]")
    config = config.changed(model={"proxies": {"class_means": wanted}})
    layer = models.trainer.get_layer("proxies")
    before = np.array(layer.proxies)
    renew_class_means(models, data.fit, config)
    assert np.array_equal(layer.proxies, before) != wanted


def test_a_loss_without_proxies_starts_from_the_features_too():
    models, data = made_up.models(takes="embeddings"), made_up.stage()
    config = made_up.settings("model.proxies.class_means=true")
    assert start_from_features(models, data, config) == 0.1


def test_a_random_head_stays_without_the_settings():
    models = made_up.models()
    config = made_up.settings("model.whitening=[]")
    config = config.changed(model={"proxies": {"class_means": False}})
    before = [np.array(value) for value in models.trainer.variables]
    assert start_from_features(models, made_up.stage(), config) is None
    for old, new in zip(before, models.trainer.variables, strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_head_of_features_is_the_embedder():
    models, config = made_up.models(), made_up.settings()
    images = made_up.manifest()
    features = embed(pooled_features(models.embedder), images, config)
    np.testing.assert_allclose(
        apply_head(models.embedder, features),
        embed(models.embedder, images, config),
        atol=1e-5,
    )


@pytest.mark.parametrize("weights", ["none", "file"])
def test_baselines(weights):
    """Raw pixels stand in for features that no one trained."""
    models, images = made_up.models(), made_up.manifest()
    config = made_up.settings(f"model.weights={weights}")
    data = RunData(images, images, seen=False, partial=False, skipped=0)
    features = embed(pooled_features(models.embedder), images, config)
    found = measure_baselines(models.embedder, features, data, config)
    assert list(found) == ["off_the_shelf", "pretrained", "before"]
    assert found["off_the_shelf"] is found["pretrained"]
    rows = embed(models.embedder, images, config)
    before = evaluate(rows, images, config)
    assert found["before"].metrics == pytest.approx(before.metrics, abs=1e-3)


def test_proxies_of_groups_of_classes_do_not_start_at_class_means():
    """`manifold` could not train from a pretrained network."""
    models = made_up.models(takes="manifold_similarities")
    config = made_up.settings("model.proxies.class_means=true")
    before = models.trainer.get_layer("proxies").get_weights()
    assert start_from_features(models, made_up.stage(), config) == 0.1
    after = models.trainer.get_layer("proxies").get_weights()
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
