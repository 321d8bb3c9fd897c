"""Devices that drivers publish, and device classes."""

from __future__ import annotations

from typing import Any

from poolwise.live.kubernetes.objects.nodes import NodeSelector, Taint
from poolwise.live.kubernetes.objects.record import ApiRecord, Meta


class RequestPolicy(ApiRecord, frozen=True):
    """Rounding of requested amounts: the default, and the valid range or values."""

    default: str | None = None
    valid_range: dict[str, str] | None = None
    valid_values: list[str] | None = None


class Capacity(ApiRecord, frozen=True):
    """A capacity of a device."""

    value: str = "0"
    request_policy: RequestPolicy | None = None


class CounterUse(ApiRecord, frozen=True):
    """Amounts that a device consumes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Capacity] = {}


class CounterSet(ApiRecord, frozen=True):
    """Counters shared by the devices of a pool."""

    name: str = ""
    counters: dict[str, Capacity] = {}


class PublishedDevice(ApiRecord, frozen=True):
    """A device in a resource slice."""

    name: str = ""
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, Capacity] = {}
    consumes_counters: list[CounterUse] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: list[Taint] = []
    binds_to_node: bool = False
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool = False


class DevicePool(ApiRecord, frozen=True):
    """Pool of a slice, its generation, and its number of slices."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(ApiRecord, frozen=True):
    """Specification of a slice."""

    driver: str = ""
    pool: DevicePool = DevicePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[PublishedDevice] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(ApiRecord, frozen=True):
    """A resource slice: devices of one driver."""

    metadata: Meta = Meta()
    spec: SliceSpec = SliceSpec()


class Cel(ApiRecord, frozen=True):
    """A CEL expression about one device."""

    expression: str = ""


class DeviceSelector(ApiRecord, frozen=True):
    """A condition that a device must satisfy."""

    cel: Cel = Cel()


class ClassSpec(ApiRecord, frozen=True):
    """Specification of a device class: selectors, configuration, and extended resource."""

    selectors: list[DeviceSelector] = []
    config: list[dict[str, Any]] = []
    extended_resource_name: str | None = None


class DeviceClass(ApiRecord, frozen=True):
    """A device class."""

    metadata: Meta = Meta()
    spec: ClassSpec = ClassSpec()
