"""The fields of Kubernetes objects that scheduling reads, decoded without the rest."""

from __future__ import annotations

from typing import Any

import msgspec


class Record(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Part of an object; fields that are not named here are dropped when it is read, and defaults when it is written."""


class Owner(Record):
    """Who made an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(Record):
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
    owner_references: list[Owner] = []

    @property
    def key(self) -> str:
        """Namespace and name; the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(Record):
    """A condition of a node, a pod or a device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


# Nodes


class Requirement(Record):
    """One requirement of a node selector."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class SelectorTerm(Record):
    """Requirements that must all hold."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(Record):
    """Terms of which one must hold."""

    node_selector_terms: list[SelectorTerm] = []


class Taint(Record):
    """A taint of a node or a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Record):
    """What a pod or a request tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class NodeSpec(Record):
    """What an operator says of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Record):
    """What a node says of itself."""

    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(Record):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# Devices


class RequestPolicy(Record):
    """How amounts of a capacity are rounded: the default, and the range or the values that are valid."""

    default: str | None = None
    valid_range: dict[str, str] | None = None
    valid_values: list[str] | None = None


class Capacity(Record):
    """An amount that a device has."""

    value: str = "0"
    request_policy: RequestPolicy | None = None


class CounterUse(Record):
    """What a device takes of a set of counters."""

    counter_set: str = ""
    counters: dict[str, Capacity] = {}


class CounterSet(Record):
    """Counters that the devices of a pool share."""

    name: str = ""
    counters: dict[str, Capacity] = {}


class Device(Record):
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


class Pool(Record):
    """Which slices belong together."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class SliceSpec(Record):
    """What a driver publishes."""

    driver: str = ""
    pool: Pool = Pool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(Record):
    """Devices of one driver."""

    metadata: Meta = Meta()
    spec: SliceSpec = SliceSpec()


class Cel(Record):
    """An expression about one device."""

    expression: str = ""


class DeviceSelector(Record):
    """What a device must be."""

    cel: Cel = Cel()


class ClassSpec(Record):
    """Devices of a class, and their configuration."""

    selectors: list[DeviceSelector] = []
    config: list[dict[str, Any]] = []
    extended_resource_name: str | None = None


class DeviceClass(Record):
    """A class of devices."""

    metadata: Meta = Meta()
    spec: ClassSpec = ClassSpec()


# Claims


class CapacityRequests(Record):
    """Amounts that a request asks of each device."""

    requests: dict[str, str] = {}


class ExactRequest(Record):
    """Devices of one class; `name` is that of an alternative."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: list[Toleration] = []
    capacity: CapacityRequests = CapacityRequests()


class DeviceRequest(Record):
    """A request of a claim: one exactly, or the first of several alternatives that is available."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: list[ExactRequest] = []

    @property
    def alternatives(self) -> tuple[ExactRequest, ...]:
        """What would do, the best first."""
        return tuple(self.first_available) if self.exactly is None else (self.exactly,)


class DeviceConstraint(Record):
    """What the devices of several requests must have in common."""

    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimDevices(Record):
    """What a claim asks for."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[dict[str, Any]] = []


class ClaimSpec(Record):
    """What a claim asks for."""

    devices: ClaimDevices = ClaimDevices()


class AllocatedDevice(Record):
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


class DeviceAllocation(Record):
    """The devices of a claim."""

    results: list[AllocatedDevice] = []
    config: list[dict[str, Any]] = []


class Allocation(Record):
    """The devices of a claim, and the nodes on which they can be used."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(Record):
    """Who may use a claim."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceStatus(Record):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] = []


class ClaimStatus(Record):
    """What a claim has."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []
    devices: list[DeviceStatus] = []


class ResourceClaim(Record):
    """A claim on devices."""

    metadata: Meta = Meta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


# Pods


class Resources(Record):
    """What a container asks for."""

    requests: dict[str, str] = {}


class Port(Record):
    """A port of a container."""

    host_port: int = 0


class Container(Record):
    """A container."""

    name: str = ""
    resources: Resources = Resources()
    ports: list[Port] = []
    restart_policy: str | None = None


class NodeAffinity(Record):
    """On which nodes a pod must or would like to be."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[Any] = []


class Affinity(Record):
    """Where a pod must or would like to be."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None


class Gate(Record):
    """A gate that someone else has to open."""

    name: str = ""


class SchedulingGroup(Record):
    """The group whose pods start together."""

    pod_group_name: str | None = None


class PodClaim(Record):
    """A claim that a pod uses, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Volume(Record):
    """A volume, as far as it binds late."""

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class PodSpec(Record):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, str] = {}
    resources: Resources | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[Any] = []
    resource_claims: list[PodClaim] = []
    scheduling_gates: list[Gate] = []
    scheduling_group: SchedulingGroup | None = None
    priority: int = 0
    priority_class_name: str = ""
    active_deadline_seconds: int | None = None
    volumes: list[Volume] = []


class ClaimName(Record):
    """The claim that was made for a pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Record):
    """What is known of a pod."""

    phase: str = "Pending"
    conditions: list[Condition] = []
    nominated_node_name: str = ""
    resource_claim_statuses: list[ClaimName] = []
    start_time: str | None = None


class Pod(Record):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def over(self) -> bool:
        """Whether it takes nothing any more."""
        return self.status.phase in ("Succeeded", "Failed")


class Gang(Record):
    """How many pods must be able to start."""

    min_count: int = 1


class SchedulingPolicy(Record):
    """How the pods of a group start."""

    gang: Gang | None = None


class GroupSpec(Record):
    """What a group of pods asks for."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(Record):
    """Pods that start together."""

    metadata: Meta = Meta()
    spec: GroupSpec = GroupSpec()


class LeaseSpec(Record):
    """Who leads, and until when."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Record):
    """A lease."""

    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()


Watched = Node | ResourceSlice | DeviceClass | ResourceClaim | Pod | PodGroup
"""What a scheduler watches."""
