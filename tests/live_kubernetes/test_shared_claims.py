"""Claims that are made by hand: policies count devices for them until somebody has given them some."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.pod_runs import PodRuns
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import Driven, PlayedCluster
from tests.live.kubernetes import objects as make

SECONDS = itertools.count()


def cluster(*devices: int) -> PlayedCluster:
    """Nodes of four cores with so many devices each."""
    made = PlayedCluster(make.device_class("gpu", "gpu.example"), *(make.node(f"n{k}", cpu="4") for k in range(len(devices))))
    for k, size in enumerate(devices):
        made.add(make.devices("gpu.example", f"n{k}", *({"name": f"g{i}"} for i in range(size)), node=f"n{k}"))
    return made


def add_pod(
    made: PlayedCluster, name: str, *claims: str, cpu: str = "1", seconds: int | None = None, group: str = "", size: int = 1
) -> None:
    """A pod that is younger than those before it."""
    labels = {"pod-group.scheduling.sigs.k8s.io": group, "pod-group.scheduling.sigs.k8s.io/min-available": str(size)}
    uses = {f"c{k}": {"resourceClaimName": claim} for k, claim in enumerate(claims)}
    one = make.pod(name, cpu=cpu, seconds=seconds, claims=uses, labels=labels if group else {})
    hour, second = divmod(next(SECONDS) % 40000, 3600)
    one["metadata"]["creationTimestamp"] = f"2026-11-22T{hour:02d}:{second // 60:02d}:{second % 60:02d}Z"
    made.add(one)


def finish(driven: Driven, name: str) -> None:
    """Let a pod succeed; Kubernetes gives the devices of a claim back when nobody uses it any more."""
    made = driven.cluster
    made.finish(f"default/{name}")
    uid = made.get(Pod, f"default/{name}").metadata.uid
    for kind, key in list(made.objects):
        if kind is ResourceClaim and any(user.uid == uid for user in made.get(kind, key).status.reserved_for):
            made.release_claim(made.get(kind, key), uid)


def asked(driven: Driven) -> dict[str, dict[str, int]]:
    """What the jobs that wait ask for, as policies see it."""
    table = driven.platform.table
    return {
        job.name: {name: int(column[job.row]) for name, column in table.requests.items() if column[job.row]}
        for job in driven.platform.units.jobs()
        if job.run is None
    }


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the jobs that policies have started."""
    found: list[str] = []
    start = PodRuns.start

    def noted(self, decision, job, *more):
        found.append(job.name.partition("/")[2])
        return start(self, decision, job, *more)

    monkeypatch.setattr(PodRuns, "start", noted)
    return found


def test_pods_with_claims_of_their_own_wait_for_devices(tries: list[str]) -> None:
    made = cluster(2)
    for k in range(5):
        made.add(make.claim(f"c{k}", make.exactly("gpu")))
        add_pod(made, f"p{k}", f"c{k}")
    driven = made.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    assert tries == ["p0", "p1"] and set(driven.nodes()) == {"p0", "p1"}
    finish(driven, "p0")
    driven.settle()
    assert tries == ["p0", "p1", "p2"]


def test_who_comes_to_a_claim_with_devices_needs_none(tries: list[str]) -> None:
    made = cluster(1)
    made.add(make.claim("shared", make.exactly("gpu")))
    for k in range(3):
        add_pod(made, f"p{k}", "shared")
    driven = made.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    driven.settle()
    assert set(driven.nodes()) == {"p0", "p1", "p2"} and tries == ["p0", "p1", "p2"]


def test_a_claim_that_loses_its_devices_asks_for_them_again() -> None:
    made = cluster(1)
    made.add(make.claim("shared", make.exactly("gpu")))
    made.add(make.claim("other", make.exactly("gpu")))
    add_pod(made, "first", "shared")
    driven = made.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    add_pod(made, "large", "shared", cpu="4")
    driven.settle()
    assert "gpu.example" not in str(asked(driven)["default/large"])
    with_device = {"cores": 4000, "memory": 1024, "pods": 1}
    assert asked(driven) == {"default/large": with_device}
    finish(driven, "first")
    driven.settle()
    assert set(driven.nodes()) == {"first", "large"}
    add_pod(made, "again", "shared")
    add_pod(made, "else", "other")
    driven.settle()
    finish(driven, "large")
    driven.settle()
    assert set(driven.nodes()) == {"first", "large", "again"}
    counted = asked(driven)["default/else"]
    assert len(counted) == 4 and 1 in counted.values()


def test_a_pod_in_front_is_waited_for() -> None:
    """EASY keeps a device for the pod in front, though its claim is made by hand."""
    made = cluster(2)
    for name, many, seconds in (("a", 1, 10), ("b", 2, 10), ("c", 1, 100)):
        made.add(make.claim(name, make.exactly("gpu", count=many)))
        add_pod(made, name, name, seconds=seconds)
    driven = made.open(ListScheduler(backfill=Easy(), placement=EmptiestNodes()))
    assert set(driven.nodes()) == {"a"}
    finish(driven, "a")
    driven.settle()
    assert set(driven.nodes()) == {"a", "b"}


def test_a_group_asks_for_the_least_of_its_pods(tries: list[str]) -> None:
    """One pod of a group without a claim and one with three devices, which are there: policies do not ask for six."""
    made = cluster(3, 0)
    made.add(make.claim("three", make.exactly("gpu", count=3)))
    add_pod(made, "a", "three", group="g", size=2)
    add_pod(made, "b", group="g", size=2)
    assert set(made.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())).nodes()) == {"a", "b"}


def test_a_claim_that_a_group_shares_is_counted_when_it_starts() -> None:
    made = cluster(1)
    made.add(make.claim("shared", make.exactly("gpu")))
    for name in "ab":
        add_pod(made, name, "shared", group="g", size=2)
    assert set(made.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())).nodes()) == {"a", "b"}


_pods = st.tuples(st.lists(st.integers(0, 3), max_size=2, unique=True), st.sampled_from(["1", "2", "4"]), st.integers(0, 2))


@settings(max_examples=60, deadline=None)
@given(
    devices=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    counts=st.lists(st.integers(1, 2), min_size=4, max_size=4),
    steps=st.lists(st.one_of(_pods, st.integers(0, 9), st.just("again")), min_size=3, max_size=25),
)
def test_rows_are_what_a_scheduler_that_begins_anew_would_make(devices: list[int], counts: list[int], steps: list) -> None:
    """Pods with claims that they share come and end, one of the claims is deleted and made again."""
    made = cluster(*devices)
    for k, count in enumerate(counts):
        made.add(make.claim(f"c{k}", make.exactly("gpu", count=count)))
    scheduler = ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())
    driven = made.open(scheduler)
    for number, step in enumerate(steps):
        if step == "again":
            claim = made.get(ResourceClaim, "default/c0")
            if claim.status.allocation is None:
                made.remove(ResourceClaim, "default/c0")
                made.add(make.claim("c0", make.exactly("gpu")))
        elif isinstance(step, int):
            at_work = [n for n in driven.nodes() if made.get(Pod, f"default/{n}").status.phase == "Running"]
            if at_work:
                one = at_work[step % len(at_work)].partition("-")[0]  # pods of a group give back what they have together
                for name in [name for name in at_work if name.partition("-")[0] == one]:
                    finish(driven, name)
        else:
            claims, cpu, group = step
            size = {"group": f"g{number}", "size": 2} if group == 1 else {}
            for k in range(2 if size else 1):
                add_pod(made, f"p{number}-{k}", *(f"c{k}" for k in claims), cpu=cpu, **size)
        driven.settle()
        fresh = PlayedCluster(binds=False)
        for one in made.objects.values():
            fresh.put(msgspec.convert(msgspec.to_builtins(one), type(one)))
        opened = fresh.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
        assert asked(opened) == asked(driven)
        assert {run.job for run in driven.platform.runs.active.values()} <= driven.platform.units.jobs()
        assert not fresh.started, "what could start has started"
