"""The fields of Kubernetes objects that scheduling reads, decoded without the rest."""

from __future__ import annotations

from typing import Any

import msgspec


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Part of an object; fields that are not named here are dropped when it is read, and defaults when it is written."""


class OwnerReference(ApiRecord, frozen=True):
    """Who made an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(ApiRecord, frozen=True):
    """Name and identity of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []
    owner_references: list[OwnerReference] = []

    @property
    def key(self) -> str:
        """Namespace and name; the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(ApiRecord, frozen=True):
    """A condition of a node, a pod or a device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


# Nodes


class Requirement(ApiRecord, frozen=True):
    """One requirement of a node selector."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class SelectorTerm(ApiRecord, frozen=True):
    """Requirements that must all hold."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(ApiRecord, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: list[SelectorTerm] = []


class Taint(ApiRecord, frozen=True):
    """A taint of a node or a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(ApiRecord, frozen=True):
    """What a pod or a request tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class NodeSpec(ApiRecord, frozen=True):
    """What an operator says of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(ApiRecord, frozen=True):
    """What a node says of itself."""

    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(ApiRecord, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# Devices


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


# Claims


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


# Pods


class ContainerResources(ApiRecord, frozen=True):
    """What a container asks for."""

    requests: dict[str, str] = {}


class Port(ApiRecord, frozen=True):
    """A port of a container."""

    host_port: int = 0


class Container(ApiRecord, frozen=True):
    """A container."""

    name: str = ""
    resources: ContainerResources = ContainerResources()
    ports: list[Port] = []
    restart_policy: str | None = None


class NodeAffinity(ApiRecord, frozen=True):
    """On which nodes a pod must or would like to be."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[Any] = []


class PodAffinity(ApiRecord, frozen=True):
    """Where a pod must or would like to be."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None


class Gate(ApiRecord, frozen=True):
    """A gate that someone else has to open."""

    name: str = ""


class SchedulingGroup(ApiRecord, frozen=True):
    """The group whose pods start together."""

    pod_group_name: str | None = None


class PodClaim(ApiRecord, frozen=True):
    """A claim that a pod uses, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Volume(ApiRecord, frozen=True):
    """A volume, as far as it binds late."""

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class PodSpec(ApiRecord, frozen=True):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, str] = {}
    resources: ContainerResources | None = None
    node_selector: dict[str, str] = {}
    affinity: PodAffinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[Any] = []
    resource_claims: list[PodClaim] = []
    scheduling_gates: list[Gate] = []
    scheduling_group: SchedulingGroup | None = None
    priority: int = 0
    priority_class_name: str = ""
    active_deadline_seconds: int | None = None
    volumes: list[Volume] = []


class ClaimName(ApiRecord, frozen=True):
    """The claim that was made for a pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiRecord, frozen=True):
    """What is known of a pod."""

    phase: str = "Pending"
    conditions: list[Condition] = []
    nominated_node_name: str = ""
    resource_claim_statuses: list[ClaimName] = []
    start_time: str | None = None


class Pod(ApiRecord, frozen=True):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def over(self) -> bool:
        """Whether it takes nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")


class Gang(ApiRecord, frozen=True):
    """How many pods must be able to start."""

    min_count: int = 1


class SchedulingPolicy(ApiRecord, frozen=True):
    """How the pods of a group start."""

    gang: Gang | None = None


class GroupSpec(ApiRecord, frozen=True):
    """What a group of pods asks for."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(ApiRecord, frozen=True):
    """Pods that start together."""

    metadata: Meta = Meta()
    spec: GroupSpec = GroupSpec()


class LeaseSpec(ApiRecord, frozen=True):
    """Who leads, and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiRecord, frozen=True):
    """A lease."""

    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()
