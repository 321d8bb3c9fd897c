"""Fixtures of the live tests of Kubernetes; a module that needs another control plane defines its own `plane` or `cluster`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import FIRST_FIT, ControlPlane, control_plane


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Start one control plane for the tests of a module."""
    with control_plane(tmp_path_factory.mktemp("kube")) as started:
        yield started


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Return the control plane; after the test, verify its state and delete what the test has created."""
    yield plane
    violations = problems(plane)
    plane.clear()
    assert not violations


@pytest.fixture
def first_fit(tmp_path: Path) -> str:
    """Return the path of a scheduler file with FCFS, EASY and first fit."""
    (tmp_path / "first-fit.toml").write_text(FIRST_FIT)
    return str(tmp_path / "first-fit.toml")
