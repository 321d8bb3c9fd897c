"""Claims for devices: requests, and the allocation."""

from __future__ import annotations

from typing import Any

import msgspec

from poolwise.live.kubernetes.objects.device import DeviceId, DeviceSelector
from poolwise.live.kubernetes.objects.meta import ApiRecord, Condition, Meta, ResourceRequests
from poolwise.live.kubernetes.objects.node import Toleration
from poolwise.live.kubernetes.objects.selectors import NodeSelector

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer that prevents the deletion of an allocated claim while a pod uses it."""


class ExactRequest(ApiRecord, frozen=True):
    """A request for devices of one class; `name` is set for an alternative only."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: list[Toleration] = []
    capacity: ResourceRequests = ResourceRequests()


class DeviceRequest(ApiRecord, frozen=True):
    """A request of a claim: exactly one, or the first available of several alternatives."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] = []

    @property
    def alternatives(self) -> tuple[ExactRequest, ...]:
        """Acceptable requests, the preferred one first."""
        return tuple(self.first_available) if self.exactly is None else (self.exactly,)


class DeviceConstraint(ApiRecord, frozen=True):
    """Attribute that the devices of several requests must share, or must differ in."""

    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimDevices(ApiRecord, frozen=True):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[dict[str, Any]] = []


class ClaimSpec(ApiRecord, frozen=True):
    devices: ClaimDevices = ClaimDevices()


class AllocatedDevice(ApiRecord, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    consumed_capacity: dict[str, str] | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    tolerations: list[Toleration] | None = None

    @property
    def id(self) -> DeviceId:
        """The device."""
        return DeviceId(self.driver, self.pool, self.device)


class DeviceAllocation(ApiRecord, frozen=True):
    results: list[AllocatedDevice] = []
    config: list[dict[str, Any]] = []


class Allocation(ApiRecord, frozen=True):
    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(ApiRecord, frozen=True):
    """An object for which a claim is reserved, usually a pod."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceStatus(ApiRecord, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] = []

    @property
    def id(self) -> DeviceId:
        """The device."""
        return DeviceId(self.driver, self.pool, self.device)


class ClaimStatus(ApiRecord, frozen=True):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []
    devices: list[DeviceStatus] = []


class ResourceClaim(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def wanted(self) -> list[ExactRequest]:
        """All requests, including alternatives."""
        return [wanted for request in self.spec.devices.requests for wanted in request.alternatives]

    @property
    def allocated_devices(self) -> list[AllocatedDevice]:
        """Allocated devices, empty without an allocation."""
        return [] if self.status.allocation is None else self.status.allocation.devices.results

    @property
    def pinned_node(self) -> str | None:
        """The only node on which the devices can be used, None if the allocation does not restrict them to one."""
        selector = self.status.allocation.node_selector if self.status.allocation is not None else None
        names = set()
        for term in selector.node_selector_terms if selector is not None else ():
            fields = [field for field in term.match_fields if field.key == "metadata.name" and field.operator == "In"]
            if len(fields) != 1 or len(fields[0].values) != 1:
                return None
            names.add(fields[0].values[0])
        return names.pop() if len(names) == 1 else None

    def is_reserved_for(self, uid: str) -> bool:
        """Return whether the claim is reserved for a pod."""
        return any(user.uid == uid for user in self.status.reserved_for)
