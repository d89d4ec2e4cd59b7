"""Trainings that imitate the embeddings of a teacher."""

import os
import signal

import numpy as np
import pytest

import keras_dml
from keras_dml import losses
from keras_dml.config import flags_of, resolve
from keras_dml.data.pipeline import train_batches
from keras_dml.embeddings import (
    EmbeddingSet,
    load_embeddings,
    save_embeddings,
)
from keras_dml.errors import PreemptedError, UsageError
from keras_dml.run import recorder
from keras_dml.run.data import load_run_data
from keras_dml.run.teacher import with_teacher
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder

pytestmark = pytest.mark.slow  # trainings

SHORT = {"sampling.steps_per_epoch": 10, "sampling.batch_size": 64}


def fit(output, teacher=None, recipe=None, resume=False, **settings):
    return keras_dml.fit(
        "digits",
        recipe=recipe,
        resume=resume,
        dim=4,
        epochs=2,
        teacher=teacher,
        output=output,
        report=False,
        export=False,
        settings={**SHORT, **settings},
    )


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """Embeddings that know the classes, and how alike these are."""
    data = load_run_data(resolve("norm_softmax", "digits"))
    rng = np.random.default_rng(0)
    classes = rng.standard_normal((10, 16))
    labels = np.concatenate([data.train.labels, data.test.labels])
    rows = classes[labels] + 0.1 * rng.standard_normal((len(labels), 16))
    ids = np.concatenate([data.train.ids, data.test.ids])
    # The order of the file is not that of the images.
    order = rng.permutation(len(ids))
    path = tmp_path_factory.mktemp("teacher") / "teacher.npz"
    save_embeddings(path, EmbeddingSet(rows[order], None, ids[order]))
    return path


@pytest.fixture(scope="module")
def student(teacher, tmp_path_factory):
    return fit(tmp_path_factory.mktemp("student") / "run", teacher)


def test_a_student_of_fewer_numbers_gains_from_a_teacher(student, tmp_path):
    alone = fit(tmp_path / "alone")
    assert student.embedder.output_shape == (None, 4)
    gain = student.metrics["after"]["map@r"] - alone.metrics["after"]["map@r"]
    assert gain > 0.02
    stored = student.folder.load_config().distillation
    assert stored.loss == "relaxed_contrastive" and stored.weight is None


def test_a_resumed_student_ends_with_the_same_weights(
    student, teacher, tmp_path, monkeypatch
):
    """It is asked to stop after its first epoch."""
    save = recorder.save_checkpoint

    def save_and_ask(*arguments):
        save(*arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(recorder, "save_checkpoint", save_and_ask)
    with pytest.raises(PreemptedError):
        fit(tmp_path / "run", teacher)
    monkeypatch.undo()
    # From elsewhere, by another name of the same file.
    monkeypatch.chdir(teacher.parent)
    resumed = fit(tmp_path / "run", teacher.name, resume=True)
    for one, two in zip(
        resumed.embedder.get_weights(),
        student.embedder.get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("loss", losses.DISTILLATIONS)
@pytest.mark.parametrize("recipe", ["proxy_anchor", "soft_triple", "margin"])
def test_every_loss_trains_with_a_teacher(loss, recipe, teacher, tmp_path):
    run = fit(
        tmp_path / "run",
        teacher,
        recipe=recipe,
        **{
            "sampling.steps_per_epoch": 2,
            "distillation.loss": loss,
            "distillation.label_weight": 1.0,
            "model.matryoshka": [2],
        },
    )
    assert run.metrics["prefixes"].keys() == {"2"}
    assert np.isfinite(run.history.columns["loss"][-1])


def test_a_run_teaches_on_features_that_are_computed_once(
    tmp_path, monkeypatch
):
    photos = image_folder(tmp_path / "photos", classes=4, images=6)
    settings = {"sampling.steps_per_epoch": 2, "sampling.batch_size": 8}
    options = {
        "backbone": "small_cnn",
        "epochs": 1,
        "report": False,
        "export": False,
        "settings": settings,
    }
    teaching = keras_dml.fit(photos, output=tmp_path / "teacher", **options)
    student = keras_dml.fit(
        photos,
        teacher=teaching.folder.path,
        freeze="all",
        dim=8,
        output=tmp_path / "run",
        **options,
    )
    assert student.embedder.output_shape == (None, 8)
    data = load_run_data(student.config)
    rows = with_teacher(data, student.config).train.teacher
    np.testing.assert_allclose(
        rows, teaching.embed_images(data.train), atol=1e-5
    )

    def embeds_again(*arguments):
        raise AssertionError

    monkeypatch.setattr(TrainedRun, "embed_images", embeds_again)
    again = with_teacher(data, student.config).train.teacher
    np.testing.assert_array_equal(again, rows)


def test_rows_of_the_teacher_are_those_of_the_images(teacher):
    flags = flags_of({"teacher": str(teacher)})
    config = resolve("triplet", "digits", flags=flags)
    data = with_teacher(load_run_data(config), config)
    assert data.test.teacher is None
    found = load_embeddings(teacher, need_labels=False)
    for row in (0, 7, 500):
        (place,) = np.flatnonzero(found.ids == data.train.ids[row])
        np.testing.assert_array_equal(
            data.train.teacher[row], found.embeddings[place]
        )
    rows = np.array([3, 1])
    batch = train_batches(
        data.train.select(rows),
        lambda epoch: [np.array([1, 0])],
        image_size=8,
        channels=1,
    )
    ((inputs, _),) = batch.take(1)
    np.testing.assert_array_equal(inputs["teacher"], data.train.teacher[[1, 3]])


def test_a_teacher_must_know_every_training_image(teacher, tmp_path):
    some = load_embeddings(teacher, need_labels=False).select(slice(100))
    save_embeddings(tmp_path / "some.npz", some)
    message = (
        r"`teacher` must hold an embedding of every training image. Received: "
        r".*some.npz, which lacks \d+ of 901, such as digits/\d+; its first id "
        r"is digits/\d+. Embed all images"
    )
    with pytest.raises(UsageError, match=message):
        fit(tmp_path / "run", tmp_path / "some.npz")
    assert not (tmp_path / "run").exists()


def test_a_final_training_needs_the_teacher_of_test_images_too(
    teacher, tmp_path
):
    data = load_run_data(resolve("norm_softmax", "digits"))
    known = load_embeddings(teacher, need_labels=False)
    known = known.select(np.isin(known.ids, data.train.ids))
    save_embeddings(tmp_path / "train.npz", known)
    flags = flags_of({"teacher": str(tmp_path / "train.npz")})
    config = resolve("triplet", "digits", flags=flags)
    assert with_teacher(data, config).train.teacher is not None
    message = (
        r"every training image, and of every test image for `final='all'`. "
        r"Received: .*train.npz, which lacks 896 of 1,797, such as digits/"
    )
    with pytest.raises(UsageError, match=message):
        with_teacher(data, config.changed(final="all"))


def test_a_teacher_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="`teacher` must be a run folder, or"):
        fit(tmp_path / "run", tmp_path / "nothing.npz")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "mimic"}, "'relational', 'relaxed_contrastive'"),
        ({"weight": 0.0}, "at least 1e-30"),
        ({"label_weight": -1.0}, "at least 0"),
        ({"arguments": {"angle": 1}}, "`distillation.arguments`: .*'angle'"),
    ],
)
def test_settings_are_checked(settings, message, teacher, tmp_path):
    given = {f"distillation.{key}": value for key, value in settings.items()}
    with pytest.raises(UsageError, match=message):
        fit(tmp_path / "run", teacher, **given)
    assert not (tmp_path / "run").exists()
