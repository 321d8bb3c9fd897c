"""Nodes that change one after the other: the machine is built anew for many of them together."""

import threading
import time

import pytest

from poolwise.live.kubernetes.state import ClusterState
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import PlayedCluster
from tests.live.kubernetes import objects as make

TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def test_building_the_machine_takes_a_small_part_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty nodes become ready within 0.6 s, where building takes 0.03 s."""
    made = PlayedCluster(*(make.node(f"n{k}", taints=[TAINT]) for k in range(60)), make.pod("p", cpu="16"))
    driven = made.open(ListScheduler(placement=FirstNodes()))
    spent: list[float] = []
    reshape = ClusterState.reshape

    def slow(self: ClusterState, jobs: list[object]) -> dict[int, int]:
        begun = time.monotonic()
        time.sleep(0.03)
        rows = reshape(self, jobs)  # type: ignore[arg-type]
        spent.append(time.monotonic() - begun)
        return rows

    def become_ready() -> None:
        for k in range(60):
            made.add(make.node(f"n{k}"))
            time.sleep(0.01)
        driven.platform.stop()

    monkeypatch.setattr(ClusterState, "reshape", slow)
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
    assert len(spent) > 1 and sum(spent) < 0.5 * elapsed, f"{len(spent)} times, {sum(spent):.2f} of {elapsed:.2f} s"
    assert driven.nodes() == {"p": "n0"} and all(not node.spec.taints for node in driven.platform.mirror.nodes.values())
