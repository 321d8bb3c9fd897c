"""Rebuilds of the machine are batched when many nodes change one after the other."""

import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from poolwise.live.kubernetes import platform
from poolwise.live.kubernetes.platform import REBUILD_PAUSE
from poolwise.live.kubernetes.state import ClusterState
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.helpers.timed_queue import TimedQueue
from tests.live.kubernetes import objects as make

TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
NODES, BETWEEN_S, REBUILD_S = 60, 0.01, 0.03


def test_rebuilding_the_machine_takes_at_most_a_quarter_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty nodes become ready within 0.6 s, and each rebuild takes 0.03 s."""
    kube, events = FakeKubernetes(), TimedQueue()
    kube.events = events  # type: ignore[assignment]
    monkeypatch.setattr(platform, "time", SimpleNamespace(monotonic=lambda: events.now, time_ns=time.time_ns))
    for item in (*(make.node(f"n{k}", taints=[TAINT]) for k in range(NODES)), make.pod("p", cpu="16")):
        kube.add(item)
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    begun: list[float] = []
    rebuild_machine = ClusterState.rebuild_machine

    def slow(self: ClusterState, jobs: list[object]) -> None:
        begun.append(events.now)
        events.now += REBUILD_S
        rebuild_machine(self, jobs)  # type: ignore[arg-type]

    monkeypatch.setattr(ClusterState, "rebuild_machine", slow)
    for k in range(NODES):
        events.schedule((k + 1) * BETWEEN_S, lambda k=k: kube.add(make.node(f"n{k}")))  # type: ignore[misc]
    events.schedule(NODES * BETWEEN_S, driven.platform.stop)
    batches = driven.platform.events()
    next(batches)
    for batch in batches:
        driven.loop.step(batch)
    assert len(begun) > 1
    pause = (1 + REBUILD_PAUSE) * REBUILD_S - 1e-9  # rounding of the simulated times
    assert all(after - before >= pause for before, after in pairwise(begun))
    assert driven.settle().nodes() == {"p": "n0"}
    assert all(not node.spec.taints for node in driven.platform.cache.nodes.values())
