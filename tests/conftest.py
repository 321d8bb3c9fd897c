"""Fixtures of all tests."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of published values, traces and the yardstick, beside the project's root."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("../shared is missing, and CI=true: tests against published values cannot run")
        pytest.skip("../shared is not here")
    return folder
