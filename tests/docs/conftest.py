"""Fixtures of the site."""

import pytest

from tests.docs.site import hook


@pytest.fixture(scope="session")
def generated():
    """The text of each generated page by path."""
    return {path: text for path, _, text in hook.pages()}
