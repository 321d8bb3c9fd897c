"""Messages to users of pods that are not scheduled, and their delay."""

from hypothesis import given
from hypothesis import strategies as st

from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.pod_jobs import SETTLING, PodMessages
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

_steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None]), st.booleans(), st.integers(0, 4)), min_size=1, max_size=15
)


@given(_steps)
def test_each_lasting_reason_is_reported_once(steps: list[tuple[int, str | None, bool, int]]) -> None:
    """Reasons come and go: one that no longer holds is never reported, one that lasts always is."""
    steady = [0]
    clock = LiveClock(0, wall=lambda: 0, steady=lambda: steady[0])
    messages, reported = PodMessages(clock), dict[str, str]()
    first: dict[str, int] = {}  # pod -> time since when there is something to report
    for pod, why, settling, seconds in steps:
        key = f"p{pod}"
        if why is None:
            messages.forget(key)
            reported.pop(key, None)
            first.pop(key, None)
        else:
            if messages.reasons.get(key) != why:
                reported.pop(key, None)
                first.setdefault(key, clock.now)
                if not settling:
                    first[key] = clock.now - SETTLING
            messages.record([key], why, settling=settling)
        for _ in range(seconds + 1):
            now = messages.pop_due()
            assert not now.keys() & reported.keys()
            assert now == {key: messages.reasons[key] for key, since in first.items() if clock.now >= since + SETTLING}
            reported |= now
            first = {key: since for key, since in first.items() if key not in now}
            if first:
                assert clock.seconds_left is not None and clock.seconds_left <= SETTLING / SECOND  # a pass comes in time
            steady[0] += SECOND
            clock.tick()
            clock.pop_due()


def test_only_lasting_reasons_are_reported() -> None:
    """A claim that is created right after its pod, one that never is, and an unsupported field."""
    kube = FakeKubernetes(make.node("n0"), make.device_class("gpu", "gpu.example"))
    kube.add(make.devices("gpu.example", "n0", {"name": "g0"}, {"name": "g1"}, node="n0"))
    kube.add(make.claim("before", make.exactly("gpu")))
    driven = kube.open(ListScheduler())
    kube.add(make.pod("late", claims={"g": {"resourceClaimName": "late"}}))
    kube.add(make.pod("never", claims={"g": {"resourceClaimName": "never"}}))
    kube.add(make.pod("disk", volumes=[{"name": "v", "iscsi": {"iqn": "i"}}]))
    driven.settle()
    assert set(kube.messages) == {"default/disk"} and "iscsi" in kube.messages["default/disk"]
    kube.add(make.claim("late", make.exactly("gpu")))
    driven.settle()
    assert set(driven.nodes()) == {"late"}
    while "default/never" not in kube.messages:
        driven.wait_for_pass()
    assert kube.messages["default/never"] == "claim default/never does not exist" and "default/late" not in kube.messages
