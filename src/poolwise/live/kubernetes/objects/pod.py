"""Pods: their requests, placement rules and status."""

from __future__ import annotations

from typing import Any

import msgspec

from poolwise.live.kubernetes.objects.meta import ApiRecord, Condition, Meta, ResourceRequests
from poolwise.live.kubernetes.objects.node import Toleration
from poolwise.live.kubernetes.objects.selectors import LabelSelector, NodeSelector, SelectorTerm


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
        """True if the pod has terminated and holds no resources of its node."""
        return self.status.phase in ("Succeeded", "Failed")
