"""Fixtures of the site."""

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.docs.pages import hook


@pytest.fixture(scope="session")
def generated():
    """The text of each generated page by path."""
    return {path: text for path, _, text in hook.pages()}


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, built without a warning."""
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("The extra `docs` is not installed.")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--strict"]
    done = subprocess.run(
        [*command, "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    return folder
