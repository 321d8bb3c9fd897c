"""The slices that a node publishes: what they should be, and the writes that make them so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.objects import ResourceSlice
from poolwise.live.kubernetes.quantity import parse_quantity
from poolwise.live.node_agent.cluster import AgentCluster
from poolwise.live.node_agent.conditions import attached_names
from poolwise.live.node_agent.config import TEMPLATE, DeviceSection, NodeAgentFile, PoolSection

MOST_DEVICES = 128
"""Devices of a slice, at most: a limit of Kubernetes."""
Specs = Mapping[str, list[dict[str, Any]]]
"""Pool -> the specs of its slices, without generation."""


def wanted_specs(file: NodeAgentFile, node: str) -> Specs:
    """What a node publishes of its devices."""
    return {pool.name: _pool(file, pool) for pool in file.pool if pool.node == node}


def spec_of(driver: str, pool: str, reach: Mapping[str, Any], devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Specs of a pool, of as few slices as its devices fill."""
    parts = [devices[k : k + MOST_DEVICES] for k in range(0, len(devices), MOST_DEVICES)]
    return [{"driver": driver, "pool": {"name": pool, "resourceSliceCount": len(parts)}, **reach, "devices": p} for p in parts]


def attribute_of(value: bool | int | str) -> dict[str, Any]:
    """An attribute as Kubernetes writes it."""
    return {"bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string": value}


def _pool(file: NodeAgentFile, pool: PoolSection) -> list[dict[str, Any]]:
    reach: dict[str, Any]
    if pool.reach == "node":
        reach = {"nodeName": pool.node}
    elif pool.reach == "all":
        reach = {"allNodes": True}
    else:
        needs = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(pool.reach.items())]
        reach = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": needs}]}}
    return spec_of(file.driver, pool.name, reach, [_device(file, pool, device) for device in pool.device])


def _device(file: NodeAgentFile, pool: PoolSection, device: DeviceSection) -> dict[str, Any]:
    attributes = dict(device.attributes) | ({TEMPLATE: device.template} if device.template else {})
    found: dict[str, Any] = {"name": device.name}
    if attributes:
        found["attributes"] = {name: attribute_of(value) for name, value in attributes.items()}
    if device.capacity:
        found["capacity"] = {name: {"value": value} for name, value in device.capacity.items()}
    if device.shared:
        found["allowMultipleAllocations"] = True
    if device.template is not None and file.template[device.template].attaches:
        good, bad = attached_names(file.driver)
        found |= {"bindingConditions": [good], "bindingFailureConditions": [bad]}
        if pool.reach != "node":
            found["bindsToNode"] = True
    return found


async def publish_slices(cluster: AgentCluster, node: str, driver: str, wanted: Specs) -> int:
    """Make a driver's slices of a node what they should be; returns how many writes that took, 0 where they were so.

    A pool that changes gets the next generation in all its slices: whoever reads in between sees that it is not complete.
    Slices of pools that this node no longer has are deleted. They belong to the node and go with it. Raises ApiError, and
    PoolwiseError for a pool that another node publishes as well.
    """
    uid = await cluster.node_uid(node)
    there = await cluster.slices(driver)
    ours = [one for one in there if any(owner.uid == uid for owner in one.metadata.owner_references)]
    writes = 0
    for pool, specs in wanted.items():
        slices = [one for one in there if one.spec.pool.name == pool]
        if foreign := [one.metadata.name for one in slices if one not in ours]:
            raise PoolwiseError(f"the pool {pool} of {driver} is published by another node too, in the slice {foreign[0]}")
        if _right(slices, specs):
            continue
        generation = max((one.spec.pool.generation for one in slices), default=0) + 1
        for k, spec in enumerate(specs):
            owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
            metadata = {"name": slice_name(node, driver, pool, k), "ownerReferences": [owner]}
            spec = {**spec, "pool": {**spec["pool"], "generation": generation}}
            await cluster.apply_slice({"metadata": metadata, "spec": spec})
            writes += 1
    keep = {slice_name(node, driver, pool, k) for pool, specs in wanted.items() for k in range(len(specs))}
    for one in ours:
        if one.metadata.name not in keep:
            await cluster.delete_slice(one.metadata.name)
            writes += 1
    return writes


def slice_name(node: str, driver: str, pool: str, k: int) -> str:
    """The name of a pool's k-th slice, the same whenever it is asked for."""
    digest = hashlib.sha256(f"{node}\0{driver}\0{pool}".encode()).hexdigest()[:12]
    return f"{node[:200].rstrip('-.')}-{digest}-{k}"


def _right(there: Iterable[ResourceSlice], specs: list[dict[str, Any]]) -> bool:
    """Whether slices are what they should be, all of one generation."""
    ordered = sorted(there, key=lambda one: (len(one.metadata.name), one.metadata.name))
    if len(ordered) != len(specs) or len({one.spec.pool.generation for one in ordered}) != 1:
        return False
    return all(_plain(msgspec.to_builtins(one.spec)) == _plain(spec) for one, spec in zip(ordered, specs, strict=True))


def _plain(spec: Any) -> Any:
    """A spec with exact quantities, without its generation and without what has the value that it has anyway."""
    read = msgspec.to_builtins(msgspec.convert(spec, type=type(ResourceSlice().spec)))
    pool = {name: value for name, value in read["pool"].items() if name != "generation"}
    return {**read, "pool": pool, "devices": [_exact(device) for device in read["devices"]]}


def _exact(device: dict[str, Any]) -> dict[str, Any]:
    capacity = {name: parse_quantity(value["value"]) for name, value in device.get("capacity", {}).items()}
    return {**device, "capacity": capacity}
