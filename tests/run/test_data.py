import dataclasses

import numpy as np
import pytest

from keras_dml.config import StageConfig, resolve
from keras_dml.config.data_sections import AugmentationConfig
from keras_dml.data import Manifest
from keras_dml.data.augmentation import Augmentation
from keras_dml.errors import UsageError
from keras_dml.run.batches import whole_batches
from keras_dml.run.data import read_images, split_data, stage_data
from keras_dml.run.settling import settle


def manifest(classes=60):
    labels = np.repeat(np.arange(classes), 2)
    return Manifest(
        name="paint",
        labels=labels,
        class_names=[f"{label:02d}" for label in range(classes)],
        ids=[f"{row:03d}" for row in range(2 * classes)],
        images=np.zeros((2 * classes, 4, 4, 1), np.uint8),
        split=np.where(labels < classes * 2 // 3, "train", "test"),
    )


def settings(quarter_turns=False, **data):
    data["quarter_turns"] = quarter_turns
    config = resolve("norm_softmax", "omniglot")
    return config.model_copy(
        update={"data": config.data.model_copy(update=data)}
    )


def parts(config, classes="fit"):
    data = split_data(manifest(), config)
    stage = StageConfig(classes=classes, phases=[{}])
    return data, stage_data(data, stage, config)


def names(part):
    return {part.class_names[label] for label in part.labels}


def test_a_tenth_of_the_training_classes_validates():
    data, stage = parts(settings())
    assert len(names(stage.validation)) == 4
    assert names(stage.fit) | names(stage.validation) == names(data.train)
    assert not names(stage.fit) & names(stage.validation)


def test_training_classes_turn_and_others_do_not():
    data, plain = parts(settings())
    _, stage = parts(settings(quarter_turns=True))
    assert stage.fit.num_classes == 4 * plain.fit.num_classes
    assert len(stage.fit) == 4 * len(plain.fit)
    assert names(stage.validation) == names(plain.validation)
    assert stage.validation.turn is None and data.test.turn is None


def test_each_turned_image_is_a_class_without_labels():
    config = settings(quarter_turns=True)
    config = config.changed(sampling={"kind": "views"})
    _, stage = parts(config)
    assert stage.fit.num_classes == len(stage.fit) == 4 * 72


def test_a_teacher_knows_no_turned_images():
    config = settings(quarter_turns=True)
    data = split_data(manifest(), config)
    train = dataclasses.replace(
        data.train, teacher=np.zeros((len(data.train), 2))
    )
    data = dataclasses.replace(data, train=train)
    stage = StageConfig(classes="fit", phases=[{}])
    assert stage_data(data, stage, config).fit.turn is None


def test_oracle_validates_on_the_test_classes_and_trains_on_all_others():
    data, stage = parts(settings(validation="test"))
    assert names(stage.fit) == names(data.train)
    assert names(stage.validation) == names(data.test)


@pytest.mark.parametrize(
    ("classes", "data"), [("fit", {"validation": "none"}), ("all", {})]
)
def test_no_validation(classes, data):
    whole, stage = parts(settings(**data), classes)
    assert stage.validation is None
    assert names(stage.fit) == names(whole.train)


def test_folds_take_turns():
    found = [
        parts(settings(folds=4, fold=fold))[1].validation for fold in range(4)
    ]
    assert [len(names(part)) for part in found] == [10] * 4
    assert len(set.union(*map(names, found))) == 40


def test_folds_are_those_of_the_seed():
    config = settings(folds=4, fold=0)
    other = config.model_copy(update={"seed": 1})
    assert names(parts(config)[1].validation) != names(
        parts(other)[1].validation
    )


def test_max_classes_keeps_the_shares_of_training_and_test():
    data, _ = parts(settings(max_classes=30))
    assert (data.train.num_classes, data.test.num_classes) == (20, 10)
    assert names(data.test) <= {f"{label:02d}" for label in range(40, 60)}


def test_classes_that_were_left_out_do_not_train_in_the_end():
    chosen = {"train_classes": ["01", "02"], "test_classes": ["03"]}
    data = split_data(manifest(), settings(all_classes=True, **chosen))
    assert names(data.train) == {"01", "02", "03"}


def test_labels_are_numbered_anew():
    data, stage = parts(settings(max_classes=30, folds=2, fold=1))
    for part in (data.train, data.test, stage.fit, stage.validation):
        assert sorted(set(part.labels.tolist())) == list(
            range(part.num_classes)
        )


@pytest.mark.parametrize(
    ("backbone", "side", "expected"),
    [
        ("resnet50", 64, (64, 128, 128)),
        ("resnet50", 96, (96, 224, 160)),
        ("resnet50", 300, (224, 224, 160)),
        ("resnet50", 20, (32, 64, 64)),
        ("inception_v3", 300, (299, 299, 192)),
        ("inception_v3", 60, (75, 160, 128)),
        ("small_cnn", 64, (28, 28, 28)),
    ],
)
def test_a_pretrained_network_sees_small_images_enlarged(
    backbone, side, expected
):
    """Natural size, size of tests, size in training."""
    data = settled_sizes(backbone, side)
    assert (data.natural_size, data.image_size, data.train_size) == expected
    assert data.has_other_sizes == (backbone != "small_cnn")


def settled_sizes(backbone, side, *overrides):
    config = resolve(
        "norm_softmax",
        "./photos",
        flags={"model": {"backbone": backbone, "weights": "weights.h5"}},
        overrides=overrides,
    )
    images = np.zeros((120, side, side, 3), np.uint8)
    whole = dataclasses.replace(manifest(), images=images)
    return settle(config, split_data(whole, config)).data


@pytest.mark.parametrize("size", [230, 299])
def test_a_share_of_one_trains_at_the_size_of_tests(size):
    """It was rounded to a multiple of 32: 299 pixels became 288."""
    data = settled_sizes(
        "inception_v3", 300, f"data.image_size={size}", "data.train_share=1"
    )
    assert data.train_size == data.image_size == size


def test_a_network_of_one_size_is_not_asked_for_another():
    data = settled_sizes("small_cnn", 64, "data.image_size=64")
    assert (data.natural_size, data.train_size) == (64, 64)
    assert not data.has_other_sizes


def test_given_sizes_stay():
    data = settled_sizes(
        "resnet50", 64, "data.image_size=160", "data.train_size=100"
    )
    assert (data.natural_size, data.image_size, data.train_size) == (
        64,
        160,
        100,
    )


def test_a_settled_configuration_settles_to_itself():
    config = resolve(
        "norm_softmax",
        "./photos",
        flags={"model": {"backbone": "resnet50", "weights": "weights.h5"}},
    )
    images = np.zeros((120, 64, 64, 3), np.uint8)
    data = split_data(dataclasses.replace(manifest(), images=images), config)
    once = settle(config, data)
    assert settle(once, data) == once


def test_statistics_are_refreshed_on_whole_batches():
    """113 images in batches of 32: the fourth batch begins the next pass."""
    images = manifest(classes=60)
    images = images.select(np.arange(113))
    config = settings(image_size=4, channels=1).changed(
        evaluation={"batch_size": 32}, augmentation={"resize": 4}
    )
    batches = whole_batches(images, config).take(8)
    assert [len(labels) for _, labels in batches] == [32] * 8
    seen = np.concatenate([labels for _, labels in batches])
    np.testing.assert_array_equal(seen, np.resize(images.labels, 8 * 32))


@pytest.mark.parametrize(
    ("name", "value"), [("train_classes", ["01"]), ("train_fraction", 0.5)]
)
def test_classes_cannot_be_chosen_where_all_are_seen(name, value):
    seen = dataclasses.replace(manifest(), seen=True)
    with pytest.raises(UsageError, match=rf"`data\.{name}`.*are seen"):
        split_data(seen, settings(**{name: value}))


@pytest.mark.parametrize(
    "data",
    [
        {"train_fraction": 0.5},
        {"train_classes": ["00", "40"]},
        {"test_classes": ["00", "40"]},
    ],
)
def test_chosen_classes_have_no_published_queries(data):
    """In-Shop has roles for its own test classes only."""
    roles = np.where(np.arange(120) % 2, "gallery", "query")
    roles[:80] = ""
    published = dataclasses.replace(manifest(), role=roles)
    found = split_data(published, settings(**data))
    assert {*found.train.role, *found.test.role} == {""}
    assert set(split_data(published, settings()).test.role) == {
        "query",
        "gallery",
    }


def test_classes_without_images_leave_the_others_to_choose_from():
    """Files were missing or damaged, and that was accepted."""
    some = manifest().select(np.arange(2, 120))
    data = split_data(some, settings(train_fraction=0.5))
    assert names(data.train) == {f"{label:02d}" for label in range(1, 31)}
    data = split_data(some, settings(train_classes=["01", "59"]))
    assert names(data.train) == {"01", "59"}
    assert names(data.test) == {f"{label:02d}" for label in range(2, 59)}
    with pytest.raises(UsageError, match="`train_classes` must name.*'00'"):
        split_data(some, settings(train_classes=["00", "59"]))


def test_every_setting_of_the_augmentation_is_an_argument_of_it():
    settings = AugmentationConfig(flip=False).model_dump()
    assert dataclasses.asdict(Augmentation(**settings)) == dataclasses.asdict(
        Augmentation()
    )


def test_triplets_name_images_of_the_source(tmp_path):
    path = tmp_path / "triplets.csv"
    config = settings().changed(data={"source": "digits"})
    ids = read_images(config).ids.tolist()
    config = config.changed(sampling={"triplets": str(path)})
    path.write_text(f"anchor,positive,negative\n{ids[0]},{ids[1]},nowhere")
    with pytest.raises(UsageError, match="Line 2 .* Received: 'nowhere'"):
        read_images(config)
