"""The scheduler file in deploy/ models rack devices, so that pods that wait for one cost nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from poolwise.cli.live import named_scheduler
from poolwise.live.kubernetes import pod_runs
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.shipped_files import shipped_scheduler


def test_pods_that_wait_for_rack_devices_are_not_tried_in_each_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    original = pod_runs.place
    monkeypatch.setattr(pod_runs, "place", lambda start, job, *more: tried.append(job.name) or original(start, job, *more))
    (tmp_path / "scheduler.toml").write_text(shipped_scheduler())
    kube = FakeKubernetes(make.node("n0", cpu="64"), make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "r0", {"name": "g0"}, rack="r0"))
    for k in range(20):
        kube.add(make.claim(f"p{k:02d}", make.exactly("gpu")))
        kube.add(make.pod(f"p{k:02d}", seconds=60, claims={"g": {"resourceClaimName": f"p{k:02d}"}}))
    driven = kube.open(named_scheduler(str(tmp_path / "scheduler.toml")))
    assert driven.nodes() == {"p00": "n0"} and tried == ["default/p00"] and not driven.loop.aside
