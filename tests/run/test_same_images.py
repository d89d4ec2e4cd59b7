"""A run goes on, and is measured, with the images that it began with."""

import dataclasses

import numpy as np
import pytest

from keras_dml.errors import RunError, UsageError
from keras_dml.run.data import RunData
from keras_dml.run.same_images import check_begun_with, check_measured_with
from tests.run import made_up


def test_a_run_goes_on_with_the_images_that_it_began_with():
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    config = made_up.settings("data.validation_from=6")
    begun = check_begun_with({}, data, config)
    assert check_begun_with(begun, data, config) == begun
    other = dataclasses.replace(data, test=made_up.manifest(seed=3))
    with pytest.raises(RunError, match="The test classes must be those"):
        check_begun_with(begun, other, config)


def test_a_run_goes_on_without_an_image_that_broke():
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    config = made_up.settings("data.validation_from=6")
    begun = check_begun_with({}, data, config)
    left = train.select(np.arange(len(train)) > 0)
    less = dataclasses.replace(data, train=left)
    assert check_begun_with(begun, less, config) == begun
    seen = dataclasses.replace(data, seen=True)
    begun = check_begun_with({}, seen, config)
    with pytest.raises(RunError, match="The training images must be those"):
        check_begun_with(begun, dataclasses.replace(less, seen=True), config)


def test_other_classes_are_not_measured():
    """A folder that came later moved classes that trained into the test."""
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    config = made_up.settings("data.validation_from=6")
    begun = check_begun_with({}, data, config)
    check_measured_with(begun, data, config, "test")
    swapped = dataclasses.replace(data, train=test, test=train)
    with pytest.raises(
        UsageError, match=r"training classes must be .*`gallery"
    ):
        check_measured_with(begun, swapped, config, "test")
    # Runs of before have kept nothing to compare with.
    check_measured_with({}, swapped, config, "test")


def test_what_validates_stays_the_same():
    """An image that broke moved the draw: what had trained validated."""
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    less = dataclasses.replace(
        data, train=train.select(np.arange(len(train)) > 0)
    )
    config = made_up.settings(
        "data.validation_from=100", "data.validation_images=0.5"
    )
    begun = check_begun_with({}, data, config)
    with pytest.raises(RunError, match="The validation images must be those"):
        check_begun_with(begun, less, config)
    # Of a run that began before this was kept.
    del begun["validation/main"]
    assert "validation/main" in check_begun_with(begun, less, config)


def test_what_cannot_have_trained_may_change():
    """A new test class, or an image of a class, is measured with the others."""
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    config = made_up.settings(
        "data.validation_from=100", "data.validation_images=0.5"
    )
    begun = check_begun_with({}, data, config)
    less = train.select(np.arange(len(train)) > 0)
    more = made_up.manifest(classes=13, seed=2)
    grown = dataclasses.replace(data, train=less, test=more)
    check_measured_with(begun, grown, config, "test")
    with pytest.raises(UsageError, match="The validation images must be"):
        check_measured_with(begun, grown, config, "validation")
    # Where all classes are seen a new image of a class is no other class.
    seen = dataclasses.replace(data, seen=True)
    begun = check_begun_with({}, seen, config)
    check_measured_with(
        begun, dataclasses.replace(seen, test=more), config, "test"
    )


def test_what_validated_must_validate_still():
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    config = made_up.settings("data.validation_from=6")
    begun = check_begun_with({}, data, config)
    none = config.changed(data={"validation": "none"})
    assert {*begun} - {*check_begun_with({}, data, none)} == {"validation/main"}
    with pytest.raises(RunError, match="What validated .* too few images"):
        check_begun_with(begun, data, none)


def test_each_stage_has_its_own_validation():
    train, test = made_up.manifest(seed=1), made_up.manifest(seed=2)
    data = RunData(train, test, seen=False, partial=False, skipped=0)
    config = made_up.settings(
        "data.validation_from=6",
        "stages=[{name: a, phases: [{}]}, {name: b, phases: [{}]}]",
    )
    begun = check_begun_with({}, data, config)
    assert {*begun} == {"training", "test", "validation/a", "validation/b"}
    begun["validation/b"] = "others"
    with pytest.raises(RunError, match="The validation classes must be"):
        check_begun_with(begun, data, config)
