"""Clusters on which schedulers are measured side by side: where the devices are that a pod's claim asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.live.kubernetes import objects as make

RACK = 25
"""Nodes of a rack."""
Layout = Callable[[int], list[dict[str, Any]]]
"""Makes the objects of a cluster with so many nodes, and a claim template named gpu; there are devices for two pods on
each node, and for half as many again that come later."""


def local(nodes: int) -> list[dict[str, Any]]:
    """Four bare devices on each node."""
    names = _names(nodes)
    return [
        make.device_class("gpu", "gpu.example"),
        make.template("gpu", make.exactly("gpu")),
        *(make.node(name) for name in names),
        *(make.devices("gpu.example", name, *({"name": f"gpu-{k}"} for k in range(4)), node=name) for name in names),
    ]


def described(nodes: int) -> list[dict[str, Any]]:
    """Eight devices on each node, with the attributes that drivers of GPUs publish, and a class that looks at one of them."""
    names, kind = _names(nodes), make.device_class("gpu", "gpu.example")
    kind["spec"]["selectors"][0]["cel"]["expression"] += ' && device.attributes["gpu.example"].type == "gpu"'
    return [
        kind,
        make.template("gpu", make.exactly("gpu")),
        *(make.node(name, cpu="96", memory="1Ti") for name in names),
        *(
            make.devices("gpu.example", name, *(_described(row, k) for k in range(8)), node=name)
            for row, name in enumerate(names)
        ),
    ]


def fabric(nodes: int) -> list[dict[str, Any]]:
    """Three devices for each node, all in the fabrics of racks: a rack's devices serve any of its nodes."""
    return [
        make.device_class("gpu", "fabric.example"),
        make.template("gpu", make.exactly("gpu")),
        *_racked(nodes),
        *_fabrics(nodes, 3 * RACK),
    ]


def mixed(nodes: int) -> list[dict[str, Any]]:
    """Two devices on each node and one for each in the fabric of its rack; claims ask for a local one, else one of these."""
    either = [{"name": "local", "deviceClassName": "local"}, {"name": "fabric", "deviceClassName": "fabric"}]
    return [
        make.device_class("local", "gpu.example"),
        make.device_class("fabric", "fabric.example"),
        make.template("gpu", {"name": "gpu", "firstAvailable": either}),
        *_racked(nodes),
        *(make.devices("gpu.example", name, {"name": "gpu-0"}, {"name": "gpu-1"}, node=name) for name in _names(nodes)),
        *_fabrics(nodes, RACK),
    ]


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
    said = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{8 * row + device:08d}-0000-0000-0000-000000000000"},
        "productName": {"string": "A100-SXM4-80GB"},
        "architecture": {"string": "Ampere"},
        "computeCapability": {"version": "8.0.0"},
        "driverVersion": {"version": "580.65.6"},
        "minor": {"int": device},
        "numa": {"int": device // 4},
    }
    return {"name": f"gpu-{device}", "attributes": said, "capacity": {"memory": {"value": "80Gi"}}}
