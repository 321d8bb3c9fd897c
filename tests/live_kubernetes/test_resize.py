"""Pods whose requests or tolerations change while they wait, start or run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from poolwise.live.kubernetes.demand import node_amounts
from poolwise.live.kubernetes.objects.meta import Condition, ResourceRequests
from poolwise.live.kubernetes.objects.pod import ContainerStatus, Pod
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

INFEASIBLE = Condition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = Condition(type="PodResizePending", status="True", reason="Deferred")


def resize(kube: FakeKubernetes, name: str, cpu: str, *, applied: str = "", admitted: str = "", **status: Any) -> Pod:
    """Set the desired cores of a pod, and those that its status reports."""
    pod = kube.get(Pod, f"default/{name}")
    main = msgspec.structs.replace(pod.spec.containers[0], resources=ResourceRequests(requests={"cpu": cpu}))
    reported = ContainerStatus(
        name="main",
        resources=ResourceRequests(requests={"cpu": applied}) if applied else None,
        allocated_resources={"cpu": admitted} if admitted else {},
    )
    changed = msgspec.structs.replace(pod.status, container_statuses=[reported], **status)
    pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=[main]), status=changed)
    resized: Pod = kube.put(pod)
    return resized


@pytest.mark.parametrize(
    ("desired", "applied", "admitted", "condition", "cores"),
    [
        ("6", "", "", None, 6000),  # nothing is reported yet
        ("6", "2", "2", None, 6000),  # growing
        ("2", "6", "2", None, 6000),  # shrinking: the runtime has not released the cores yet
        ("2", "2", "6", None, 6000),
        ("2", "2", "2", None, 2000),
        ("6", "2", "2", DEFERRED, 6000),  # the node may have room later
        ("6", "2", "3", INFEASIBLE, 3000),  # the node is too small
    ],
)
def test_largest_of_desired_admitted_and_applied_amounts_counts(
    desired: str, applied: str, admitted: str, condition: Condition | None, cores: int
) -> None:
    kube = FakeKubernetes(make.pod("p"))
    pod = resize(kube, "p", desired, applied=applied, admitted=admitted, conditions=[condition] if condition else [])
    assert node_amounts(pod)["cores"] == cores


@pytest.mark.parametrize("manager", ["poolwise", "default-scheduler"])
def test_resized_pod_counts_with_its_new_size(manager: str) -> None:
    """Whichever scheduler placed it: its node is neither overfilled nor left idle."""
    kube = FakeKubernetes(make.node("n0", cpu="8"))
    where = {} if manager == "poolwise" else {"nodeName": "n0"}
    kube.add(make.pod("p", cpu="2", seconds=None, schedulerName=manager, **where))
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    assert driven.platform.snapshot().free.max(initial=0, where=driven.platform.snapshot().machine.capacity == 8000) == 6000
    resize(kube, "p", "5", applied="2", admitted="2")
    for k in range(3):
        kube.add(make.pod(f"q{k}", cpu="3", seconds=None))
    assert len(driven.settle().nodes().keys() - {"p"}) == 1, "5 + 3 of 8 cores"
    resize(kube, "p", "1", applied="5", admitted="5")
    assert len(driven.settle().nodes().keys() - {"p"}) == 1, "the runtime has not released the cores"
    resize(kube, "p", "1", applied="1", admitted="1")
    assert len(driven.settle().nodes().keys() - {"p"}) == 2, "1 + 3 + 3 of 8 cores"
    kube.finish("default/p")
    assert len(driven.settle().nodes().keys() - {"p"}) == 2, "6 of 8 cores"
    assert (driven.platform.state.capacity == driven.platform.state.mapping.machine.capacity).all()


def test_pod_resized_while_it_is_bound_counts_with_its_new_size() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="8"), make.pod("p", cpu="2", seconds=None), binds_at_once=False)
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    resize(kube, "p", "6")
    kube.add(make.pod("q", cpu="4", seconds=None))
    driven.settle()
    assert len(kube.started) == 1, "6 + 4 of 8 cores"
    kube.complete_start(*kube.started[0])
    assert driven.settle().nodes() == {"p": "n0"} and len(kube.started) == 1


def test_pending_pod_is_scheduled_with_its_new_size() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="8"), make.pod("p", cpu="9", seconds=None))
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    assert not driven.nodes()
    resize(kube, "p", "8")
    assert driven.settle().nodes() == {"p": "n0"}
