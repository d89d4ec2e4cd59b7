import numpy as np
import pytest

from keras_dml.config import StageConfig, resolve
from keras_dml.data import Manifest
from keras_dml.run.data import split_data, stage_data


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


def settings(**data):
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


def test_labels_are_numbered_anew():
    data, stage = parts(settings(max_classes=30, folds=2, fold=1))
    for part in (data.train, data.test, stage.fit, stage.validation):
        assert sorted(set(part.labels.tolist())) == list(
            range(part.num_classes)
        )
