"""Attachments that a claim requires on a node, derived from the claim and the driver's slices; all values are validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from poolwise.errors import InputError
from poolwise.live.kubernetes.objects.claim import AllocatedDevice, ResourceClaim
from poolwise.live.kubernetes.objects.device import PublishedDevice, ResourceSlice
from poolwise.quantities import to_seconds
from poolwise_agents.node_agent.config import TEMPLATE, NodeAgentFile, TemplateSection
from poolwise_agents.node_agent.records import Attachment, ClaimRecord
from poolwise_agents.node_agent.template import fill, validate_value

PublishedDevices = Mapping[tuple[str, str], PublishedDevice]  # (pool, device) -> the published device


def published_devices(slices: Iterable[ResourceSlice], driver: str) -> PublishedDevices:
    """Return the devices of a driver in the newest generation of each pool."""
    own = [resource_slice.spec for resource_slice in slices if resource_slice.spec.driver == driver]
    newest: dict[str, int] = {}
    for spec in own:
        newest[spec.pool.name] = max(newest.get(spec.pool.name, 0), spec.pool.generation)
    current = [spec for spec in own if spec.pool.generation == newest[spec.pool.name]]
    return {(spec.pool.name, device.name): device for spec in current for device in spec.devices}


def allocated_devices(claim: ResourceClaim, driver: str) -> list[AllocatedDevice]:
    """Return the devices of a driver that are allocated to a claim."""
    return [device for device in claim.allocated_devices if device.driver == driver]


def required_record(claim: ResourceClaim, node: str, file: NodeAgentFile, devices: PublishedDevices) -> ClaimRecord:
    """Return the record that a claim requires on a node; raises InputError for missing devices and invalid values."""
    meta, allocation = claim.metadata, claim.status.allocation
    if allocation is None or not claim.status.reserved_for:
        raise InputError(
            "no devices are allocated to the claim, or no pod has reserved it", remedy="see `kubectl describe resourceclaim`"
        )
    if claim.pinned_node not in (None, node):
        raise InputError(
            f"the devices are for the node {claim.pinned_node!r}, not {node}", remedy="check why the pod was bound to this node"
        )
    for entry in allocation.devices.config:
        if entry.get("opaque", {}).get("driver") == file.driver:
            remedy = "remove spec.devices.config"
            raise InputError("the claim or its class has parameters for this driver, which supports none", remedy=remedy)
    common = {"driver": file.driver, "node": node, "claim.uid": meta.uid}
    common |= {"claim.name": meta.name, "claim.namespace": meta.namespace}
    for name, value in common.items():
        validate_value(name, value, {})
    attachments = tuple(_attachment(device, common, file, devices) for device in allocated_devices(claim, file.driver))
    if not attachments:
        raise InputError(f"the claim has no device of {file.driver}", remedy="see `kubectl describe resourceclaim`")
    return ClaimRecord(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        allocated=allocation.allocation_timestamp or "",
        devices=attachments,
    )


def _attachment(
    allocated: AllocatedDevice, common: Mapping[str, str], file: NodeAgentFile, devices: PublishedDevices
) -> Attachment:
    share = allocated.share_id or ""
    values = {**common, "pool": allocated.pool, "device": allocated.device} | ({"share": share} if share else {})
    for name in ("pool", "device", *(["share"] if share else [])):
        validate_value(name, values[name], {})
    if allocated.admin_access:
        raise InputError("admin access is not supported", remedy="remove adminAccess from the request")
    device = devices.get((allocated.pool, allocated.device))
    if device is None:
        raise InputError(
            f"no slice has the device {allocated.device} of the pool {allocated.pool}",
            remedy="check that its node's agent runs",
        )
    values |= {f"attribute.{name}": text for name, text in _attributes(device, file.driver).items()}
    amounts = {name: capacity.value for name, capacity in device.capacity.items()} | (allocated.consumed_capacity or {})
    values |= {f"capacity.{name.removeprefix(f'{file.driver}/')}": amount for name, amount in amounts.items()}
    named = values.get(f"attribute.{TEMPLATE}")
    if named is not None and named not in file.template:
        raise InputError(
            f"the device needs the template {named[:64]!r}, which this node's file lacks", remedy="add the template to the file"
        )
    template = TemplateSection() if named is None else file.template[named]

    def put(text: str) -> str:
        return fill(text, values, template.patterns)

    return Attachment(
        request=allocated.request,
        pool=allocated.pool,
        device=allocated.device,
        share=share,
        attach=tuple(map(put, template.attach)),
        verify=tuple(map(put, template.verify)),
        detach=tuple(map(put, template.detach)),
        limit_s=to_seconds(template.time_limit),
        environment=tuple(f"{name}={put(text)}" for name, text in template.environment.items()),
        mounts=tuple((put(mount.host), put(mount.container), mount.options) for mount in template.mounts),
        device_nodes=tuple((put(node.host), put(node.container), node.permissions) for node in template.device_nodes),
        conditions=tuple(allocated.binding_conditions or ()),
        failures=tuple(allocated.binding_failure_conditions or ()),
    )


def _attributes(device: PublishedDevice, driver: str) -> dict[str, str]:
    """Return the driver's attributes as text; their names may have the driver as a prefix."""
    texts = {}
    for name, value in device.attributes.items():
        kinds: dict[str, Any] = value
        short = name.removeprefix(f"{driver}/")
        if "/" not in short and kinds:
            content = next(iter(kinds.values()))
            texts[short] = str(content).lower() if isinstance(content, bool) else str(content)
    return texts
