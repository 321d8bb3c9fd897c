"""What pods are told that are left alone, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.pod_messages import SETTLING, PodMessages
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND
from tests.helpers.played_cluster import PlayedCluster
from tests.live.kubernetes import objects as make

_steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]), st.booleans(), st.integers(0, 4)), min_size=1, max_size=15
)


@given(_steps)
def test_what_stands_for_a_while_is_told_once(steps: list[tuple[int, str | None, bool, int]]) -> None:
    """Pods are left alone for a reason, or no longer; what holds no longer is never told, what stands is never forgotten."""
    steady = [0]
    clock = LiveClock(0, wall=lambda: 0, steady=lambda: steady[0])
    notes, told = PodMessages(clock), dict[str, str]()
    first: dict[str, int] = {}  # pod -> since when there is something to be told
    for pod, why, settling, seconds in steps:
        key = f"p{pod}"
        if why is None:
            notes.forget(key)
            told.pop(key, None)
            first.pop(key, None)
        else:
            if notes.why.get(key) != why:
                told.pop(key, None)
                first.setdefault(key, clock.now)
                if not settling:
                    first[key] = clock.now - SETTLING
            notes.leave([key], why, settling=settling)
        for _ in range(seconds + 1):
            now = notes.pop_due()
            assert not now.keys() & told.keys()
            assert now == {key: notes.why[key] for key, since in first.items() if clock.now >= since + SETTLING}
            told |= now
            first = {key: since for key, since in first.items() if key not in now}
            if first:
                assert clock.left is not None and clock.left <= SETTLING / SECOND  # it will be asked again in time
            steady[0] += SECOND
            clock.tick()
            clock.ring()


def test_only_what_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is made right after its pod, one that is not, and what will never be served."""
    monkeypatch.setattr("poolwise.live.kubernetes.pod_messages.SETTLING", SECOND // 10)
    made = PlayedCluster(make.node("n0"), make.device_class("gpu", "gpu.example"))
    made.add(make.devices("gpu.example", "n0", {"name": "g0"}, {"name": "g1"}, node="n0"))
    made.add(make.claim("before", make.exactly("gpu")))
    driven = made.open(ListScheduler())
    made.add(make.pod("late", claims={"g": {"resourceClaimName": "late"}}))
    made.add(make.pod("never", claims={"g": {"resourceClaimName": "never"}}))
    made.add(make.pod("port", containers=[{"name": "main", "image": "none", "ports": [{"hostPort": 80}]}]))
    driven.settle()
    assert set(made.said) == {"default/port"} and "ports" in made.said["default/port"]
    made.add(make.claim("late", make.exactly("gpu")))
    driven.settle()
    assert set(driven.nodes()) == {"late"}
    while "default/never" not in made.said:
        driven.later()
    assert made.said["default/never"] == "claim default/never does not exist" and "default/late" not in made.said
