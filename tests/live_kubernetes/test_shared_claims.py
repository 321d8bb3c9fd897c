"""Shareable claims: policies count their devices until the claims are allocated."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.platform import KubernetesPlatform
from poolwise.live.kubernetes.pod_runs import PodRuns
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.placement.nodes.placement import EmptiestNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

SECONDS = itertools.count()


def cluster(*devices: int) -> FakeKubernetes:
    """Nodes with four cores and the given numbers of devices."""
    kube = FakeKubernetes(make.device_class("gpu", "gpu.example"), *(make.node(f"n{k}", cpu="4") for k in range(len(devices))))
    for k, size in enumerate(devices):
        kube.add(make.devices("gpu.example", f"n{k}", *({"name": f"g{i}"} for i in range(size)), node=f"n{k}"))
    return kube


def add_pod(
    kube: FakeKubernetes, name: str, *claims: str, cpu: str = "1", seconds: int | None = None, group: str = "", size: int = 1
) -> None:
    """Add a pod that is younger than earlier ones."""
    labels = {"pod-group.scheduling.sigs.k8s.io": group, "pod-group.scheduling.sigs.k8s.io/min-available": str(size)}
    uses = {f"c{k}": {"resourceClaimName": claim} for k, claim in enumerate(claims)}
    manifest = make.pod(name, cpu=cpu, seconds=seconds, claims=uses, labels=labels if group else {})
    hour, second = divmod(next(SECONDS) % 40000, 3600)
    manifest["metadata"]["creationTimestamp"] = f"2026-11-22T{hour:02d}:{second // 60:02d}:{second % 60:02d}Z"
    kube.add(manifest)


def finish(driven: DrivenPlatform, name: str) -> None:
    """Let a pod succeed; as Kubernetes does, deallocate a claim once no pod uses it."""
    kube = driven.cluster
    kube.finish(f"default/{name}")
    uid = kube.get(Pod, f"default/{name}").metadata.uid
    for kind, key in list(kube.objects):
        if kind is ResourceClaim and any(user.uid == uid for user in kube.get(kind, key).status.reserved_for):
            kube.release_claim(kube.get(kind, key), uid)


def waiting_requests(driven: DrivenPlatform) -> dict[str, dict[str, int]]:
    """Return the requests of waiting jobs, as policies see them."""
    table = driven.platform.table
    return {
        job.name: {name: int(column[job.row]) for name, column in table.requests.items() if column[job.row]}
        for job in driven.platform.pod_jobs.jobs()
        if job.run is None
    }


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the jobs that policies tried to start."""
    names: list[str] = []
    start = PodRuns.start

    def recorded(self, decision, job, *more):
        names.append(job.name.partition("/")[2])
        return start(self, decision, job, *more)

    monkeypatch.setattr(PodRuns, "start", recorded)
    return names


def test_pods_with_their_own_claims_wait_for_devices(attempts: list[str]) -> None:
    kube = cluster(2)
    for k in range(5):
        kube.add(make.claim(f"c{k}", make.exactly("gpu")))
        add_pod(kube, f"p{k}", f"c{k}")
    driven = kube.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    assert attempts == ["p0", "p1"] and set(driven.nodes()) == {"p0", "p1"}
    finish(driven, "p0")
    driven.settle()
    assert attempts == ["p0", "p1", "p2"]


def test_pod_with_an_allocated_shared_claim_needs_no_device(attempts: list[str]) -> None:
    kube = cluster(1)
    kube.add(make.claim("shared", make.exactly("gpu")))
    for k in range(3):
        add_pod(kube, f"p{k}", "shared")
    driven = kube.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    driven.settle()
    assert set(driven.nodes()) == {"p0", "p1", "p2"} and attempts == ["p0", "p1", "p2"]


def test_deallocated_shared_claim_requests_devices_again() -> None:
    kube = cluster(1)
    kube.add(make.claim("shared", make.exactly("gpu")))
    kube.add(make.claim("other", make.exactly("gpu")))
    add_pod(kube, "first", "shared")
    driven = kube.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()))
    add_pod(kube, "large", "shared", cpu="4")
    driven.settle()
    assert "gpu.example" not in str(waiting_requests(driven)["default/large"])
    with_device = {"cores": 4000, "memory": 1024, "pods": 1}
    assert waiting_requests(driven) == {"default/large": with_device}
    finish(driven, "first")
    driven.settle()
    assert set(driven.nodes()) == {"first", "large"}
    add_pod(kube, "again", "shared")
    add_pod(kube, "else", "other")
    driven.settle()
    finish(driven, "large")
    driven.settle()
    assert set(driven.nodes()) == {"first", "large", "again"}
    requests = waiting_requests(driven)["default/else"]
    assert len(requests) == 4 and 1 in requests.values()


def test_devices_are_reserved_for_the_first_pod_in_the_queue() -> None:
    """EASY reserves a device for it, although its claim is shareable."""
    kube = cluster(2)
    for name, many, seconds in (("a", 1, 10), ("b", 2, 10), ("c", 1, 100)):
        kube.add(make.claim(name, make.exactly("gpu", count=many)))
        add_pod(kube, name, name, seconds=seconds)
    driven = kube.open(ListScheduler(backfill=Easy(), placement=EmptiestNodes()))
    assert set(driven.nodes()) == {"a"}
    finish(driven, "a")
    driven.settle()
    assert set(driven.nodes()) == {"a", "b"}


def test_gang_requests_the_smallest_claim_of_its_pods(attempts: list[str]) -> None:
    """One pod of the group has no claim and one claims all three devices; policies must not request six."""
    kube = cluster(3, 0)
    kube.add(make.claim("three", make.exactly("gpu", count=3)))
    add_pod(kube, "a", "three", group="g", size=2)
    add_pod(kube, "b", group="g", size=2)
    assert set(kube.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())).nodes()) == {"a", "b"}


def test_claim_shared_within_a_gang_is_checked_when_it_starts() -> None:
    kube = cluster(1)
    kube.add(make.claim("shared", make.exactly("gpu")))
    for name in "ab":
        add_pod(kube, name, "shared", group="g", size=2)
    assert set(kube.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())).nodes()) == {"a", "b"}


_pods = st.tuples(st.lists(st.integers(0, 3), max_size=2, unique=True), st.sampled_from(["1", "2", "4"]), st.integers(0, 2))


class QueueingPlatform(KubernetesPlatform):
    """Queues infeasible pods too: a claim that had devices may have made them feasible before a restart."""

    withholds_infeasible = False


@settings(max_examples=60, deadline=None)
@given(
    devices=st.lists(st.integers(0, 3), min_size=1, max_size=3),
    counts=st.lists(st.integers(1, 2), min_size=4, max_size=4),
    steps=st.lists(st.one_of(_pods, st.integers(0, 9), st.just("again")), min_size=3, max_size=25),
)
def test_job_rows_match_those_of_a_restarted_scheduler(devices: list[int], counts: list[int], steps: list) -> None:
    """Pods with shared claims come and go; one of the claims is deleted and created again."""
    kube = cluster(*devices)
    for k, count in enumerate(counts):
        kube.add(make.claim(f"c{k}", make.exactly("gpu", count=count)))
    scheduler = ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes())
    driven = kube.open(scheduler, QueueingPlatform)
    for number, step in enumerate(steps):
        if step == "again":
            claim = kube.get(ResourceClaim, "default/c0")
            if claim.status.allocation is None:
                kube.remove(ResourceClaim, "default/c0")
                kube.add(make.claim("c0", make.exactly("gpu")))
        elif isinstance(step, int):
            at_work = [n for n in driven.nodes() if kube.get(Pod, f"default/{n}").status.phase == "Running"]
            if at_work:
                prefix = at_work[step % len(at_work)].partition("-")[0]  # pods of a group release their claims together
                for name in [name for name in at_work if name.partition("-")[0] == prefix]:
                    finish(driven, name)
        else:
            claims, cpu, group = step
            size = {"group": f"g{number}", "size": 2} if group == 1 else {}
            for k in range(2 if size else 1):
                add_pod(kube, f"p{number}-{k}", *(f"c{k}" for k in claims), cpu=cpu, **size)
        driven.settle()
        fresh = FakeKubernetes(binds_at_once=False)
        for item in kube.objects.values():
            fresh.put(msgspec.convert(msgspec.to_builtins(item), type(item)))
        opened = fresh.open(ListScheduler(backfill=NoBackfill(), placement=EmptiestNodes()), QueueingPlatform)
        assert waiting_requests(opened) == waiting_requests(driven)
        assert {run.job for run in driven.platform.runs.active.values()} <= driven.platform.pod_jobs.jobs()
        assert not fresh.started, "every pod that fits has started"
