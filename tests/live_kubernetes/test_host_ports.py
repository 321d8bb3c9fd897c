"""Host ports of pods, compared with the rule of kube-scheduler: 0.0.0.0 conflicts with every address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolwise.live.kubernetes.host_ports import ANY_ADDRESS, HostPort, conflicting_port, host_ports
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

SCHEDULER = ListScheduler(placement=FirstNodes())
GROUP = "pod-group.scheduling.sigs.k8s.io"
PORTS = st.builds(
    HostPort, st.sampled_from([ANY_ADDRESS, "10.0.0.1", "10.0.0.2"]), st.sampled_from(["TCP", "UDP"]), st.integers(1, 2)
)


def container(name: str = "main", **port: Any) -> dict[str, Any]:
    requests = {"cpu": "1", "memory": "1Gi"}
    return {"name": name, "image": "none", "resources": {"requests": requests}, "ports": [{"containerPort": 1, **port}]}


def naive_conflict(wanted: Sequence[HostPort], used: Sequence[HostPort]) -> bool:
    """Return whether any pair of ports has the same protocol and number, and addresses that overlap."""
    for port in wanted:
        for other in used:
            overlap = port.address == other.address or "0.0.0.0" in (port.address, other.address)
            if overlap and port.protocol == other.protocol and port.number == other.number:
                return True
    return False


@given(st.lists(PORTS, max_size=4), st.lists(PORTS, max_size=4))
def test_conflicts_match_the_naive_rule(wanted: list[HostPort], used: list[HostPort]) -> None:
    assert (conflicting_port(wanted, used) is not None) == naive_conflict(wanted, used)


def test_ports_of_containers_and_sidecars_count() -> None:
    init = [container("setup", hostPort=1), container("sidecar", hostPort=2, protocol="UDP") | {"restartPolicy": "Always"}]
    manifest = make.pod("p", containers=[container(hostPort=3, hostIP="10.0.0.1"), container("b")], initContainers=init)
    expected = (HostPort(ANY_ADDRESS, "UDP", 2), HostPort("10.0.0.1", "TCP", 3))
    assert host_ports(msgspec.convert(manifest, Pod)) == expected


def test_pods_with_the_same_port_go_to_different_nodes() -> None:
    kube = FakeKubernetes(make.node("n0"), make.node("n1"), binds_at_once=False)
    for k in range(3):
        kube.add(make.pod(f"p{k}", seconds=None, containers=[container(hostPort=80)]))
    kube.add(make.pod("q", seconds=None, containers=[container(hostPort=81)]))
    driven = kube.open(SCHEDULER)
    assert [(start.pod.metadata.name, start.node) for _, (start,) in kube.started] == [("p0", "n0"), ("p1", "n1"), ("q", "n0")]
    (row,) = driven.loop.queue.jobs.tolist()
    assert driven.loop.aside[row] == "host port TCP 80 of node n0 is in use, and no other node fits"
    for run, pods in list(kube.started):
        kube.complete_start(run, pods)
    driven.settle()
    kube.finish("default/p1")
    driven.settle()
    assert (kube.started[-1][1][0].pod.metadata.name, kube.started[-1][1][0].node) == ("p2", "n1")


def test_port_of_an_unmanaged_pod_is_in_use() -> None:
    kube = FakeKubernetes(make.node("n0"), make.node("n1"))
    used = container(hostPort=80, hostIP="10.0.0.1")
    kube.add(make.pod("d", seconds=None, containers=[used], nodeName="n0", schedulerName="default-scheduler"))
    kube.add(make.pod("p", seconds=None, containers=[container(hostPort=80)]))
    kube.add(make.pod("q", seconds=None, containers=[container(hostPort=80, hostIP="10.0.0.2")]))
    assert kube.open(SCHEDULER).nodes() == {"d": "n0", "p": "n1", "q": "n0"}


@pytest.mark.parametrize(("nodes", "starts"), [(2, False), (3, True)])
def test_pods_of_a_gang_see_the_ports_of_each_other(nodes: int, starts: bool) -> None:
    kube = FakeKubernetes(*(make.node(f"n{k}") for k in range(nodes)))
    for k in range(3):
        labels = {GROUP: "g", f"{GROUP}/min-available": "3"}
        kube.add(make.pod(f"p{k}", seconds=None, labels=labels, containers=[container(hostPort=80)]))
    assert sorted(kube.open(SCHEDULER).nodes().values()) == (["n0", "n1", "n2"] if starts else [])


def test_pod_whose_planned_node_was_taken_by_a_moved_pod_is_moved_too() -> None:
    kube = FakeKubernetes(make.node("n0", cpu="2"), make.node("n1", cpu="1"))
    kube.add(make.pod("d", seconds=None, containers=[container(hostPort=80)], nodeName="n0", schedulerName="default-scheduler"))
    kube.add(make.pod("p", seconds=None, containers=[container(hostPort=80)]))
    kube.add(make.pod("q", seconds=None))
    assert kube.open(SCHEDULER).nodes() == {"d": "n0", "p": "n1", "q": "n0"}


def test_whole_nodes_are_taken_from_the_same_rack() -> None:
    scheduler = ListScheduler()
    kube = FakeKubernetes(make.node("n0"), make.node("n1"))
    daemon = make.pod("d", seconds=None, containers=[container(hostPort=80)], nodeName="n0", schedulerName="default-scheduler")
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "d", "uid": "d"}]
    kube.add(daemon)
    kube.add(make.pod("p", seconds=None, containers=[container(hostPort=80)]))
    assert kube.open(scheduler).nodes()["p"] == "n1"
