"""Variables of the environment that hold anything."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.terminal import plain_environment

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COLUMNS", "0"),
        ("COLUMNS", "\u00b2"),
        ("COLUMNS", "9" * 5000),
        ("TERMINAL_WIDTH", "abc"),
        ("MPLBACKEND", "nonsense"),
    ],
)
def test_a_list_is_shown_whole(name, value):
    script = (
        "import sys\n"
        "from keras_dml import cli\n"
        "import matplotlib\n"
        "sys.argv = ['keras-dml', 'recipes']\n"
        "cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**plain_environment(), name: value},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "proxy_anchor" in done.stdout
