"""Two schedulers allocate devices of one driver: no device stays in two claims, and no bound pod lacks its devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.api import Api
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, control_plane, kube_scheduler, scheduling

FIRST_FIT = 'version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n'
NODES = 4
RESOLUTION = 300.0
"""Seconds within which conflicts must be resolved: another scheduler has 30 s for each, and all processes share two cores."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ControlPlane]:
    """Start a new control plane for each test, with nodes that have CPU for all pods."""
    with control_plane(tmp_path / "kube") as plane:
        plane.apply([make.node(f"n{k}", cpu="64") for k in range(NODES)])
        plane.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
        yield plane


@pytest.fixture
def first_fit(tmp_path: Path) -> str:
    (tmp_path / "s.toml").write_text(FIRST_FIT)
    return str(tmp_path / "s.toml")


def publish(plane: ControlPlane, per_node: int) -> int:
    """Publish devices of one driver on each node, and return their number."""
    names = [{"name": f"g{k:02d}"} for k in range(per_node)]
    plane.apply([make.devices("gpu.example", f"n{k}", *names, node=f"n{k}") for k in range(NODES)])
    return NODES * per_node


def claiming(name: str, scheduler: str) -> dict[str, Any]:
    claims = {"g": {"resourceClaimTemplateName": "gpu"}}
    return make.pod(name, cpu="100m", memory="16Mi", seconds=None, claims=claims, schedulerName=scheduler)


def doubled(plane: ControlPlane) -> list[str]:
    """Return the devices that several claims hold."""
    allocations = [claim.get("status", {}).get("allocation", {}) for claim in plane.get("resourceclaims")]
    results = [result for one in allocations for result in one.get("devices", {}).get("results", [])]
    held = Counter(f"{result['pool']}/{result['device']}" for result in results)
    return [device for device, claims in held.items() if claims > 1]


def settled(plane: ControlPlane, devices: int) -> bool:
    """Return whether every device serves one running pod, and an independent checker finds no problem."""
    return plane.count("Running") == devices and not doubled(plane) and not problems(plane)


def events(plane: ControlPlane) -> list[str]:
    return plane.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}").split()


def test_pods_of_poolwise_and_kube_scheduler_end_with_one_claim_per_device(cluster: ControlPlane, first_fit: str) -> None:
    """200 pods of each arrive at the same time, for 160 devices."""
    devices, log = publish(cluster, 40), cluster.folder / "sharing.log"
    pods = [claiming(f"{name}-{k:03d}", name) for k in range(200) for name in ("poolwise", "default-scheduler")]
    most = 0
    with kube_scheduler(cluster), scheduling(cluster, first_fit, log=log):
        Api(cluster).create(pods)

        def resolved() -> bool:
            nonlocal most
            most = max(most, len(doubled(cluster)))
            return settled(cluster, devices)

        cluster.wait(resolved, RESOLUTION, f"one claim per device: {cluster.count('Running')} run")
    reports = log.read_text().count("device_allocated_twice")
    print(f"at most {most} devices in two claims, {reports} reports")
    assert reports >= (most > 0)
    assert not reports or "DeviceAllocatedTwice" in events(cluster)


def test_two_instances_of_one_name_without_a_lease_leave_no_bound_pod_without_devices(
    cluster: ControlPlane, first_fit: str
) -> None:
    devices = publish(cluster, 6)
    logs = [cluster.folder / f"{k}.log" for k in range(2)]
    options = ["--name", "poolwise", "--lease", "none"]
    with scheduling(cluster, first_fit, *options, log=logs[0]), scheduling(cluster, first_fit, *options, log=logs[1]):
        cluster.apply([claiming("first", "poolwise")])
        cluster.wait(lambda: cluster.count("Running") == 1, 60, "the instances schedule")
        Api(cluster).create([claiming(f"p{k:02d}", "poolwise") for k in range(99)])
        cluster.wait(lambda: settled(cluster, devices), RESOLUTION, f"one claim per device: {cluster.count('Running')} run")
    print(f"{[log.read_text().count('device_allocated_twice') for log in logs]} reports of devices in two claims")
    assert problems(cluster) == []
