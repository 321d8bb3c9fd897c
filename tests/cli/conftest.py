"""Fixtures of the tests of the command line."""

import pytest


@pytest.fixture(autouse=True)
def discovered(commands: None) -> None:
    """Discover every command."""
