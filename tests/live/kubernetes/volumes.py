"""Volume claims on a real API server and its volume controller, with the shipped rights.

The test plays the provisioner of a storage class: it creates a local volume on the node that the scheduler selects, or gives
up that node as the provisioners of CSI drivers do.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, control_plane, scheduling
from tests.live.kubernetes.shipped import grant

SELECTED = "volume.kubernetes.io/selected-node"


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("kube")) as started:
        grant(started, "rbac.yaml")
        yield started


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[ControlPlane]:
    plane.apply([make.node(f"n{k}") for k in range(3)])
    yield plane
    violations = problems(plane)
    plane.clear()
    for kind in ("pvc", "pv", "storageclass"):
        plane.kubectl("delete", kind, "--all", "--timeout=30s")
    assert not violations


@pytest.fixture
def first_fit(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text('version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n')
    return str(tmp_path / "s.toml")


def uses(name: str, claim: str) -> dict[str, object]:
    return make.pod(name, seconds=None, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def node_of(plane: ControlPlane, pod: str) -> str:
    return plane.kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")


def selected(plane: ControlPlane, claim: str) -> str:
    (volume_claim,) = [item for item in plane.get("pvc") if item["metadata"]["name"] == claim]
    return str(volume_claim["metadata"].get("annotations", {}).get(SELECTED, ""))


def condition(plane: ControlPlane, pod: str) -> str:
    return plane.kubectl("get", "pod", pod, "-o", "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}")


def test_local_volumes_determine_the_nodes_of_their_pods(cluster: ControlPlane, first_fit: str) -> None:
    """The class has no provisioner: claims that name their volume are bound, and others are refused by name."""
    cluster.apply([make.storage_class("local", "kubernetes.io/no-provisioner")])
    cluster.apply([make.volume(f"v{k}", node=f"n{k}", kind="local") for k in range(3)])
    cluster.apply([make.volume_claim(f"c{k}", "local", volumeName=f"v{k}") for k in range(3)])
    cluster.apply([make.volume_claim("any", "local"), uses("waits", "any"), *(uses(f"p{k}", f"c{k}") for k in (2, 1, 0))])
    with scheduling(cluster, first_fit, "--lease", "poolwise/poolwise", user="poolwise"):
        cluster.wait(lambda: cluster.count("Running") == 3, 40, f"three run: {cluster.phases()}")
        cluster.wait(lambda: "its class has no provisioner" in condition(cluster, "waits"), 20, "a condition")
    assert [node_of(cluster, f"p{k}") for k in range(3)] == ["n0", "n1", "n2"]


def test_volume_is_provisioned_elsewhere_if_the_provisioner_gives_up_a_node(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.storage_class("late", "csi.example"), make.volume_claim("c", "late"), uses("p", "c")])
    log = cluster.folder / "volumes.log"
    with scheduling(cluster, first_fit, "--lease", "poolwise/poolwise", user="poolwise", log=log):
        cluster.wait(lambda: selected(cluster, "c") == "n0", 20, "a node is selected")
        assert node_of(cluster, "p") == "", "the pod is bound only once its volume is"
        cluster.kubectl("annotate", "pvc", "c", f"{SELECTED}-")
        cluster.wait(lambda: "gave up on node n0" in condition(cluster, "p"), 10, "a condition")
        cluster.wait(lambda: selected(cluster, "c") == "n1", 10, "another node is selected")
        assert node_of(cluster, "p") == ""
        (claim,) = cluster.get("pvc")
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "c", "uid": claim["metadata"]["uid"]}
        cluster.apply([make.volume("made", node="n1", kind="late", claimRef={"apiVersion": "v1", **reference})])
        cluster.wait(lambda: cluster.count("Running") == 1, 30, f"it runs: {condition(cluster, 'p')}")
    assert node_of(cluster, "p") == "n1"
    assert "Forbidden" not in log.read_text()


def test_volume_is_provisioned_elsewhere_after_the_timeout(cluster: ControlPlane, first_fit: str) -> None:
    cluster.apply([make.storage_class("late", "csi.example"), make.volume_claim("c", "late"), uses("p", "c")])
    with scheduling(cluster, first_fit, "--attach-timeout", "3", "--lease", "poolwise/poolwise", user="poolwise"):
        cluster.wait(lambda: selected(cluster, "c") == "n0", 20, "a node is selected")
        cluster.wait(lambda: selected(cluster, "c") == "n1", 20, "another node is selected")
        assert "was not bound within 3 s on node n0" in json.dumps(cluster.get("events"))
