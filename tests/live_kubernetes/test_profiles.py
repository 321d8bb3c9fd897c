"""Several schedulerNames with a scheduler each in one process: each pod gets its own, and nothing is allocated twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, strategies

from poolwise.cli.live_kubernetes import _profiles
from poolwise.errors import InputError
from poolwise.interfaces import Changes, Decisions, Dispatcher, Queue, Reject, Scheduler, Snapshot, Start
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.profiles import ProfileScheduler
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS, SJF
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

FIRST = ListScheduler(order=FCFS(), backfill=NoBackfill(), placement=FirstNodes())
SHORTEST = ListScheduler(order=SJF(), backfill=NoBackfill(), placement=FirstNodes())
LABEL = "pod-group.scheduling.sigs.k8s.io"


def open_profiles(kube: FakeKubernetes, second: Scheduler = SHORTEST) -> DrivenPlatform:
    scheduler = ProfileScheduler({"poolwise": FIRST, "short": second})
    return kube.open(scheduler, profiles=scheduler.profiles)


def started(kube: FakeKubernetes) -> list[str]:
    return [start.pod.metadata.name for _, pods in kube.started for start in pods]


def test_each_pod_is_ordered_by_the_scheduler_of_its_profile() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="1"), make.node("n1", cpu="2"))
    names = {"poolwise": "1", "short": "2"}
    for name, cpu in names.items():
        for k, seconds in enumerate((30, 20, 10)):
            kube.add(make.pod(f"{name}-{k}", cpu=cpu, seconds=seconds, schedulerName=name))
    kube.add(make.pod("foreign", cpu="1", schedulerName="another"))
    driven = open_profiles(kube)
    for _ in range(6):
        for pod in list(driven.nodes()):
            kube.finish(f"default/{pod}")
        driven.settle()
    order = {name: [pod for pod in started(kube) if pod.startswith(name)] for name in names}
    assert order == {"poolwise": [f"poolwise-{k}" for k in range(3)], "short": [f"short-{k}" for k in (2, 1, 0)]}
    assert "foreign" not in driven.nodes()


def test_a_profile_sees_the_starts_of_the_others_in_the_same_pass_and_while_they_are_bound() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="2"), binds_at_once=False)
    for name in ("short", "poolwise"):
        kube.add(make.pod(name, cpu="2", schedulerName=name))
    driven = open_profiles(kube)
    assert started(kube) == ["poolwise"]
    kube.add(make.pod("late", cpu="2", schedulerName="short"))
    driven.settle()
    assert started(kube) == ["poolwise"]
    assert not driven.loop.result.refused


@given(seed=strategies.integers(0, 2**32), pods=strategies.integers(1, 16))
def test_profiles_never_allocate_a_device_or_a_core_twice(seed: int, pods: int) -> None:
    draw = random.Random(seed)
    kube = FakeKubernetes(*(make.node(f"n{k}", cpu="4") for k in range(2)), make.device_class("gpu", "gpu.example"))
    for k in range(2):
        kube.add(make.devices("gpu.example", f"n{k}", *({"name": f"g{i}"} for i in range(2)), node=f"n{k}"))
    kube.binds_at_once = False
    driven, made = open_profiles(kube), 0
    bound: set[int] = set()
    for _ in range(6 * pods + 6):
        if made < pods and draw.random() < 0.6:
            name, profile, claims = f"p{made}", draw.choice(["poolwise", "short"]), {}
            if draw.random() < 0.6:
                kube.add(make.claim(name, make.exactly("gpu")))
                claims = {"d": {"resourceClaimName": name}}
            cpu, seconds = str(draw.randint(1, 4)), draw.randint(1, 9)
            kube.add(make.pod(name, cpu=cpu, seconds=seconds, claims=claims, schedulerName=profile))
            made += 1
        elif pending := [(run, pods) for run, pods in kube.started if run not in bound]:
            run, starting = draw.choice(pending)
            bound.add(run)
            kube.complete_start(run, starting)
        elif running := [name for name in driven.nodes() if not kube.get(Pod, f"default/{name}").terminated]:
            name = draw.choice(running)
            kube.finish(f"default/{name}")
            if ("default/" + name) in {key for kind, key in kube.objects if kind is ResourceClaim}:
                kube.release_claim(kube.get(ResourceClaim, f"default/{name}"), kube.get(Pod, f"default/{name}").metadata.uid)
        driven.settle()
        check_capacity(kube, bound)
    assert sorted(started(kube)) == sorted(f"p{k}" for k in range(made)), "a pod is lost, or started twice"


def check_capacity(kube: FakeKubernetes, bound: set[int]) -> None:
    """Count what pods hold that run or are being bound."""
    cores, devices = Counter[str](), Counter[tuple[str, str]]()
    for _, pods in kube.started:
        for start in pods:
            if kube.get(Pod, start.pod.metadata.key).terminated:
                continue
            cores[start.node] += int(str(start.pod.spec.containers[0].resources.requests["cpu"]))
            for write in start.claims:
                assert write.allocation is not None
                devices.update((result.pool, result.device) for result in write.allocation.devices.results)
    assert all(count <= 4 for count in cores.values()), cores
    assert all(count == 1 for count in devices.values()), devices


def test_gang_with_pods_of_two_profiles_is_reported() -> None:
    labels = {LABEL: "gang", f"{LABEL}/min-available": "2"}
    kube = FakeKubernetes(make.node("n0"), make.pod("a", labels=labels), make.pod("b", labels=labels, schedulerName="short"))
    open_profiles(kube)
    assert not kube.started
    assert {text for text in kube.messages.values()} == {
        "the pods of group default/gang have different values of spec.schedulerName: poolwise, short"
    }


class RejectFirst(Scheduler, Dispatcher):
    """Rejects the first job if it takes a minute, else starts it on the first node."""

    def open(self, machine: object, seed: int) -> Dispatcher:
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        if not len(queue):
            return Decisions()
        job = queue.job(int(queue.jobs[0]))
        if job.requested > 50 * 10**9:
            return Decisions((Reject(job.index, "too long"),))
        return Decisions((Start(job.index, job.numbers, snapshot.machine.placement({0: {"cores": 1000}})),))


def test_rejection_by_one_profile_does_not_delay_its_other_jobs_when_another_profile_starts_some() -> None:
    kube = FakeKubernetes(make.node("n0"), make.pod("p"))
    kube.add(make.pod("s0", seconds=60, schedulerName="short"))
    kube.add(make.pod("s1", seconds=10, schedulerName="short"))
    driven = open_profiles(kube, RejectFirst())
    assert sorted(driven.nodes()) == ["p", "s1"]
    assert kube.messages["default/s0"] == "too long"


def test_every_profile_must_support_the_cluster() -> None:
    kube = FakeKubernetes(make.node("n0"), make.pod("p"))

    class Never(RejectFirst):
        def check(self, machine: object, jobs: object) -> None:
            raise InputError("needs tapes")

    with pytest.raises(InputError, match="needs tapes"):
        open_profiles(kube, Never())


def test_profile_options_name_a_file_for_each_scheduler_name() -> None:
    assert _profiles("poolwise", "a.toml", ["short=b.toml", "long=catalog:fm-easy"]) == {
        "poolwise": "a.toml", "short": "b.toml", "long": "catalog:fm-easy"
    }  # fmt: skip
    for wrong in (["short"], ["=b.toml"], ["short="], ["poolwise=b.toml"], ["short=b.toml", "short=c.toml"]):
        with pytest.raises(InputError) as error:
            _profiles("poolwise", "a.toml", wrong)
        assert error.value.field == "--profile"
