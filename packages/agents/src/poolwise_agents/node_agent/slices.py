"""ResourceSlices of a node: their desired specs, and the writes that publish them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from poolwise.errors import PoolwiseError
from poolwise.live.kubernetes.objects.device import ResourceSlice
from poolwise.live.kubernetes.quantity import parse_quantity
from poolwise_agents.node_agent.cluster import AgentCluster
from poolwise_agents.node_agent.conditions import condition_names
from poolwise_agents.node_agent.config import TEMPLATE, DeviceSection, NodeAgentFile, PoolSection

MAX_DEVICES = 128  # Kubernetes' limit of devices per slice
Specs = Mapping[str, list[dict[str, Any]]]  # pool -> the specs of its slices, without generations


def desired_specs(file: NodeAgentFile, node: str) -> Specs:
    """Return the specs of the pools that a node publishes."""
    return {pool.name: _pool(file, pool) for pool in file.pool if pool.node == node}


def pool_specs(driver: str, pool: str, reach: Mapping[str, Any], devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the specs of a pool, with its devices divided among as few slices as possible."""
    parts = [devices[k : k + MAX_DEVICES] for k in range(0, len(devices), MAX_DEVICES)]
    return [{"driver": driver, "pool": {"name": pool, "resourceSliceCount": len(parts)}, **reach, "devices": p} for p in parts]


def attribute_of(value: bool | int | str) -> dict[str, Any]:
    """Return an attribute in the syntax of Kubernetes."""
    return {"bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "string": value}


def _pool(file: NodeAgentFile, pool: PoolSection) -> list[dict[str, Any]]:
    reach: dict[str, Any]
    if pool.reach == "node":
        reach = {"nodeName": pool.node}
    elif pool.reach == "all":
        reach = {"allNodes": True}
    else:
        expressions = [{"key": key, "operator": "In", "values": [value]} for key, value in sorted(pool.reach.items())]
        reach = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return pool_specs(file.driver, pool.name, reach, [_device(file, pool, device) for device in pool.device])


def _device(file: NodeAgentFile, pool: PoolSection, device: DeviceSection) -> dict[str, Any]:
    attributes = dict(device.attributes) | ({TEMPLATE: device.template} if device.template else {})
    spec: dict[str, Any] = {"name": device.name}
    if attributes:
        spec["attributes"] = {name: attribute_of(value) for name, value in attributes.items()}
    if device.capacity:
        spec["capacity"] = {name: {"value": value} for name, value in device.capacity.items()}
    if device.shared:
        spec["allowMultipleAllocations"] = True
    if device.template is not None and file.template[device.template].needs_attachment:
        attached, failed = condition_names(file.driver)
        spec |= {"bindingConditions": [attached], "bindingFailureConditions": [failed]}
        if pool.reach != "node":
            spec["bindsToNode"] = True
    return spec


async def publish_slices(cluster: AgentCluster, node: str, driver: str, specs_by_pool: Specs) -> int:
    """Update a driver's slices of a node and return the number of writes, 0 if the slices were up to date.

    A changed pool gets the next generation in all its slices, so that readers can detect an incomplete update. Slices of pools
    that the node no longer has are deleted. The node owns the slices, which are deleted with it. Raises ApiError, and
    PoolwiseError for a pool that another node publishes too.
    """
    uid = await cluster.node_uid(node)
    existing = await cluster.slices(driver)
    own = [
        resource_slice
        for resource_slice in existing
        if any(owner.uid == uid for owner in resource_slice.metadata.owner_references)
    ]
    writes = 0
    for pool, specs in specs_by_pool.items():
        slices = [resource_slice for resource_slice in existing if resource_slice.spec.pool.name == pool]
        if foreign := [resource_slice.metadata.name for resource_slice in slices if resource_slice not in own]:
            raise PoolwiseError(f"another node also publishes the pool {pool} of {driver}, in the slice {foreign[0]}")
        if _up_to_date(slices, specs):
            continue
        generation = max((resource_slice.spec.pool.generation for resource_slice in slices), default=0) + 1
        for k, spec in enumerate(specs):
            owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid, "controller": True}
            metadata = {"name": slice_name(node, driver, pool, k), "ownerReferences": [owner]}
            spec = {**spec, "pool": {**spec["pool"], "generation": generation}}
            await cluster.apply_slice({"metadata": metadata, "spec": spec})
            writes += 1
    keep = {slice_name(node, driver, pool, k) for pool, specs in specs_by_pool.items() for k in range(len(specs))}
    for resource_slice in own:
        if resource_slice.metadata.name not in keep:
            await cluster.delete_slice(resource_slice.metadata.name)
            writes += 1
    return writes


def slice_name(node: str, driver: str, pool: str, k: int) -> str:
    """Return the deterministic name of a pool's k-th slice."""
    digest = hashlib.sha256(f"{node}\0{driver}\0{pool}".encode()).hexdigest()[:12]
    return f"{node[:200].rstrip('-.')}-{digest}-{k}"


def _up_to_date(slices: Iterable[ResourceSlice], specs: list[dict[str, Any]]) -> bool:
    """Return whether slices have the desired specs and all belong to one generation."""
    ordered = sorted(slices, key=lambda resource_slice: (len(resource_slice.metadata.name), resource_slice.metadata.name))
    if len(ordered) != len(specs) or len({resource_slice.spec.pool.generation for resource_slice in ordered}) != 1:
        return False
    return all(
        _normalized(msgspec.to_builtins(resource_slice.spec)) == _normalized(spec)
        for resource_slice, spec in zip(ordered, specs, strict=True)
    )


def _normalized(spec: Any) -> Any:
    """Return a spec with defaults filled in and exact quantities, without its generation."""
    read = msgspec.to_builtins(msgspec.convert(spec, type=type(ResourceSlice().spec)))
    pool = {name: value for name, value in read["pool"].items() if name != "generation"}
    return {**read, "pool": pool, "devices": [_exact(device) for device in read["devices"]]}


def _exact(device: dict[str, Any]) -> dict[str, Any]:
    capacity = {name: parse_quantity(value["value"]) for name, value in device.get("capacity", {}).items()}
    return {**device, "capacity": capacity}
