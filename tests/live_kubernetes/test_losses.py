"""Starts whose devices or nodes vanish while they wait: they are undone, and the pods start elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.start_waits import StartWaits
from poolwise.live.kubernetes.starts import StartFailed
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import DrivenPlatform, FakeKubernetes
from tests.live.kubernetes import objects as make

FIRST_FIT = ListScheduler(placement=FirstNodes())
LABEL = "pod-group.scheduling.sigs.k8s.io"


def waiting_start(*names: str) -> tuple[FakeKubernetes, DrivenPlatform]:
    """Pods of a gang that wait until the devices of node n0 are attached; n1 offers as many."""
    kube = FakeKubernetes(make.node("n0"), make.node("n1"), make.device_class("gpu", "gpu.example"), binds_at_once=False)
    for node in ("n0", "n1"):
        kube.add(make.devices("gpu.example", node, *({"name": f"g{k}"} for k in range(len(names))), node=node))
    for name in names:
        kube.add(make.claim(name, make.exactly("gpu")))
        labels = {LABEL: "gang", f"{LABEL}/min-available": str(len(names))}
        kube.add(make.pod(name, labels=labels, claims={"g": {"resourceClaimName": name}}))
    driven = kube.open(FIRST_FIT)
    ((_, pods),) = kube.started
    assert {start.node for start in pods} == {"n0"}
    kube.reserve_claims(pods)
    return kube, driven.settle()


def lose(kube: FakeKubernetes, what: str) -> None:
    if what == "slice withdrawn":
        kube.remove(ResourceSlice, "gpu-example-n0")
    elif what == "node deleted":
        kube.remove(Node, "n0")
    else:
        kube.add(make.taint_rule("broken", "sick", "NoExecute", driver="gpu.example", pool="n0"))


def advance(driven: DrivenPlatform, seconds: float) -> None:
    driven._steady += int(seconds * SECOND)
    if (batch := driven.platform.batch([])) is not None:
        driven.loop.step(batch)
    driven.settle()


@pytest.mark.parametrize("what", ["slice withdrawn", "node deleted", "devices tainted"])
@pytest.mark.parametrize("names", ["a", "ab"])
def test_start_that_lost_its_devices_is_undone_and_the_pods_start_elsewhere(names: str, what: str) -> None:
    kube, driven = waiting_start(*names)
    lose(kube, what)
    driven.settle()
    assert not kube.abandoned and set(kube.messages) == {f"default/{name}" for name in names}
    assert all("the start is undone in 2 s unless it returns" in message for message in kube.messages.values())
    kube.binds_at_once = True
    advance(driven, 2.0)
    assert [number for number, _ in kube.abandoned] == [0]
    assert not list(driven.platform.snapshot().runs())
    for job in driven.platform.pod_jobs.jobs():
        job.not_before = 0  # the delay counts in real time
    advance(driven, 1.0)
    assert driven.nodes() == dict.fromkeys(names, "n1")
    for name in names:
        assert [device.pool for device in kube.get(ResourceClaim, f"default/{name}").allocated_devices] == ["n1"]


def test_start_continues_if_its_devices_return_in_time() -> None:
    kube, driven = waiting_start("a")
    slice = kube.get(ResourceSlice, "gpu-example-n0")
    kube.remove(ResourceSlice, "gpu-example-n0")
    driven.settle()
    advance(driven, 1.0)
    kube.put(slice)
    driven.settle()
    advance(driven, 5.0)
    assert not kube.abandoned
    kube.complete_start(*kube.started[0])
    assert driven.settle().nodes() == {"a": "n0"}


def test_pod_does_not_start_with_an_allocated_device_that_is_no_longer_published() -> None:
    kube, driven = waiting_start("a")
    kube.complete_start(*kube.started[0])
    driven.settle()
    kube.remove(ResourceSlice, "gpu-example-n0")
    kube.add(make.pod("later", claims={"g": {"resourceClaimName": "a"}}))
    driven.settle()
    assert len(kube.started) == 1
    assert "is no longer published" in driven.loop.aside[driven.platform.pod_jobs.by_pod["default/later"].row]


def test_first_failure_of_a_start_ends_the_waits_of_its_other_pods() -> None:
    async def check() -> None:
        waits = StartWaits()
        with waits.wait() as event:
            waits.fail(StartFailed("first"))
            waits.fail(StartFailed("second"))
            await asyncio.wait_for(event.wait(), 1)
        with pytest.raises(StartFailed, match="first"):
            waits.check()

    asyncio.run(check())
