"""Kubernetes objects, decoded with only the fields that scheduling reads; the Kubernetes API reference describes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class ApiRecord(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True, frozen=True):
    """Base of all API types; decoding drops undeclared fields, encoding omits defaults."""


class OwnerReference(ApiRecord, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Meta(ApiRecord, frozen=True):
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

    def is_older_than(self, other: Meta) -> bool:
        """Return whether it is older than another version of the object; versions are comparable since Kubernetes 1.35."""
        versions = self.resource_version, other.resource_version
        return all(version.isdigit() for version in versions) and int(versions[0]) < int(versions[1])


class Condition(ApiRecord, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class Requirement(ApiRecord, frozen=True):
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
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(ApiRecord, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Namespace(ApiRecord, frozen=True):
    metadata: Meta = Meta()


class NodeSpec(ApiRecord, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(ApiRecord, frozen=True):
    allocatable: dict[str, str] = {}
    conditions: list[Condition] = []


class Node(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


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


FINALIZER = "resource.kubernetes.io/delete-protection"
"""Finalizer that prevents the deletion of an allocated claim while a pod uses it."""


class ResourceRequests(ApiRecord, frozen=True):
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
        """Return whether it is reserved for a pod."""
        return any(user.uid == uid for user in self.status.reserved_for)


class Port(ApiRecord, frozen=True):
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class Container(ApiRecord, frozen=True):
    name: str = ""
    resources: ResourceRequests = ResourceRequests()
    ports: list[Port] = []
    restart_policy: str | None = None


class PreferredNodes(ApiRecord, frozen=True):
    """A node selector term that adds its weight to the score of matching nodes."""

    weight: int = 0
    preference: SelectorTerm = SelectorTerm()


class NodeAffinity(ApiRecord, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodes] = []


class LabelSelector(ApiRecord, frozen=True):
    """A label selector: all of its requirements must match; without any, it matches everything."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []


class PodAffinityTerm(ApiRecord, frozen=True):
    """Pods by labels and namespaces, and the node label that defines the domains.

    The API server merges `matchLabelKeys` and `mismatchLabelKeys` into the label selector.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(ApiRecord, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiRecord, frozen=True):
    """Affinity or anti-affinity to pods."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class PodAffinityRules(ApiRecord, frozen=True):
    """The field `affinity` of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SpreadConstraint(ApiRecord, frozen=True):
    """A topology spread constraint of a pod."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int = 1
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = []


class SchedulingGroup(ApiRecord, frozen=True):
    pod_group_name: str | None = None


class PodClaim(ApiRecord, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class Volume(ApiRecord, frozen=True):
    """A volume, with the fields that may bind it to nodes."""

    name: str = ""
    persistent_volume_claim: dict[str, Any] | None = None
    ephemeral: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    iscsi: dict[str, Any] | None = None
    rbd: dict[str, Any] | None = None
    vsphere_volume: dict[str, Any] | None = None


class PodSpec(ApiRecord, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: dict[str, str] = {}
    resources: ResourceRequests | None = None
    node_selector: dict[str, str] = {}
    affinity: PodAffinityRules | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[SpreadConstraint] = []
    resource_claims: list[PodClaim] = []
    scheduling_gates: list[Any] = []
    scheduling_group: SchedulingGroup | None = None
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    active_deadline_seconds: int | None = None
    volumes: list[Volume] = []


class ClaimName(ApiRecord, frozen=True):
    """Name of a claim that was created for a pod from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedClaimName(ApiRecord, frozen=True):
    """Name of a claim that was created for a pod's extended resources."""

    resource_claim_name: str = ""


class ContainerStatus(ApiRecord, frozen=True):
    """Resources of a running container: those that the runtime applies, and those that the kubelet has admitted."""

    name: str = ""
    resources: ResourceRequests | None = None
    allocated_resources: dict[str, str] = {}


class PodStatus(ApiRecord, frozen=True):
    phase: str = "Pending"
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequests | None = None  # of the pod as a whole, if it declares them
    allocated_resources: dict[str, str] = {}
    nominated_node_name: str = ""
    resource_claim_statuses: list[ClaimName] = []
    extended_resource_claim_status: ExtendedClaimName | None = None
    start_time: str | None = None


class Pod(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def scheduled_at(self) -> str:
        """Time at which the pod was bound, else started, else created."""
        bound_times = (
            c.last_transition_time for c in self.status.conditions if c.type == "PodScheduled" and c.status == "True"
        )
        return next(bound_times, "") or self.status.start_time or self.metadata.creation_timestamp

    @property
    def terminated(self) -> bool:
        """True if it has terminated and holds no resources of its node."""
        return self.status.phase in ("Succeeded", "Failed")


class VolumeAffinity(ApiRecord, frozen=True):
    """Nodes on which a volume can be used."""

    required: NodeSelector | None = None


class VolumeSpec(ApiRecord, frozen=True):
    node_affinity: VolumeAffinity | None = None


class PersistentVolume(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: VolumeSpec = VolumeSpec()


class VolumeClaimSpec(ApiRecord, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: list[str] = []


class VolumeClaimStatus(ApiRecord, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumeClaimStatus = VolumeClaimStatus()

    @property
    def is_bound(self) -> bool:
        """True if a volume is bound to it."""
        return self.status.phase == "Bound"


class TopologyTerm(ApiRecord, frozen=True):
    """Labels of nodes; all of them must match."""

    match_label_expressions: list[Requirement] = []


class StorageClass(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: list[TopologyTerm] = []


class Gang(ApiRecord, frozen=True):
    """Gang of a pod group: the minimum number of pods that must start together."""

    min_count: int = 1


class SchedulingPolicy(ApiRecord, frozen=True):
    gang: Gang | None = None


class GroupSpec(ApiRecord, frozen=True):
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: dict[str, Any] | None = None
    resource_claims: list[Any] = []
    priority: int | None = None
    priority_class_name: str = ""


class PodGroup(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: GroupSpec = GroupSpec()


class LeaseSpec(ApiRecord, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(ApiRecord, frozen=True):
    metadata: Meta = Meta()
    spec: LeaseSpec = LeaseSpec()
