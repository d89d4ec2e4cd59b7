"""How the application ends."""

import errno
import io
import os

import pytest
from rich.console import Console

from keras_dml import console
from keras_dml.cli import app


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.EIO, 1)]
)
def test_an_error_that_may_pass_is_no_mistake_of_the_caller(
    monkeypatch, capsys, number, code
):
    """Supervisors start again after 1, and not after 2."""

    def fails():
        raise OSError(number, os.strerror(number), "photos/1.jpg")

    monkeypatch.setattr(app, "_group", lambda: Namespace(fails))
    with pytest.raises(SystemExit, match=str(code)):
        app.main()
    assert "photos/1.jpg cannot be read or written" in capsys.readouterr().err


class Namespace:
    """Stands for the commands, of which one fails."""

    commands: dict = {}

    def __init__(self, function):
        self.function = function

    def __call__(self):
        self.function()


def test_an_error_is_wrapped_between_words_on_a_terminal_only(
    monkeypatch, capsys
):
    said = " ".join(["`--loss`: the loss is unknown."] * 9)
    with pytest.raises(SystemExit, match="2"):
        app._fail(said, 2)
    assert capsys.readouterr().err == f"Error: {said}\n"
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(console, "console", screen)
    with pytest.raises(SystemExit, match="2"):
        app._fail(said, 2)
    lines = screen.file.getvalue().splitlines()
    assert len(lines) > 3 and max(map(len, lines)) <= 80
    assert " ".join(map(str.strip, lines)) == f"Error: {said}"
