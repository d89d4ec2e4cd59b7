"""Retrieval by groups of classes."""

import numpy as np
import pytest

import keras_dml
from keras_dml.config import resolve
from keras_dml.data import Manifest
from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate
from keras_dml.run import groups
from keras_dml.run.batches import class_groups, make_sampler
from keras_dml.run.groups import measure_groups
from keras_dml.run.loss_terms import build_loss
from keras_dml.run.stage_checks import check_arguments
from tests.images import image_folder

CONFIG = resolve("norm_softmax", "digits")


def made_up(count=60, **fields):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 12, count)
    manifest = Manifest(
        name="made up",
        labels=labels,
        class_names=[str(label) for label in range(12)],
        ids=[str(row) for row in range(count)],
        images=np.zeros((count, 2, 2, 1), np.uint8),
        **{"group": labels % 3, **fields},
    )
    return generator.normal(size=(count, 5)), manifest


def test_images_of_a_group_belong_together():
    rows, manifest = made_up()
    expected = evaluate(rows, manifest.group, k=1).metrics
    found = measure_groups(rows, manifest, CONFIG)
    assert found == {
        name: pytest.approx(expected[name]) for name in ("recall@1", "map@r")
    }


def test_queries_search_the_gallery():
    role = np.where(np.arange(60) % 2, "query", "gallery")
    rows, manifest = made_up(role=role)
    query, gallery = role == "query", role == "gallery"
    expected = evaluate(
        rows[query],
        manifest.group[query],
        references=(rows[gallery], manifest.group[gallery]),
        k=1,
    ).metrics
    found = measure_groups(rows, manifest, CONFIG)
    assert found["map@r"] == pytest.approx(expected["map@r"])


def test_some_queries_stand_for_many(monkeypatch):
    monkeypatch.setattr(groups, "MOST_QUERIES", 10)
    rows, manifest = made_up()
    values = evaluate(rows, manifest.group, k=1).exact.per_query["map@r"]
    chosen = np.linspace(0, 59, 10).astype(int)
    found = measure_groups(rows, manifest, CONFIG)
    assert found["map@r"] == pytest.approx(values[chosen].mean())


@pytest.mark.parametrize("group", [None, np.zeros(60)])
def test_without_groups_there_is_nothing(group):
    rows, manifest = made_up(group=group)
    assert measure_groups(rows, manifest, CONFIG) == {}


@pytest.mark.slow
def test_a_run_reports_them(tmp_path):
    for group in ("fur", "fins"):
        image_folder(tmp_path / "photos" / group, classes=4, images=4)
        for one in list((tmp_path / "photos" / group).iterdir()):
            one.rename(one.with_name(f"{one.name} {group}"))
    run = keras_dml.fit(
        tmp_path / "photos",
        backbone="small_cnn",
        epochs=1,
        output=tmp_path / "run",
        export=False,
        settings={"sampling.steps_per_epoch": 2, "model.dim": 8},
    )
    found = run.metrics["groups"]
    assert found.keys() == {"recall@1", "map@r"}
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"MAP@R is\n{found['map@r']:.3f} where all images of a group" in page


def sampled(manifest, *overrides):
    config = resolve("contrastive", "digits", overrides=overrides)
    return make_sampler(manifest, config)(0)


def test_batches_of_classes_of_a_group():
    _, manifest = made_up(240)
    batches = sampled(
        manifest,
        "sampling={kind: hierarchical, classes: 4, images: 2}",
        "sampling.steps_per_epoch=3",
    )
    for rows in batches:
        assert len(set(manifest.labels[rows])) == 4
        assert len(set(manifest.group[rows])) == 1


def test_classes_without_groups_have_no_hierarchy():
    _, manifest = made_up(group=None)
    with pytest.raises(UsageError, match="'hierarchical' for `made up`. Give"):
        sampled(manifest, "sampling.kind=hierarchical")


def test_batches_by_inverse_frequency():
    _, manifest = made_up()
    batches = sampled(
        manifest,
        "sampling={kind: inverse_frequency, batch_size: 16}",
        "sampling.steps_per_epoch=5",
    )
    assert [len(set(rows.tolist())) for rows in batches] == [16] * 5


def config_of(*overrides):
    return resolve("norm_softmax:groups", "digits", overrides=overrides)


def test_losses_on_groups_take_those_of_the_data():
    _, manifest = made_up(240)
    found = class_groups(manifest, config_of())
    assert found == [label % 3 for label in range(12)]
    built = build_loss(config_of().loss, found)
    assert (built.groups, built.weight) == ([found], 0.5)
    config = resolve("hierarchical_triplet", "digits")
    assert class_groups(manifest, config) == found
    assert build_loss(config.loss, found).groups == [found]
    assert class_groups(manifest, resolve("triplet", "digits")) is None
    # Given groups are not those of the data.
    own = resolve(
        "hierarchical_triplet",
        "digits",
        overrides=[f"loss.0.arguments.groups={[0] * 12}"],
    )
    assert class_groups(manifest, own) is None
    assert build_loss(own.loss, found).groups == [[0] * 12]


@pytest.mark.parametrize(
    "recipe", ["norm_softmax:groups", "hierarchical_triplet"]
)
def test_losses_on_groups_refuse_data_without(recipe):
    _, manifest = made_up(group=None)
    with pytest.raises(UsageError, match="`loss` must be another.*without"):
        class_groups(manifest, resolve(recipe, "digits"))


@pytest.mark.parametrize(
    "overrides, message",
    [
        (["model.proxies.sample=0.5"], "`loss.0.group_weight` and.*exclude"),
        (["model.proxies.centers=3"], "logits of shape"),
    ],
)
def test_groups_that_a_loss_cannot_use(overrides, message):
    config = config_of(*overrides)
    with pytest.raises(UsageError, match=message):
        check_arguments(config, 4, [0, 0, 1, 1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "recipe", ["norm_softmax:groups", "hierarchical_triplet"]
)
def test_a_run_trains_on_groups(recipe, tmp_path):
    for group in ("fur", "fins"):
        image_folder(tmp_path / "photos" / group, classes=4, images=4)
        for one in list((tmp_path / "photos" / group).iterdir()):
            one.rename(one.with_name(f"{one.name} {group}"))
    run = keras_dml.fit(
        tmp_path / "photos",
        recipe=recipe,
        backbone="small_cnn",
        epochs=1,
        output=tmp_path / "run",
        export=False,
        report=False,
        settings={"sampling.steps_per_epoch": 2, "model.dim": 8},
    )
    assert 0 <= run.metrics["after"]["recall@1"] <= 1
