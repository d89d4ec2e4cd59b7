"""Damaged and crafted files end in a sentence that names the file."""

import pytest

from tests.hostile.files import odd_words
from tests.hostile.files.cases import CASES
from tests.hostile.runner import table


@pytest.mark.slow
@pytest.mark.parametrize("case", table([*CASES, *odd_words.CASES]))
def test_a_hostile_file(case, run, images, capsys, monkeypatch):
    case.harm(run)
    case.check(capsys, monkeypatch, run=run, images=images)
