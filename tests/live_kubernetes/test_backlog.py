"""Pods that do not fit delay no other pod."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from poolwise.cli.live import named_scheduler, rare_full_collections
from poolwise.live.kubernetes.platform import KubernetesPlatform
from poolwise.model import Wait
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live.kubernetes.shipped_files import shipped_scheduler

BACKLOG, PODS = 5000, 60


@pytest.fixture(autouse=True)
def all_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queue the pods that no node could run too."""
    monkeypatch.setattr(KubernetesPlatform, "withholds_infeasible", False)


def test_passes_with_a_long_queue_start_no_full_garbage_collection(tmp_path: Path) -> None:
    (tmp_path / "scheduler.toml").write_text(shipped_scheduler())
    kube = FakeKubernetes(make.node("n0"), *(make.pod(f"huge{k:04d}", cpu="64", seconds=None) for k in range(BACKLOG)))
    driven = kube.open(named_scheduler(str(tmp_path / "scheduler.toml")))
    collected: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        collected.extend([info["generation"]] if phase == "start" else [])

    before = gc.get_threshold()
    with rare_full_collections():
        gc.collect()
        gc.callbacks.append(note)
        try:
            for k in range(PODS):
                kube.add(make.pod(f"p{k:02d}", cpu="100m", memory="1Mi", seconds=None))
                driven.settle()
        finally:
            gc.callbacks.remove(note)
    assert len(driven.nodes()) == PODS
    assert 2 not in collected
    assert gc.get_threshold() == before


def test_waits_are_committed_only_if_their_reason_is_new(tmp_path: Path) -> None:
    (tmp_path / "scheduler.toml").write_text(shipped_scheduler())
    kube = FakeKubernetes(make.node("n0"), *(make.pod(f"huge{k}", cpu="64", seconds=None) for k in range(3)))
    driven, waits = kube.open(named_scheduler(str(tmp_path / "scheduler.toml"))), list[int]()
    for pod in (make.pod("p0", seconds=None), make.pod("huge3", cpu="64", seconds=None), make.pod("p1", seconds=None)):
        kube.add(pod)
        batch = driven.platform.batch([kube.events.get()])
        assert batch is not None
        waits.append(sum(isinstance(decision, Wait) for decision in driven.loop.step(batch).committed))
        driven.settle()
    assert waits == [0, 1, 0]
    assert sorted(driven.nodes()) == ["p0", "p1"]
