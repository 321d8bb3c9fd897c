"""Cluster, scheduler file and pods of the tests that inject faults."""

from __future__ import annotations

from typing import Any

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import ControlPlane

LABEL = "pod-group.scheduling.sigs.k8s.io"
SCHEDULER = 'version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n'


def workload(pods: int, names: str = "") -> list[dict[str, Any]]:
    """Pods without claims, with a device, with a share of a device, and gangs of three with devices; `names` is a prefix."""
    made = []
    for k in range(pods):
        match k % 5:
            case 0:
                made.append(make.pod(f"{names}p{k:04d}", cpu="2", seconds=0.5))
            case 1 | 2:
                made.append(make.pod(f"{names}p{k:04d}", seconds=0.5, claims={"gpu": {"resourceClaimTemplateName": "gpu"}}))
            case 3:
                made.append(make.pod(f"{names}p{k:04d}", seconds=0.5, claims={"disk": {"resourceClaimTemplateName": "disk"}}))
            case 4:
                labels = {LABEL: f"{names}gang{k:04d}", f"{LABEL}/min-available": "3"}
                claims = {"gpu": {"resourceClaimTemplateName": "gpu"}}
                made += [make.pod(f"{names}g{k:04d}-{i}", seconds=0.5, labels=labels, claims=claims) for i in range(3)]
    return made


def prepare(plane: ControlPlane) -> None:
    plane.apply([make.node(f"n{k}", rack=f"r{k // 2}") for k in range(6)])
    plane.apply([make.device_class("gpu", "gpu.example"), make.device_class("disk", "disk.example")])
    plane.apply([make.devices("gpu.example", f"r{r}", *({"name": f"f{k}"} for k in range(5)), rack=f"r{r}") for r in range(3)])
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {name: {"value": "16Gi", "requestPolicy": policy} for name in ("bandwidth", "space")}
    plane.apply([make.devices("disk.example", "d", {"name": "d0", "allowMultipleAllocations": True, "capacity": capacity})])
    requested = {"requests": {"bandwidth": "3Gi", "space": "2Gi"}}
    plane.apply([make.template("gpu", make.exactly("gpu")), make.template("disk", make.exactly("disk", capacity=requested))])
