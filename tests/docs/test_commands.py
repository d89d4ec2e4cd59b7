"""Every command and program of a page is one, also where it is not run."""

import ast
import re
import shlex
import textwrap

import pytest

from tests.conftest import ROOT
from tests.docs.pages import commands, written

PAGES = dict(
    [*written(), ("README.md", (ROOT / "README.md").read_text("utf-8"))]
)
COMMAND = re.compile(
    r"^(?:    |    !|\$ )keras-dml ((?:.*\\\n)*.*)$", re.MULTILINE
)
PROGRAM = re.compile(r"^ *(`{3,})python\n(.*?)^ *\1$", re.DOTALL | re.MULTILINE)


def commands_of(text):
    """Returns the words of each command line, but of those that show a form."""
    lines = (line.replace("\\\n", " ") for line in COMMAND.findall(text))
    return [
        shlex.split(line, comments=True)
        for line in lines
        if "[-" not in line and not line.startswith("-")
    ]


def parse(words):
    """Parses a command as the program does, without running it."""
    known = commands.all_commands()
    assert words[0] in known, words
    known[words[0]].make_context(words[0], words[1:])


@pytest.mark.parametrize(
    "page", [page for page, text in PAGES.items() if commands_of(text)]
)
def test_commands_are_parsed(page):
    for words in commands_of(PAGES[page]):
        parse(words)


@pytest.mark.parametrize("words", [["fit", "a", "--epoch", "2"], ["fitt", "a"]])
def test_a_command_that_is_none_is_found(words):
    with pytest.raises(Exception, match=r"epoch|fitt"):
        parse(words)


@pytest.mark.parametrize(
    "page",
    [
        page
        for page, text in PAGES.items()
        # `test_contributing.py` runs what stands in pieces there.
        if PROGRAM.search(text) and page != "CONTRIBUTING.md"
    ],
)
def test_programs_are_parsed(page):
    for _, program in PROGRAM.findall(PAGES[page]):
        ast.parse(textwrap.dedent(program))


def test_most_pages_have_something_to_parse():
    assert sum(len(commands_of(text)) for text in PAGES.values()) > 45
