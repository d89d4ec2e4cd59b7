"""Images with several labels, from a CSV file to a searched run."""

import csv
import dataclasses
import json

import keras
import numpy as np
import pytest
from PIL import Image

import keras_dml
from keras_dml.callbacks import RetrievalEvaluation
from keras_dml.config import StageConfig, resolve
from keras_dml.data import Manifest
from keras_dml.data.pipeline import evaluation_batches, train_batches
from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate
from keras_dml.export.facts_of_run import _references, images_to_compare
from keras_dml.models import build_embedder
from keras_dml.run.data import split_data, stage_data
from keras_dml.run.stage_checks import check_stages
from keras_dml.run.start import by_label, some_images
from keras_dml.run.trained_run import TrainedRun
from tests.commands import run_command

COLORS = 16
SETTINGS = {
    "sampling.batch_size": 16,
    "sampling.steps_per_epoch": 3,
    "model.dim": 8,
    "evaluation.k": [1, 2],
    "data.image_size": 32,
    # Two of the eight training classes.
    "data.validation_fraction": 0.2,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV file of pictures in one or two of sixteen colors, their labels."""
    folder = tmp_path_factory.mktemp("data")
    generator = np.random.default_rng(0)
    colors = generator.integers(0, 256, (COLORS, 3))
    lines = []
    for number in range(160):
        own = generator.choice(COLORS, 1 + number % 2, replace=False)
        pixels = np.repeat(colors[[own[0], own[-1]]], 16, axis=0)[:, None]
        noise = generator.integers(-20, 20, (32, 32, 3))
        pixels = np.clip(pixels + noise, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        labels = "|".join(f"color {label:02d}" for label in own)
        lines.append(f"{number}.png,{labels}\n")
    path = folder / "list.csv"
    path.write_text("path,label\n" + "".join(lines))
    return path


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    keras.utils.set_random_seed(0)
    folder = tmp_path_factory.mktemp("runs")
    network = build_embedder("small_cnn", (32, 32, 3)).get_layer("backbone")
    network.save_weights(folder / "small_cnn.weights.h5")
    return keras_dml.fit(
        table,
        recipe="multi_similarity",
        backbone="small_cnn",
        weights=folder / "small_cnn.weights.h5",
        output=folder / "colors",
        epochs=2,
        final="all",
        export=False,
        settings=SETTINGS,
    )


def labels_of(table):
    with table.open() as file:
        rows = list(csv.DictReader(file))
    return {row["path"]: set(row["label"].split("|")) for row in rows}


@pytest.mark.slow
def test_relevance_is_a_shared_label_that_did_not_train(run, table):
    """Counted from the CSV file, image by image."""
    labels = labels_of(table)
    unseen = set(sorted(set.union(*labels.values()))[COLORS // 2 :])
    test = TrainedRun(run.folder.path).part("test")
    ids = test.embeddings.ids.tolist()
    assert set(ids) == {name for name, own in labels.items() if own & unseen}
    counted = [labels[name] & unseen for name in ids]
    expected = evaluate(test.embeddings.embeddings, counted, k=(1, 2)).metrics
    assert run.metrics["after"] == pytest.approx(expected)
    assert run.metrics["several_labels"]
    assert run.metrics["test_classes"] == len(unseen)


@pytest.mark.slow
def test_a_run_is_read_back_as_it_was_trained(run):
    opened = TrainedRun(run.folder.path)
    file = opened.folder.path / "embeddings" / "test.npz"
    written = file.stat().st_mtime_ns
    assert opened.part("test").embeddings.labels.ndim == 2
    assert file.stat().st_mtime_ns == written, "embedded again"
    measured = run.evaluate(per_class=True, intervals=True)
    assert len(measured.class_rows()) == COLORS // 2
    interval = measured.exact.intervals["map@r"]
    assert interval.low < run.metrics["after"]["map@r"] < interval.high


@pytest.mark.slow
def test_search_shows_all_labels_and_the_page_explains_them(run, table):
    labels = labels_of(table)
    (answer,) = run.search([table.parent / "1.png"], k=20).answers
    for one in answer.neighbors:
        assert set(one.label.split("|")) == labels[one.id]
    page = (run.folder.path / "report.html").read_text()
    assert "right if it shares a label with the query" in page


@pytest.mark.slow
def test_the_commands_take_several_labels(table, tmp_path, capsys, monkeypatch):
    def command(*words):
        outcome = run_command(capsys, monkeypatch, *words)
        assert outcome.code == 0, outcome.err
        return outcome

    place = tmp_path / "run"
    options = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    command(
        *("fit", table, "--recipe", "contrastive", "--backbone", "small_cnn"),
        *("--epochs", "1", "--no-report", "--output", place, *options),
    )
    found = json.loads(command("evaluate", place, "--json").out)
    stored = json.loads((place / "metrics.json").read_text())
    assert found["map@r"] == pytest.approx(stored["after"]["map@r"])
    query = table.parent / "1.png"
    found = json.loads(command("search", place, query, "--json").out)
    labels = labels_of(table)
    for one in found["answers"][0]["neighbors"]:
        assert set(one["label"].split("|")) == labels[one["id"]]
    artifact = tmp_path / "litert"
    command(
        *("export", place, "--format", "litert", "--with-references"),
        *("--output", artifact),
    )
    (notes,) = artifact.rglob("references.json")
    exported = json.loads(notes.read_text())["labels"]
    assert any("|" in one for one in exported)


@pytest.mark.slow
def test_every_label_of_an_image_trains_in_the_end(run):
    final = run.final
    assert final.metrics["train_classes"] == COLORS
    assert final.metrics["after"].keys() == run.metrics["after"].keys()
    names = TrainedRun(final.folder.path).part("test").embeddings.names
    assert any(name.count("|") for name in names)


def manifest(seed=0, classes=12, images=90, **fields):
    generator = np.random.default_rng(seed)
    labels = np.zeros((images, classes), bool)
    for row in labels:
        row[generator.choice(classes, generator.integers(1, 4))] = True
    return Manifest(
        name="made up",
        labels=labels,
        class_names=[f"{label:02d}" for label in range(classes)],
        ids=[f"{row:03d}" for row in range(images)],
        images=generator.integers(0, 256, (images, 8, 8, 1), dtype=np.uint8),
        **fields,
    )


def settings(recipe="contrastive", *overrides):
    return resolve(
        recipe,
        "omniglot",
        flags={"model": {"backbone": "small_cnn"}},
        overrides=[
            "data.train_fraction=0.8",
            "data.quarter_turns=false",
            *overrides,
        ],
    )


def test_validation_has_classes_that_no_training_image_has():
    config = settings("contrastive", "data.validation_from=4")
    data = split_data(manifest(), config)
    parts = stage_data(data, StageConfig(phases=[{}]), config)
    assert parts.held_out == "classes"
    assert not {*parts.fit.class_names} & {*parts.validation.class_names}
    assert len(parts.fit) + len(parts.validation) == len(data.train)
    assert parts.validation.labels.any(axis=1).all()


def test_classes_of_most_images_do_not_validate():
    """They would leave too few to train on; a share of each validates."""
    labels = np.zeros((60, 8), bool)
    labels[:, :4] = True
    labels[40:, 4:] = True
    some = manifest(images=60, classes=8)
    some = Manifest(
        "head", labels, some.class_names, some.ids, images=some.images
    )
    config = settings(
        "contrastive",
        "data.train_fraction=0.6",
        "data.validation_from=4",
        "data.validation_images=0.2",
    )
    data = split_data(some, config)
    parts = stage_data(data, StageConfig(phases=[{}]), config)
    assert parts.held_out == "images"
    assert parts.fit.class_names == parts.validation.class_names
    assert len(parts.validation) == 8


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("most", [4, 6])
def test_images_of_some_classes_keep_no_other_label(most, seen):
    """Their other labels trained and were counted too."""
    some = manifest(images=200)
    config = settings("contrastive", f"data.max_classes={most}")
    share = None if seen else 0.5
    config = config.changed(data={"train_fraction": share})
    if seen:
        split = np.where(np.arange(200) % 2, "train", "test")
        some = dataclasses.replace(some, split=split, seen=True)
    data = split_data(some, config)
    parts = (data.train, data.test)
    counts = [part.num_classes for part in parts]
    assert sum(counts) == most * (2 if seen else 1) and min(counts) > 1
    assert bool({*data.train.class_names} & {*data.test.class_names}) == seen
    for part in parts:
        assert part.labels.any(axis=1).all()


def check(config):
    data = split_data(manifest(), config)
    config = config.changed(data={"image_size": 8, "channels": 1})
    return check_stages(config, data)


@pytest.mark.parametrize(
    ("recipe", "overrides", "message"),
    [
        (
            "norm_softmax",
            (),
            "The loss `norm_softmax` needs one label for each",
        ),
        ("proxy_anchor", (), "recipe of a loss .*: angular, .*contrastive, "),
        ("margin", (), r"such as \d{3} with \d\d\|\d\d\|\d\d\. "),
        ("contrastive:memory", (), "`loss.0.memory` needs one label"),
        (
            "contrastive",
            ("evaluation.clustering=true",),
            "`evaluation.clustering` needs one label .* to false",
        ),
    ],
)
def test_refuses_what_needs_one_label(recipe, overrides, message):
    with pytest.raises(UsageError, match=message):
        check(settings(recipe, *overrides))


def test_accepts_losses_that_compare_images():
    assert check(settings("contrastive"))


def test_batches_hold_the_pairs_that_share_a_label():
    images = manifest()
    rows = [np.arange(10), np.arange(20, 30)]
    batches = train_batches(
        images, lambda epoch: rows, image_size=8, channels=1
    )
    for own, (inputs, pairs) in zip(rows, batches.take(2), strict=True):
        sets = [set(np.flatnonzero(images.labels[row])) for row in own]
        expected = [[bool(one & two) for two in sets] for one in sets]
        np.testing.assert_array_equal(pairs, expected)
        assert pairs.dtype == "int32"
        np.testing.assert_array_equal(inputs["label"], own)


def test_the_callback_measures_label_sets():
    images = manifest()
    batches = evaluation_batches(
        images, batch_size=32, image_size=8, channels=1
    )
    batches = batches.map(lambda inputs, label: (inputs["image"], label))
    rows = images.images.reshape(len(images), -1).astype(np.float32)

    def embedder(pixels):
        return keras.ops.reshape(pixels, (-1, 64))

    found = RetrievalEvaluation(embedder, batches).evaluate()
    sets = [set(np.flatnonzero(row).tolist()) for row in images.labels]
    expected = evaluate(rows, sets, k=1).metrics
    assert found == pytest.approx(expected)


def test_features_count_once_for_each_label():
    images = manifest(images=5)
    features = np.arange(5.0)[:, None]
    repeated, labels = by_label(features, images)
    pairs = list(zip(repeated[:, 0].astype(int), labels, strict=True))
    assert pairs == list(zip(*np.nonzero(images.labels), strict=True))


def test_some_images_are_different_ones():
    images = manifest()
    assert len(some_images(images, 40)) == 40
    assert some_images(images, 90) is images


def test_exports_take_several_classes_and_all_names():
    config = settings().changed(data={"image_size": 8, "channels": 1})
    images = manifest()
    pixels, labels = images_to_compare(images, config, 30)
    assert len(pixels) == len(labels) and labels.ndim == 2
    assert 30 <= len(pixels) < len(images)
    references = _references(images, config)
    assert references.labels == images.names.tolist()
