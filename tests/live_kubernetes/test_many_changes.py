"""Rebuilds of the machine are batched when many nodes change one after the other."""

import threading
import time

import pytest

from poolwise.live.kubernetes.state import ClusterState
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def test_rebuilding_the_machine_takes_less_than_half_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty nodes become ready within 0.6 s, and each rebuild takes 0.03 s."""
    kube = FakeKubernetes(*(make.node(f"n{k}", taints=[TAINT]) for k in range(60)), make.pod("p", cpu="16"))
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    spent: list[float] = []
    rebuild_machine = ClusterState.rebuild_machine

    def slow(self: ClusterState, jobs: list[object]) -> dict[int, int]:
        begun = time.monotonic()
        time.sleep(0.03)
        rows = rebuild_machine(self, jobs)  # type: ignore[arg-type]
        spent.append(time.monotonic() - begun)
        return rows

    def become_ready() -> None:
        for k in range(60):
            kube.add(make.node(f"n{k}"))
            time.sleep(0.01)
        driven.platform.stop()

    monkeypatch.setattr(ClusterState, "rebuild_machine", slow)
    changes = threading.Thread(target=become_ready)
    begun = time.monotonic()
    changes.start()
    events = driven.platform.events()
    next(events)
    for batch in events:
        driven.loop.apply_events(batch)
    changes.join()
    elapsed = time.monotonic() - begun
    driven.settle()
    assert len(spent) > 1 and sum(spent) < 0.5 * elapsed, f"{len(spent)} rebuilds, {sum(spent):.2f} of {elapsed:.2f} s"
    assert driven.nodes() == {"p": "n0"} and all(not node.spec.taints for node in driven.platform.cache.nodes.values())
