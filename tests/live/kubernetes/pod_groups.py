"""Priority of PodGroups on a real API server, and the fields of PodGroups that are refused; their feature gates are alpha."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import ControlPlane, control_plane, scheduling

GATES = (
    "GenericWorkload",
    "GangScheduling",
    "DRADeviceTaintRules",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
    "DRAWorkloadResourceClaims",
)


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    gates = ",".join(f"{gate}=true" for gate in GATES)
    with control_plane(tmp_path_factory.mktemp("kube"), KUBE_GATES=gates) as started:
        yield started


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[ControlPlane]:
    yield plane
    plane.clear()


@pytest.fixture
def by_class(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text('version = 1\norder = "classes"\nbackfill = "none"\nplacement = "first_fit"\n')
    return str(tmp_path / "s.toml")


def pod_group(name: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, **more}
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec}


def test_priority_of_a_pod_group_determines_the_order(cluster: ControlPlane, by_class: str) -> None:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
    cluster.kubectl("apply", "-f", "-", given=json.dumps(kind))
    cluster.apply([make.node("n0", cpu="4"), make.pod("first", cpu="4", seconds=None)])
    with scheduling(cluster, by_class):
        cluster.wait(lambda: cluster.phases()["first"] == "Running", 60, "the node is in use")
        cluster.apply([make.pod("plain", cpu="4", seconds=None), pod_group("g", priorityClassName="urgent")])
        cluster.apply([make.pod("grouped", cpu="4", seconds=None, schedulingGroup={"podGroupName": "g"})])
        cluster.wait(lambda: all(cluster.message(name) for name in ("plain", "grouped")), 60, "both wait")
        cluster.kubectl("delete", "pod", "first", "--grace-period=0", "--force")
        cluster.wait(lambda: cluster.count("Running") == 1, 60, "the next pod runs")
    assert cluster.phases() == {"plain": "Pending", "grouped": "Running"}


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("schedulingConstraints", {"topology": [{"key": "topology.kubernetes.io/rack"}]}),
        ("resourceClaims", [{"name": "gpu", "resourceClaimName": "shared"}]),
    ],
)
def test_topology_and_claims_of_a_pod_group_are_refused(cluster: ControlPlane, by_class: str, field: str, content: Any) -> None:
    cluster.apply([make.node("n0"), pod_group("g", **{field: content})])
    cluster.apply([make.pod("grouped", seconds=None, schedulingGroup={"podGroupName": "g"}), make.pod("plain", seconds=None)])
    with scheduling(cluster, by_class):
        cluster.wait(lambda: cluster.phases()["plain"] == "Running", 60, "the other pod runs")
        text = f"spec.{field} of PodGroup g is not supported"
        cluster.wait(lambda: text in cluster.message("grouped"), 60, f"a condition: {cluster.message('grouped')}")
    assert cluster.phases()["grouped"] == "Pending"
