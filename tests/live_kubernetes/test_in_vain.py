"""Placement failures are cached: of pods with equal requests that fit nowhere, one is tried per plan."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.live.kubernetes import placement, platform
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make


def driven_on(sizes: list[int], racks: list[int]) -> DrivenPlatform:
    """Nodes with `sizes` local devices and two racks with `racks` devices, which placements on nodes do not model."""
    names = [f"n{k}" for k in range(len(sizes))]
    kube = FakeKubernetes(
        make.device_class("gpu", "gpu.example"), *(make.node(name, cpu="3", rack=f"r{k % 2}") for k, name in enumerate(names))
    )
    for name, size in zip(names, sizes, strict=True):
        if size:
            kube.add(make.devices("gpu.example", name, *({"name": f"g{i}"} for i in range(size)), node=name))
    for k, size in enumerate(racks):
        kube.add(make.devices("gpu.example", f"r{k}", *({"name": f"g{i}"} for i in range(size)), rack=f"r{k}"))
    return kube.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))


def add(driven: DrivenPlatform, name: str, devices: int, group: str = "", size: int = 1) -> None:
    labels = {"pod-group.scheduling.sigs.k8s.io": group, "pod-group.scheduling.sigs.k8s.io/min-available": str(size)}
    driven.cluster.add(make.claim(name, make.exactly("gpu", count=devices)))
    uses = {"g": {"resourceClaimName": name}}
    driven.cluster.add(make.pod(name, claims=uses, labels=labels if group else {}))


def test_one_of_many_equal_pods_is_tried_on_every_node(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, allocate = [0], placement.allocate

    def counting(*given, **more):
        tries[0] += 1
        return allocate(*given, **more)

    driven = driven_on([1] * 10, [0, 0])
    monkeypatch.setattr(placement, "allocate", counting)
    for k in range(200):
        add(driven, f"p{k:03d}", 1)
    driven.settle()
    assert len(driven.nodes()) == 10 and tries[0] <= 200
    tries[0] = 0
    driven.cluster.finish("default/p000")
    driven.settle()
    assert tries[0] <= 30  # some passes, each with ten failed tries


def test_one_of_many_equal_pods_is_tried_on_one_node_per_rack(monkeypatch: pytest.MonkeyPatch) -> None:
    tries, allocate = [0], placement.allocate

    def counting(*given, **more):
        tries[0] += 1
        return allocate(*given, **more)

    driven = driven_on([0] * 40, [3, 3])
    for k in range(6):
        add(driven, f"f{k}", 1)
    assert len(driven.settle().nodes()) == 6
    monkeypatch.setattr(placement, "allocate", counting)
    add(driven, "more", 1)
    driven.settle()
    assert len(driven.nodes()) == 6 and 0 < tries[0] <= 2 * driven.loop.result.passes


_groups = st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=8)


def test_failure_of_a_deleted_claim_does_not_affect_other_pods() -> None:
    driven = driven_on([0, 0], [2, 2])
    leaving = make.claim("a", make.exactly("gpu"))
    leaving["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    driven.cluster.add(leaving)
    driven.cluster.add(make.pod("a", claims={"g": {"resourceClaimName": "a"}}))
    add(driven, "b", 1)
    assert set(driven.settle().nodes()) == {"b"}


@settings(max_examples=40, deadline=None)
@example([0], [2, 0], [[[1, 2], [2]]])
@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), min_size=2, max_size=2),
    st.lists(_groups, min_size=1, max_size=2),
)
def test_cached_failures_do_not_change_placements(sizes: list[int], racks: list[int], rounds: list[list[list[int]]]) -> None:
    """Groups of pods that request devices, compared with trying each pod on every node."""

    def nodes(remembers: bool) -> list[dict[str, str]]:
        placements = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                platform, "matching_failures", lambda *_: {}
            )  # otherwise pods that are set aside would not be placed at all
            if not remembers:
                patch.setattr(placement, "request_key", lambda *_: b"")
            driven = driven_on(sizes, racks)
            for turn, groups in enumerate(rounds):
                for k, wishes in enumerate(groups):
                    for i, wish in enumerate(wishes):
                        add(driven, f"r{turn}-{k}-{i}", wish, f"r{turn}-{k}" if len(wishes) > 1 else "", len(wishes))
                placements.append(driven.settle().nodes())
        return placements

    assert nodes(True) == nodes(False)
