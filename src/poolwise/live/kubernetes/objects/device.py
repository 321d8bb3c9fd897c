"""Devices that drivers publish, their classes, and administrators' taints of devices."""

from __future__ import annotations

from typing import Any, NamedTuple

from poolwise.live.kubernetes.objects.meta import ApiRecord, Meta
from poolwise.live.kubernetes.objects.node import Taint
from poolwise.live.kubernetes.objects.selectors import NodeSelector


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class RequestPolicy(ApiRecord, frozen=True):
    """Rounding of requested amounts: the default, and the valid range or values."""

    default: str | None = None
    valid_range: dict[str, str] | None = None
    valid_values: list[str] | None = None


class Capacity(ApiRecord, frozen=True):
    value: str = "0"
    request_policy: RequestPolicy | None = None


class CounterUse(ApiRecord, frozen=True):
    counter_set: str = ""
    counters: dict[str, Capacity] = {}


class CounterSet(ApiRecord, frozen=True):
    name: str = ""
    counters: dict[str, Capacity] = {}


class PublishedDevice(ApiRecord, frozen=True):
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
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(ApiRecord, frozen=True):
    driver: str = ""
    pool: DevicePool = DevicePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[PublishedDevice] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: SliceSpec = SliceSpec()


class Cel(ApiRecord, frozen=True):
    expression: str = ""


class DeviceSelector(ApiRecord, frozen=True):
    cel: Cel = Cel()


class ClassSpec(ApiRecord, frozen=True):
    selectors: list[DeviceSelector] = []
    config: list[dict[str, Any]] = []
    extended_resource_name: str | None = None


class DeviceClass(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: ClassSpec = ClassSpec()


class TaintSelector(ApiRecord, frozen=True):
    """Devices that a rule taints: all criteria must match. The last two exist up to Kubernetes 1.34."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    device_class_name: str | None = None
    selectors: list[DeviceSelector] = []


class TaintRuleSpec(ApiRecord, frozen=True):
    device_selector: TaintSelector = TaintSelector()
    taint: Taint = Taint()


class DeviceTaintRule(ApiRecord, frozen=True):
    """An administrator's taint of all matching devices, as if their driver published it."""

    metadata: Meta = Meta()
    spec: TaintRuleSpec = TaintRuleSpec()
