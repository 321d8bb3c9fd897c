"""Kubernetes objects, decoded with only the fields that scheduling reads."""

from __future__ import annotations

from typing import Any

import msgspec


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Base of all API types; decoding drops undeclared fields, encoding omits defaults."""


class OwnerReference(ApiRecord, frozen=True):
    """Reference to the owner of an object."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Meta(ApiRecord, frozen=True):
    """Metadata of an object."""

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
        """Namespace and name; the name alone for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Condition(ApiRecord, frozen=True):
    """A condition of a node, a pod or a device."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Requirement(ApiRecord, frozen=True):
    """A requirement of a node selector term."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class SelectorTerm(ApiRecord, frozen=True):
    """A node selector term: all of its requirements must match."""

    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(ApiRecord, frozen=True):
    """A node selector: at least one of its terms must match."""

    node_selector_terms: list[SelectorTerm] = []


class Taint(ApiRecord, frozen=True):
    """A taint of a node or a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(ApiRecord, frozen=True):
    """A toleration of a pod or a device request."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class NodeSpec(ApiRecord, frozen=True):
    """Specification of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(ApiRecord, frozen=True):
    """Status of a node."""

    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(ApiRecord, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


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


class ContainerResources(ApiRecord, frozen=True):
    """Resource requests of a container or a pod."""

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
    """Required and preferred node affinity of a pod."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[Any] = []


class PodAffinity(ApiRecord, frozen=True):
    """Affinity of a pod to nodes and to other pods."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None


class Gate(ApiRecord, frozen=True):
    """A scheduling gate."""

    name: str = ""


class SchedulingGroup(ApiRecord, frozen=True):
    """Reference of a pod to its pod group."""

    pod_group_name: str | None = None


class PodClaim(ApiRecord, frozen=True):
    """A claim of a pod, by name or from a template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Volume(ApiRecord, frozen=True):
    """A volume, with the fields that may bind it to nodes."""

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None


class PodSpec(ApiRecord, frozen=True):
    """Specification of a pod."""

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
    """Name of a claim that was created for a pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedClaimName(ApiRecord, frozen=True):
    """Name of a claim that was created for a pod's extended resources."""

    resource_claim_name: str = ""


class PodStatus(ApiRecord, frozen=True):
    """Status of a pod."""

    phase: str = "Pending"
    conditions: list[Condition] = []
    nominated_node_name: str = ""
    resource_claim_statuses: list[ClaimName] = []
    extended_resource_claim_status: ExtendedClaimName | None = None
    start_time: str | None = None


class Pod(ApiRecord, frozen=True):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def scheduled_at(self) -> str:
        """Time at which the pod was bound, else started, else created."""
        given = (c.last_transition_time for c in self.status.conditions if c.type == "PodScheduled" and c.status == "True")
        return next(given, "") or self.status.start_time or self.metadata.creation_timestamp

    @property
    def terminated(self) -> bool:
        """True if it has terminated and holds no resources of its node."""
        return self.status.phase in ("Succeeded", "Failed")


class Gang(ApiRecord, frozen=True):
    """Gang of a pod group: the minimum number of pods that must start together."""

    min_count: int = 1


class SchedulingPolicy(ApiRecord, frozen=True):
    """Scheduling policy of a pod group."""

    gang: Gang | None = None


class GroupSpec(ApiRecord, frozen=True):
    """Specification of a pod group."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroup(ApiRecord, frozen=True):
    """A pod group, whose pods start together."""

    metadata: Meta = Meta()
    spec: GroupSpec = GroupSpec()


class LeaseSpec(ApiRecord, frozen=True):
    """Holder and timing of a lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiRecord, frozen=True):
    """A lease."""

    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()
