"""Claims on devices: what they ask for, and what they have."""

from __future__ import annotations

from typing import Any

import msgspec

from poolwise.live.kubernetes.objects.devices import DeviceSelector
from poolwise.live.kubernetes.objects.nodes import NodeSelector, Toleration
from poolwise.live.kubernetes.objects.record import ApiRecord, Condition, Meta

FINALIZER = "resource.kubernetes.io/delete-protection"
"""What keeps a claim with devices from being deleted while a pod uses them."""


class CapacityRequests(ApiRecord, frozen=True):
    """Amounts that a request asks of each device."""

    requests: dict[str, str] = {}


class ExactRequest(ApiRecord, frozen=True):
    """Devices of one class; `name` is that of an alternative."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: list[Toleration] = []
    capacity: CapacityRequests = CapacityRequests()


class DeviceRequest(ApiRecord, frozen=True):
    """A request of a claim: one exactly, or the first of several alternatives that is available."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] = []

    @property
    def alternatives(self) -> tuple[ExactRequest, ...]:
        """What would do, the best first."""
        return tuple(self.first_available) if self.exactly is None else (self.exactly,)


class DeviceConstraint(ApiRecord, frozen=True):
    """What the devices of several requests must have in common."""

    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimDevices(ApiRecord, frozen=True):
    """What a claim asks for."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[dict[str, Any]] = []


class ClaimSpec(ApiRecord, frozen=True):
    """What a claim asks for."""

    devices: ClaimDevices = ClaimDevices()


class AllocatedDevice(ApiRecord, frozen=True):
    """A device that a claim has."""

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
    """The devices of a claim."""

    results: list[AllocatedDevice] = []
    config: list[dict[str, Any]] = []


class Allocation(ApiRecord, frozen=True):
    """The devices of a claim, and the nodes on which they can be used."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(ApiRecord, frozen=True):
    """Who may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceStatus(ApiRecord, frozen=True):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] = []


class ClaimStatus(ApiRecord, frozen=True):
    """What a claim has."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []
    devices: list[DeviceStatus] = []


class ResourceClaim(ApiRecord, frozen=True):
    """A claim on devices."""

    metadata: Meta = Meta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()
