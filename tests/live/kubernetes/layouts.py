"""Cluster layouts for comparing schedulers: nodes, and the devices that a pod's claim requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.live.kubernetes import objects as make

RACK = 25
"""Number of nodes per rack."""
Layout = Callable[[int], list[dict[str, Any]]]
"""Returns the objects of a cluster with the given number of nodes, and a claim template named gpu; the devices suffice for two
pods per node, and for half as many again that arrive later."""


def local(nodes: int) -> list[dict[str, Any]]:
    """Four devices without attributes on each node."""
    names = _names(nodes)
    return [
        make.device_class("gpu", "gpu.example"),
        make.template("gpu", make.exactly("gpu")),
        *(make.node(name) for name in names),
        *(make.devices("gpu.example", name, *({"name": f"gpu-{k}"} for k in range(4)), node=name) for name in names),
    ]


def described(nodes: int) -> list[dict[str, Any]]:
    """Eight devices per node with the attributes that GPU drivers publish, and a class that selects by one of them."""
    objects = _large(nodes, 'type == "gpu"')
    for row, name in enumerate(_names(nodes)):
        objects.append(make.devices("gpu.example", name, *(_described(row, k) for k in range(8)), node=name))
    return objects


def fabric(nodes: int) -> list[dict[str, Any]]:
    """Three devices per node, all in rack fabrics: a rack's devices serve any of its nodes."""
    return [
        make.device_class("gpu", "fabric.example"),
        make.template("gpu", make.exactly("gpu")),
        *_racked(nodes),
        *_fabrics(nodes, 3 * RACK),
    ]


def mixed(nodes: int) -> list[dict[str, Any]]:
    """Two local devices per node and one per node in the rack fabric; claims request a local one, else one of the fabric."""
    either = [{"name": "local", "deviceClassName": "local"}, {"name": "fabric", "deviceClassName": "fabric"}]
    return [
        make.device_class("local", "gpu.example"),
        make.device_class("fabric", "fabric.example"),
        make.template("gpu", {"name": "gpu", "firstAvailable": either}),
        *_racked(nodes),
        *(make.devices("gpu.example", name, {"name": "gpu-0"}, {"name": "gpu-1"}, node=name) for name in _names(nodes)),
        *_fabrics(nodes, RACK),
    ]


def partitions(nodes: int) -> list[dict[str, Any]]:
    """Eight devices per node, each available whole, as two halves or as seven parts that share counters."""
    return [*_large(nodes, 'profile == "1g"'), *(item for name in _names(nodes) for item in _partitioned(name))]


def drives(nodes: int) -> list[dict[str, Any]]:
    """One drive per node, fifty per box, reachable from all nodes; claims request a quarter of a drive's bandwidth."""
    requested = {"requests": {"bandwidth": "2Gi", "space": "500Gi"}}
    size = {
        "bandwidth": {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "512Mi", "step": "512Mi"}}},
        "space": {"value": "4Ti", "requestPolicy": {"default": "100Gi", "validRange": {"min": "1Gi"}}},
    }
    box = [{"name": f"nvme-{k}", "allowMultipleAllocations": True, "capacity": size} for k in range(50)]
    return [
        make.device_class("nvme", "nvme.example"),
        make.template("gpu", make.exactly("nvme", capacity=requested)),
        *_racked(nodes),
        *(make.devices("nvme.example", f"box-{k}", *box) for k in range(max(1, nodes // 50))),
    ]


def _large(nodes: int, condition: str) -> list[dict[str, Any]]:
    """Large nodes, and a claim template for devices with a matching attribute."""
    kind = make.device_class("gpu", "gpu.example")
    kind["spec"]["selectors"][0]["cel"]["expression"] += f' && device.attributes["gpu.example"].{condition}'
    large = (make.node(name, cpu="96", memory="1Ti") for name in _names(nodes))
    return [kind, make.template("gpu", make.exactly("gpu")), *large]


def _names(nodes: int) -> list[str]:
    return [f"n{k:04d}" for k in range(nodes)]


def _rack(node: int) -> str:
    return f"r{node // RACK:02d}"


def _racked(nodes: int) -> list[dict[str, Any]]:
    return [make.node(name, rack=_rack(k)) for k, name in enumerate(_names(nodes))]


def _fabrics(nodes: int, devices: int) -> list[dict[str, Any]]:
    racks = dict.fromkeys(_rack(k) for k in range(nodes))
    return [make.devices("fabric.example", rack, *({"name": f"gpu-{k}"} for k in range(devices)), rack=rack) for rack in racks]


def _described(row: int, device: int) -> dict[str, Any]:
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{8 * row + device:08d}-0000-0000-0000-000000000000"},
        "productName": {"string": "A100-SXM4-80GB"},
        "architecture": {"string": "Ampere"},
        "computeCapability": {"version": "8.0.0"},
        "driverVersion": {"version": "580.65.6"},
        "minor": {"int": device},
        "numa": {"int": device // 4},
    }
    return {"name": f"gpu-{device}", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


def _partitioned(node: str) -> list[dict[str, Any]]:
    """Return two slices: the counters of a node's devices, and their partitions."""

    def part(gpu: int, name: str, profile: str, memory: int, parts: range) -> dict[str, Any]:
        counters = {"memory": {"value": f"{memory}Gi"}, **{f"part-{k}": {"value": "1"} for k in parts}}
        uses = [{"counterSet": f"gpu-{gpu}", "counters": counters}]
        return {"name": name, "attributes": {"profile": {"string": profile}}, "consumesCounters": uses}

    devices = []
    for gpu in range(8):
        devices.append(part(gpu, f"gpu-{gpu}", "all", 80, range(7)))
        devices += [part(gpu, f"gpu-{gpu}-half-{k}", "3g", 40, range(4 * k, min(4 * k + 4, 7))) for k in range(2)]
        devices += [part(gpu, f"gpu-{gpu}-part-{k}", "1g", 10, range(k, k + 1)) for k in range(7)]
    size = {"memory": {"value": "80Gi"}, **{f"part-{k}": {"value": "1"} for k in range(7)}}
    shared = {"sharedCounters": [{"name": f"gpu-{gpu}", "counters": size} for gpu in range(8)]}
    slices = []
    for name, content in (("counters", shared), ("parts", {"devices": devices})):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
        slices.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{node}-{name}"},
                "spec": {"driver": "gpu.example", "pool": pool, "nodeName": node, **content},
            }
        )
    return slices
