"""Fixtures of all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from poolwise.cli import app
from tests.helpers.small_study import write

# CI draws the same examples each time, so that a failure is caused by the change. Runs by hand explore new examples.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("hand", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "hand")


@pytest.fixture(scope="session")
def commands() -> None:
    """Every command of the command line is known."""
    if not app.app.registered_commands:
        app._discover()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a study that a test may change."""
    return write(tmp_path)


@pytest.fixture(scope="module")
def kept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that tests share and leave as it is."""
    return write(tmp_path_factory.mktemp("study"))
