"""Which images choose the weights, from many classes down to few."""

import dataclasses

import numpy as np
import pytest

from keras_dml.config import flags_of, resolve
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.run.data import RunData, stage_data
from keras_dml.run.stage_checks import check_stages, warn_about_late_starts

PRETRAINED = {"model": {"backbone": "mobilenet_v2", "weights": "imagenet"}}


def data_of(num_classes, images=10):
    labels = np.repeat(np.arange(num_classes), images)
    train = Manifest(
        name="photos",
        ids=np.array([f"{row}.png" for row in range(len(labels))]),
        labels=labels,
        class_names=tuple(str(c) for c in range(num_classes)),
        split=np.full(len(labels), "train"),
        images=np.zeros((len(labels), 4, 4, 3), "uint8"),
    )
    return RunData(train, train, seen=False, partial=False, skipped=0)


def parts(num_classes, images=10, flags=PRETRAINED):
    config = resolve("norm_softmax", "photos", flags=flags)
    return stage_data(data_of(num_classes, images), config.stages[0], config)


@pytest.mark.parametrize("num_classes", [6, 7, 19, 20, 50])
def test_classes_are_left_out_from_six_on(num_classes):
    stage = parts(num_classes)
    assert stage.held_out == "classes"
    assert stage.validation.num_classes >= 2
    assert stage.fit.num_classes + stage.validation.num_classes == num_classes
    assert not set(stage.fit.ids) & set(stage.validation.ids)


@pytest.mark.parametrize("num_classes", [2, 3, 5])
def test_images_are_left_out_below(num_classes):
    stage = parts(num_classes)
    assert stage.held_out == "images"
    assert stage.fit.num_classes == stage.validation.num_classes == num_classes
    assert not set(stage.fit.ids) & set(stage.validation.ids)
    assert np.bincount(stage.validation.labels).min() == 2


@pytest.mark.parametrize("images", [5, 7, 9, [5, 1, 4, 20]])
def test_small_classes_give_two_images_or_none(images):
    """One class of nine photos, and nothing validated."""
    stage = parts(4, images)
    counts = np.array([images] * 4 if isinstance(images, int) else images)
    expected = np.where(counts >= 10, counts // 5, 2 * (counts >= 5))
    assert stage.held_out == "images"
    names = [int(stage.validation.names[row]) for row in range(expected.sum())]
    assert np.bincount(names, minlength=4).tolist() == expected.tolist()
    assert len(stage.fit) == counts.sum() - expected.sum()


@pytest.mark.parametrize("images", [4, [3, 4, 20, 1]])
def test_all_images_train_where_fewer_than_two_classes_could_validate(images):
    stage = parts(4, images)
    assert (stage.validation, stage.held_out) == (None, "nothing")
    assert len(stage.fit) == np.sum([images] * 4 if images == 4 else images)


@pytest.mark.parametrize(
    ("classes", "images", "validate", "each", "fit"),
    [
        (100, 100, 20, 40, 80 * 100),
        (3000, 5, 160, 5, 2840 * 5),
        # Images of the same classes validate, and all others train.
        (4, 2000, 4, 200, 4 * 1800),
    ],
)
def test_of_many_images_few_validate(classes, images, validate, each, fit):
    """Those of 10,000 photos took most of the ten minutes."""
    stage = parts(classes, images)
    assert np.bincount(stage.validation.labels).tolist() == [each] * validate
    assert len(stage.fit) == fit
    assert stage.held_out == ("images" if classes == 4 else "classes")


def test_a_network_from_scratch_needs_twenty_classes():
    scratch = {"model": {"backbone": "mobilenet_v2", "weights": "none"}}
    assert parts(19, flags=scratch).held_out == "nothing"
    assert parts(20, flags=scratch).held_out == "classes"


@pytest.mark.parametrize(("several", "held_out"), [(4, 2), (1, 0), (0, 0)])
def test_classes_of_one_image_do_not_validate(several, held_out):
    """A run of theirs ended in its first validation."""
    stage = parts(60 + several, [1] * 60 + [10] * several)
    assert stage.fit.num_classes == 60 + several - held_out
    if not held_out:
        assert (stage.validation, stage.held_out) == (None, "nothing")
        return
    assert stage.validation.num_classes == held_out
    assert len(stage.validation) == 10 * held_out


def test_a_fold_of_classes_of_one_image_is_refused():
    config = resolve(
        "norm_softmax",
        "omniglot",
        overrides=[
            *("data.folds=2", "data.fold=0", "data.fold_split=contiguous"),
            *("data.image_size=8", "data.channels=3"),
        ],
    )
    data = data_of(20, [10] * 10 + [1] * 10)
    message = "Stage `main` must validate.*Received: 10 validation classes of"
    with pytest.raises(UsageError, match=message):
        check_stages(config, data)
    check_stages(config.changed(data={"fold": 1}), data)


def data_with_test(labels, role=None, classes=20):
    """So many classes train, and images of these labels test."""
    data = data_of(classes)
    labels = np.asarray(labels)
    test = Manifest(
        name="photos",
        ids=[f"test {row}" for row in range(len(labels))],
        labels=labels,
        class_names=[f"test {label}" for label in range(labels.max() + 1)],
        role=role,
        images=np.zeros((len(labels), 4, 4, 3), np.uint8),
    )
    return dataclasses.replace(data, test=test)


def checked(data, **changes):
    config = resolve("norm_softmax", "omniglot")
    changes = {"image_size": 8, "channels": 3, **changes}
    return check_stages(config.changed(data=changes), data)


@pytest.mark.parametrize("seen", [False, True])
def test_one_test_class_is_refused(seen):
    """Whatever the vectors are, the nearest image is of the same class."""
    data = dataclasses.replace(data_with_test([0, 0, 0]), seen=seen)
    message = "at least two test classes.*Received: 3 images of 1 class.*own"
    with pytest.raises(UsageError, match=message):
        checked(data)
    checked(data, all_classes=True, validation="none")


def test_test_classes_of_one_image_are_refused():
    with pytest.raises(UsageError, match="3 images of 3 classes, of which no"):
        checked(data_with_test([0, 1, 2]))
    checked(data_with_test([0, 1, 1]))


def test_queries_need_references_of_two_classes():
    query, gallery = "query", "gallery"
    data = data_with_test([0, 0, 1, 1], [query, query, gallery, gallery])
    with pytest.raises(UsageError, match="of which no"):
        checked(data)
    data = data_with_test([0, 0, 1], [query, gallery, query])
    with pytest.raises(UsageError, match="at least two test classes"):
        checked(data)
    checked(data_with_test([0, 0, 1], [query, gallery, gallery]))


@pytest.mark.parametrize(
    ("stages", "changes", "advice"),
    [
        ("phases: [{plateau: {}}]", {"validation": "none"}, "`classes`"),
        ("classes: all, phases: [{stop_patience: 3}]", {}, "`fit`"),
        ("phases: [{plateau: {}}]", {"validation_from": 30}, "30 training cl"),
    ],
)
def test_what_follows_validation_is_told_how_to_get_it(stages, changes, advice):
    """More classes were advised, where none of them would have validated."""
    config = resolve(
        "norm_softmax", "omniglot", overrides=[f"stages=[{{{stages}}}]"]
    )
    size = {"image_size": 8, "channels": 3}
    with pytest.raises(UsageError, match="follows a validation") as caught:
        check_stages(config.changed(data={**size, **changes}), data_of(20))
    assert advice in str(caught.value)


def test_one_class_is_nothing_to_train_on():
    with pytest.raises(UsageError, match="at least two classes. Received: 1"):
        checked(data_with_test([0, 0, 1], classes=1), quarter_turns=False)


def test_a_refit_must_share_its_larger_batches_too():
    """Ten of thirteen classes made batches that two devices share."""
    config = resolve("triplet", "photos", flags=PRETRAINED)
    config = config.changed(data={"image_size": 8, "channels": 3})
    data = data_with_test([0, 0, 1], classes=13)
    assert config.trainings[1:]
    with pytest.raises(UsageError, match="Received: a batch of 52 images"):
        check_stages(config, data, replicas=2)
    check_stages(config.changed(refit=False), data, replicas=2)


def test_a_whitening_needs_a_bias():
    """Not of a stored configuration: such runs could be trained once."""
    config = resolve("triplet", "omniglot").changed(
        data={"image_size": 28, "channels": 1},
        model={"whitening": [0.5], "use_bias": False},
    )
    with pytest.raises(UsageError, match=r"`model\.whitening` must be \[\] wi"):
        check_stages(config, data_of(20))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"loss": [{"name": "proxy_anchor"}]}, "`heat` .*: `proxy_anchor`"),
        ({"model.scale": 4.0}, "`heated` .*Received: 4 for both"),
        (
            {
                "optimizer.backbone.schedule": "cosine",
                "stages.main.heated.heat.lr_factor": 0.1,
            },
            r"`heat` lowers .*schedule of `optimizer\.backbone`",
        ),
        (
            {"stages.main.train.heat": {"every": 1, "lr_factor": 1.0}},
            "One phase .*may have `heat`.*`train` and `heated`",
        ),
    ],
)
def test_what_cannot_be_heated_is_refused_before_training(overrides, message):
    """A traceback came once most of the training was over."""
    size, data = {"image_size": 8, "channels": 3}, data_with_test([0, 0, 1])
    check_stages(resolve("hbn", "omniglot").changed(data=size), data)
    config = resolve("hbn", "omniglot", overrides=overrides)
    with pytest.raises(UsageError, match=message):
        check_stages(config.changed(data=size), data)


def test_heating_after_the_end_is_warned_of(caplog):
    config = resolve("hbn", "cub200", flags=flags_of({"epochs": 20}))
    with caplog.at_level("WARNING", "keras_dml"):
        warn_about_late_starts(resolve("hbn", "cub200"), 0, 1000)
        assert not caplog.messages
        warn_about_late_starts(config, 0, 1000)
    assert "heats from epoch 61 on, but trains for 20" in caplog.text


@pytest.mark.parametrize(
    ("recipe", "late"),
    [
        ("contrastive:memory", "`loss.0.memory.warm_up_steps` is 500"),
        ("proxy_isa", "`model.proxies.sample_aware.filter_epoch` is 3"),
    ],
)
def test_a_memory_that_never_begins_is_warned_of(recipe, late, caplog):
    """In ten minutes of a processor there are some 200 steps."""
    with caplog.at_level("WARNING", "keras_dml"):
        for epochs in (20, 3):
            config = resolve(
                recipe, "omniglot", flags=flags_of({"epochs": epochs})
            )
            warn_about_late_starts(config, 0, 50 * epochs)
    (message,) = caplog.messages
    assert message.startswith(late)
