"""Fixtures of the command line's tests."""

import pytest


@pytest.fixture(autouse=True)
def known(commands: None) -> None:
    """Every command is known."""
