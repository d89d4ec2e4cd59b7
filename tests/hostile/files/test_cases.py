"""Damaged and crafted files end in a sentence that names the file."""

from pathlib import Path

import numpy as np
import pytest

from tests.commands import run_command
from tests.hostile.files import odd_tables, odd_words
from tests.hostile.files.cases import CASES
from tests.hostile.runner import table


@pytest.mark.parametrize(
    "case", table([*CASES, *odd_words.CASES, *odd_tables.CASES])
)
def test_a_hostile_file(case, run, images, capsys, monkeypatch):
    case.harm(run)
    for path in filter(Path.is_file, run.glob("*.csv")):
        text = path.read_bytes().replace(b"<images>", str(images).encode())
        path.write_bytes(text)
    case.check(capsys, monkeypatch, run=run, images=images)


def test_other_labels_in_the_cache_are_not_believed(run, capsys, monkeypatch):
    words = ("evaluate", run, "--json")
    before = run_command(capsys, monkeypatch, *words)
    path = run / "embeddings" / "test.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    changed = {**arrays, "labels": np.roll(arrays["labels"], 1)}
    np.savez(path, **changed)
    assert run_command(capsys, monkeypatch, *words).out == before.out
    with np.load(path) as stored:
        np.testing.assert_array_equal(stored["labels"], arrays["labels"])
