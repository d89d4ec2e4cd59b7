import importlib.metadata

import pytest

from keras_dml import distribute
from keras_dml.config import resolve
from keras_dml.errors import UsageError
from keras_dml.run import agreement

CONFIG = resolve("norm_softmax", "digits")


def with_another_worker(monkeypatch, change):
    """This process is the chief of two; `change` is what the other has."""
    monkeypatch.setattr(distribute, "num_workers", lambda: 2)
    monkeypatch.setattr(
        distribute, "gather", lambda record: [record, record | change]
    )
    monkeypatch.setattr(agreement, "worker_name", lambda index: "worker 1")


def test_equal_workers_agree(monkeypatch):
    with_another_worker(monkeypatch, {})
    agreement.check_same_settings(CONFIG)


def test_one_worker_may_have_libraries_of_other_names(monkeypatch):
    """`tensorflow-cpu` has no metadata of `tensorflow`."""

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    agreement.check_same_settings(CONFIG)


@pytest.mark.parametrize("library", agreement.LIBRARIES)
def test_another_version_is_named(monkeypatch, library):
    version = importlib.metadata.version(library)
    with_another_worker(monkeypatch, {f"the version of {library}": "0.0.1"})
    with pytest.raises(UsageError) as caught:
        agreement.check_same_settings(CONFIG)
    assert (
        f"the version of {library} is {version!r} on the chief and '0.0.1' "
        "on worker 1"
    ) in str(caught.value)


def test_a_worker_that_goes_on_has_its_own_paths(monkeypatch):
    chiefs = CONFIG.changed(seed=7, data={"data_dir": "/of/the/chief"})
    own = CONFIG.changed(data={"data_dir": "/own"})
    stored = chiefs.model_dump(mode="json")
    assert agreement.with_own_paths(stored, own) == chiefs
    monkeypatch.setattr(distribute, "is_chief", lambda: False)
    found = agreement.with_own_paths(stored, own)
    assert found == chiefs.changed(data={"data_dir": "/own"})


def test_only_some_of_many_differences_are_told(monkeypatch):
    change = {f"`sampling.{name}`": 1 for name in "abcdefg"}
    with_another_worker(monkeypatch, change | {"`seed`": 9})
    with pytest.raises(UsageError, match=r"`sampling.a`.*and \d+ more"):
        agreement.check_same_settings(CONFIG)


def test_where_the_data_lie_may_differ(monkeypatch):
    seen = {}

    def gather(record):
        seen.update(record)
        return [record, record]

    with_another_worker(monkeypatch, {})
    monkeypatch.setattr(distribute, "gather", gather)
    agreement.check_same_settings(CONFIG)
    assert not [key for key in seen if "data_dir" in key]
    assert "`seed`" in seen
