"""Odd words are refused in a sentence, or mean what they say."""

import pytest

from tests.hostile.commands.cases import CASES
from tests.hostile.runner import table


@pytest.mark.parametrize("case", table(CASES))
def test_odd_words(case, run, images, capsys, monkeypatch, tmp_path):
    # A word such as `.` or `a` is a place of the working folder.
    monkeypatch.chdir(tmp_path)
    case.check(
        capsys,
        monkeypatch,
        run=run,
        images=images,
        out=tmp_path / "out",
    )
