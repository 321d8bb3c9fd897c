"""Devices as drivers publish them, and classes of devices."""

from __future__ import annotations

from typing import Any

from poolwise.live.kubernetes.objects.nodes import NodeSelector, Taint
from poolwise.live.kubernetes.objects.record import ApiRecord, Meta


class RequestPolicy(ApiRecord, frozen=True):
    """How amounts of a capacity are rounded: the default, and the range or the values that are valid."""

    default: str | None = None
    valid_range: dict[str, str] | None = None
    valid_values: list[str] | None = None


class Capacity(ApiRecord, frozen=True):
    """An amount that a device has."""

    value: str = "0"
    request_policy: RequestPolicy | None = None


class CounterUse(ApiRecord, frozen=True):
    """What a device takes of a set of counters."""

    counter_set: str = ""
    counters: dict[str, Capacity] = {}


class CounterSet(ApiRecord, frozen=True):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Capacity] = {}


class PublishedDevice(ApiRecord, frozen=True):
    """A device in a slice."""

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
    """Which slices belong together."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(ApiRecord, frozen=True):
    """What a driver publishes."""

    driver: str = ""
    pool: DevicePool = DevicePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[PublishedDevice] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(ApiRecord, frozen=True):
    """Devices of one driver."""

    metadata: Meta = Meta()
    spec: SliceSpec = SliceSpec()


class Cel(ApiRecord, frozen=True):
    """An expression about one device."""

    expression: str = ""


class DeviceSelector(ApiRecord, frozen=True):
    """What a device must be."""

    cel: Cel = Cel()


class ClassSpec(ApiRecord, frozen=True):
    """Devices of a class, and their configuration."""

    selectors: list[DeviceSelector] = []
    config: list[dict[str, Any]] = []
    extended_resource_name: str | None = None


class DeviceClass(ApiRecord, frozen=True):
    """A class of devices."""

    metadata: Meta = Meta()
    spec: ClassSpec = ClassSpec()
