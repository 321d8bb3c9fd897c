"""Pods and pod groups."""

from __future__ import annotations

from typing import Any

from poolwise.live.kubernetes.objects.nodes import NodeSelector, Toleration
from poolwise.live.kubernetes.objects.record import ApiRecord, Condition, Meta


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
