"""Which of the slow tests run."""

import sys
from types import SimpleNamespace

import pytest

from tests.conftest import HOSTILE, ROOT, TURNS, _alike, _is_first, is_chosen

LOSSES = [f"loss_{number}" for number in range(90)]
DTYPES = ["float32", "float16", "bfloat16"]


class Case(SimpleNamespace):
    """An item of pytest is in sets by what it is."""

    __hash__ = object.__hash__


def table(name, losses=LOSSES, slow=True, folder=ROOT / "tests"):
    """A test as pytest collects it, a case for each loss and dtype."""
    return [
        Case(
            path=folder / "test_laws.py",
            parent=None,
            originalname=name,
            name=f"{name}[{dtype}-{loss}]",
            get_closest_marker=lambda mark: slow or None,
        )
        for loss in losses
        for dtype in DTYPES
    ]


def test_a_third_of_a_long_table_stays_whatever_else_there_is():
    cases = table("test_a_law")
    left_out = {one.name for one in _alike(cases, 3)}
    kept = [one.name for one in cases if one.name not in left_out]
    assert len(kept) == pytest.approx(len(cases) / 3, rel=0.2)
    for dtype in DTYPES:
        assert sum(dtype in one for one in kept) > 20
    fewer = table("test_a_law", LOSSES[::2]) + table("test_other")
    names = {one.name for one in fewer}
    also = {one.name for one in _alike(fewer, 3)}
    assert left_out & names == {one for one in also if "test_a_law" in one}


def test_short_tables_and_those_of_the_other_kind_are_whole():
    assert not _alike(table("test_a_guide", LOSSES[:3]), 3)
    assert not _alike(table("test_a_law"), 1)
    quick = table("test_quick", slow=False)
    assert not _alike(quick, 3)
    assert not _alike(table("test_a_law"), 1, 3)
    kept = len(quick) - len(_alike(quick, 1, 3))
    assert kept == pytest.approx(len(quick) / 3, rel=0.2)


def test_every_file_comes_first_once_in_so_many_days():
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    turns = [
        sum(_is_first(path, day) for day in range(7, 7 + TURNS))
        for path in files
    ]
    assert turns == [1] * len(files)


def test_every_case_runs_once_in_so_many_days():
    turns = [
        sum(is_chosen(name, 3, day) for day in range(7, 10)) for name in LOSSES
    ]
    assert turns == [1] * len(LOSSES)


def test_every_hostile_case_stays():
    assert not _alike(table("test_odd_words", folder=HOSTILE / "files"), 3)


def test_the_package_is_imported_before_tensorflow():
    """Tests computed otherwise than the processes that they start."""
    names = list(sys.modules)
    assert names.index("keras_dml") < names.index("tensorflow")
