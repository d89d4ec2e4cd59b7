"""How sentences and tables are printed."""

import pytest

from keras_dml.cli import printing

NUMBERS = ("12", "1,234", "0.600 ± 0.010", "+0.1 to +0.2")
NAMES = ("001.Albatross", "3.jpg", "2024-01-01", "...")


@pytest.mark.parametrize("text", NUMBERS + NAMES)
def test_numbers_stand_on_the_right_and_names_on_the_left(capsys, text):
    printing.print_rows("Title", [{"c" * 20: text}])
    lines = capsys.readouterr().out.splitlines()
    (row,) = (line for line in lines if text in line)
    assert row.endswith(f"{text} │") == (text in NUMBERS)
    assert row.startswith(f"│ {text}") == (text in NAMES)


def test_a_path_is_no_emoji(capsys):
    printing.say("runs/a:100:b")
    printing.print_rows("Title", [{"run": "runs/a:100:b"}])
    assert capsys.readouterr().out.count("runs/a:100:b") == 2
