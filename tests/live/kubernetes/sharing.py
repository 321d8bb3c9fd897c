"""Two schedulers allocate devices of one driver: no device of Poolwise stays in two claims, and no bound pod lacks devices.

kube-scheduler counts a device as free once any claim releases it, even if one of its own claims holds it too. It may then
allocate the device to a second pod of its own. Poolwise reports such devices, but does not change pods of other schedulers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.api import Api
from tests.live.kubernetes.checker import problems
from tests.live.kubernetes.control_plane import ControlPlane, control_plane, kube_scheduler, scheduling

NODES, REPORT = 4, "device_allocated_twice"
RESOLUTION = 300.0
"""Seconds within which conflicts must be resolved: another scheduler has 30 s for each, and all processes share two cores."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ControlPlane]:
    """Start a new control plane for each test, with nodes that have CPU for all pods."""
    with control_plane(tmp_path / "kube") as plane:
        plane.apply([make.node(f"n{k}", cpu="64") for k in range(NODES)])
        plane.apply([make.device_class("gpu", "gpu.example"), make.template("gpu", make.exactly("gpu"))])
        yield plane


def publish(plane: ControlPlane, per_node: int) -> int:
    """Publish devices of one driver on each node, and return their number."""
    names = [{"name": f"g{k:02d}"} for k in range(per_node)]
    plane.apply([make.devices("gpu.example", f"n{k}", *names, node=f"n{k}") for k in range(NODES)])
    return NODES * per_node


def claiming(name: str, scheduler: str) -> dict[str, Any]:
    claims = {"g": {"resourceClaimTemplateName": "gpu"}}
    return make.pod(name, cpu="100m", memory="16Mi", seconds=None, claims=claims, schedulerName=scheduler)


def doubled(plane: ControlPlane) -> dict[str, list[str]]:
    """Return device -> its claims, for the devices that several claims hold."""
    held: dict[str, list[str]] = defaultdict(list)
    for claim in plane.get("resourceclaims"):
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []):
            held[f"gpu.example/{result['pool']}/{result['device']}"].append(claim["metadata"]["name"])
    return {device: claims for device, claims in held.items() if len(claims) > 1}


def events(plane: ControlPlane) -> list[str]:
    return plane.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}").split()


def test_no_device_of_poolwise_stays_in_two_claims_if_kube_scheduler_uses_the_driver(
    cluster: ControlPlane, first_fit: str
) -> None:
    """200 pods of each arrive at the same time, for 160 devices."""
    devices, log = publish(cluster, 40), cluster.folder / "sharing.log"
    pods = [claiming(f"{name}-{k:03d}", name) for k in range(200) for name in ("poolwise", "default-scheduler")]
    seen: set[str] = set()
    with kube_scheduler(cluster), scheduling(cluster, first_fit, log=log):
        Api(cluster).create(pods)

        def resolved() -> bool:
            seen.update(doubled(cluster))
            ours = [problem for problem in problems(cluster) if "poolwise-" in problem]
            return cluster.count("Running") >= devices and not ours

        cluster.wait(resolved, RESOLUTION, "no device of Poolwise in two claims")
        lasting = doubled(cluster)
        reports = [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == REPORT]
        ours = [event for event in reports if any("/poolwise-" in claim for claim in event["claims"])]
        cluster.wait(lambda: not ours or "DeviceAllocatedTwice" in events(cluster), 60, "an event of a pod of Poolwise")
    reported = {event["device"] for event in reports}
    print(f"{len(seen)} devices seen in two claims, {len(reports)} reports, {len(ours)} of them with a claim of Poolwise")
    print(f"{len(lasting)} devices remain in two claims of kube-scheduler")
    assert lasting.keys() <= reported and bool(reported) >= bool(seen)
    assert all(claim.startswith("default-scheduler-") for claims in lasting.values() for claim in claims)


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
        cluster.wait(lambda: cluster.count("Running") == devices and not problems(cluster), RESOLUTION, "one claim per device")
    print(f"{[log.read_text().count(REPORT) for log in logs]} reports of devices in two claims")
    assert problems(cluster) == []
