"""Fixtures of the command line's tests."""

import pytest

from poolwise.cli import app as cli


@pytest.fixture(autouse=True, scope="session")
def commands() -> None:
    """Every command is known."""
    cli._discover()
