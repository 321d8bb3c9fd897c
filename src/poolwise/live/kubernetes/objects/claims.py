"""Resource claims: requests for devices, and their allocations."""

from __future__ import annotations

from typing import Any

import msgspec

from poolwise.live.kubernetes.objects.devices import DeviceSelector
from poolwise.live.kubernetes.objects.nodes import NodeSelector, Toleration
from poolwise.live.kubernetes.objects.record import ApiRecord, Condition, Meta

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer that prevents the deletion of an allocated claim while a pod uses it."""


class CapacityRequests(ApiRecord, frozen=True):
    """Amounts of capacity that a request needs of each device."""

    requests: dict[str, str] = {}


class ExactRequest(ApiRecord, frozen=True):
    """A request for devices of one class; `name` is set for an alternative only."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: list[Toleration] = []
    capacity: CapacityRequests = CapacityRequests()


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
    """Device requests of a claim, with constraints and configuration."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[dict[str, Any]] = []


class ClaimSpec(ApiRecord, frozen=True):
    """Specification of a claim."""

    devices: ClaimDevices = ClaimDevices()


class AllocatedDevice(ApiRecord, frozen=True):
    """A device allocated to a request."""

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


class DeviceAllocation(ApiRecord, frozen=True):
    """Allocated devices of a claim."""

    results: list[AllocatedDevice] = []
    config: list[dict[str, Any]] = []


class Allocation(ApiRecord, frozen=True):
    """Allocation of a claim: its devices, and the nodes on which they can be used."""

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
    """Status of an allocated device, as its driver reports it."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] = []


class ClaimStatus(ApiRecord, frozen=True):
    """Status of a claim."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []
    devices: list[DeviceStatus] = []


class ResourceClaim(ApiRecord, frozen=True):
    """A resource claim."""

    metadata: Meta = Meta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()
