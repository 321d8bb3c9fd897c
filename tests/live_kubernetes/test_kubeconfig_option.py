"""Commands that read a cluster once accept a kubeconfig file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from poolwise.cli import live_cluster
from poolwise.cli.explain import kubernetes as explain
from poolwise.cli.snapshot import kubernetes as snapshot
from poolwise.errors import InputError
from poolwise.live.kubernetes.access import Access

READERS = [lambda file: snapshot(Path("now"), "poolwise", "", file), lambda file: explain("p", "s", "poolwise", file)]


@pytest.mark.parametrize("read", READERS, ids=["snapshot", "explain"])
def test_kubeconfig_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any) -> None:
    files: list[Path | None] = []

    def discover(file: Path | None = None) -> Access:
        files.append(file)
        raise InputError("not a cluster")

    monkeypatch.setattr(live_cluster, "require_packages", lambda *_: None)
    monkeypatch.setattr(Access, "discover", discover)
    with pytest.raises(InputError, match="not a cluster"):
        read(tmp_path / "config")
    assert files == [tmp_path / "config"]
