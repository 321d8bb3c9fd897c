"""Devices that two schedulers allocate at the same time are reported, and released by one of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from poolwise.live.kubernetes import reconciler
from poolwise.live.kubernetes.metrics import KubernetesMetrics
from poolwise.live.kubernetes.objects.claim import Consumer, ResourceClaim
from poolwise.live.kubernetes.objects.meta import OwnerReference
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.starts import Bound
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

SCHEDULER = ListScheduler(placement=FirstNodes())


def running(monkeypatch: pytest.MonkeyPatch, logged: list[dict[str, Any]]) -> tuple[DrivenPlatform, KubernetesMetrics]:
    """Return a cluster in which the pod `mine` uses its only device."""
    monkeypatch.setattr(reconciler, "log_event", lambda event, level, **fields: logged.append(fields))
    kube, metrics = FakeKubernetes(make.device_class("gpu", "gpu.example"), make.node("n0")), KubernetesMetrics()
    kube.add(make.devices("gpu.example", "n0", {"name": "g0"}, node="n0"))
    kube.add(make.claim("mine", make.exactly("gpu")))
    kube.add(make.pod("mine", seconds=None, claims={"g": {"resourceClaimName": "mine"}}))
    return kube.open(SCHEDULER, metrics=metrics), metrics


def allocate_again(driven: DrivenPlatform, manager: str, when: str, name: str = "other") -> None:
    """Let another scheduler allocate the same device to a pod."""
    kube = driven.cluster
    taken = kube.get(ResourceClaim, "default/mine").status.allocation
    pod = kube.add(make.pod(name, seconds=None, schedulerName=manager, nodeName="n0"))
    claim = kube.add(make.claim(name, make.exactly("gpu")))
    user = Consumer(resource="pods", name=name, uid=pod.metadata.uid)
    allocation = msgspec.structs.replace(taken, allocation_timestamp=when)
    status = msgspec.structs.replace(claim.status, allocation=allocation, reserved_for=[user])
    kube.put(msgspec.structs.replace(claim, status=status))
    driven.settle()


def test_device_allocated_twice_during_the_run_is_reported_once_and_the_later_claim_releases_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[dict[str, Any]] = []
    driven, metrics = running(monkeypatch, logged)
    allocate_again(driven, "poolwise", "2099-01-01T00:00:00Z")
    driven.settle()
    claims = ["default/mine", "default/other"]
    assert logged == [{"device": "gpu.example/n0/g0", "claims": claims}] and metrics.double_allocations._value.get() == 1
    events = [event for event in driven.cluster.reported if event[1] == "DeviceAllocatedTwice"]
    note = "device gpu.example/n0/g0 is allocated to the claims default/mine, default/other"
    assert sorted(events) == [(key, "DeviceAllocatedTwice", note) for key in claims]
    assert driven.cluster.stopped == [("default/other", "a device is allocated to two claims")]


def test_owner_of_a_claim_without_a_reservation_gets_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reservation of a claim is released while another claim still holds the device."""
    driven, _ = running(monkeypatch, [])
    kube = driven.cluster
    taken = kube.get(ResourceClaim, "default/mine").status.allocation
    pod = kube.add(make.pod("waits", cpu="999", seconds=None))
    claim = kube.add(make.claim("waits-g", make.exactly("gpu")))
    owner = OwnerReference(kind="Pod", name="waits", uid=pod.metadata.uid)
    metadata = msgspec.structs.replace(claim.metadata, owner_references=[owner])
    status = msgspec.structs.replace(claim.status, allocation=taken)
    kube.put(msgspec.structs.replace(claim, metadata=metadata, status=status))
    driven.settle()
    assert {key for key, reason, _ in kube.reported if reason == "DeviceAllocatedTwice"} == {"default/mine", "default/waits"}


def allocation_time(driven: DrivenPlatform) -> str:
    """Return the time at which `mine` got its device."""
    when = driven.cluster.get(ResourceClaim, "default/mine").status.allocation.allocation_timestamp
    assert when
    return str(when)


@pytest.mark.parametrize(("name", "evicted"), [("also", "default/mine"), ("other", "default/other")])
def test_claim_that_sorts_first_keeps_a_device_allocated_twice_in_one_second(
    monkeypatch: pytest.MonkeyPatch, name: str, evicted: str
) -> None:
    driven, _ = running(monkeypatch, [])
    allocate_again(driven, "poolwise", allocation_time(driven), name)
    assert driven.cluster.stopped == [(evicted, "a device is allocated to two claims")]


def test_exactly_one_of_two_schedulers_yields_a_device_allocated_twice_in_one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them sees its own claim as `mine`: for one of them it sorts before that of the other, for the other after it."""
    stopped = []
    for name in ("also", "other"):
        driven, _ = running(monkeypatch, [])
        allocate_again(driven, "another", allocation_time(driven), name)
        stopped.append(driven.cluster.stopped)
    assert stopped == [[("default/mine", "a device is allocated to two claims")], []]


def test_pod_is_evicted_if_another_scheduler_does_not_release_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[dict[str, Any]] = []
    driven, metrics = running(monkeypatch, logged)
    allocate_again(driven, "default-scheduler", "2099-01-01T00:00:00Z")
    assert len(logged) == 1 and not driven.cluster.stopped, "the other scheduler allocated it later"
    driven.wait_for_pass()
    assert driven.cluster.stopped == [("default/mine", "a device is allocated to two claims")]
    driven.cluster.add(make.pod("more", seconds=None))
    driven.settle()
    assert len(driven.cluster.stopped) == 1 and metrics.double_allocations._value.get() == 1


def test_pod_stays_if_the_other_scheduler_releases_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    driven, _ = running(monkeypatch, [])
    allocate_again(driven, "default-scheduler", "2099-01-01T00:00:00Z")
    driven.cluster.remove(Pod, "default/other")
    driven.cluster.remove(ResourceClaim, "default/other")
    driven.settle()
    for _ in range(3):
        if driven.platform.clock.seconds_left is not None:
            driven.wait_for_pass()
    assert not driven.cluster.stopped


def test_later_claim_yields_to_another_scheduler_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    driven, _ = running(monkeypatch, [])
    allocate_again(driven, "default-scheduler", "2000-01-01T00:00:00Z")
    assert driven.cluster.stopped == [("default/mine", "a device is allocated to two claims")]


def test_pod_whose_binding_the_watch_has_not_shown_yet_keeps_its_claim_until_it_is_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reconciler, "log_event", lambda *_, **__: None)
    kube = FakeKubernetes(make.device_class("gpu", "gpu.example"), make.node("n0"), binds_at_once=False)
    kube.add(make.devices("gpu.example", "n0", {"name": "g0"}, node="n0"))
    kube.add(make.claim("mine", make.exactly("gpu")))
    kube.add(make.pod("mine", seconds=None, claims={"g": {"resourceClaimName": "mine"}}))
    driven = kube.open(SCHEDULER)
    ((run, pods),) = kube.started
    kube.reserve_claims(pods)
    kube.events.put(Bound(run))
    driven.settle()
    allocate_again(driven, "another", "2000-01-01T00:00:00Z")
    assert not kube.released and [key for key, _ in kube.stopped] == ["default/mine"]
