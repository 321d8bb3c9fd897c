"""Pods, and groups of pods that start together."""

from __future__ import annotations

from typing import Any

from poolwise.live.kubernetes.objects.nodes import NodeSelector, Toleration
from poolwise.live.kubernetes.objects.record import ApiRecord, Condition, Meta


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


class ExtendedClaimName(ApiRecord, frozen=True):
    """The claim that was made for a pod's extended resources."""

    resource_claim_name: str = ""


class PodStatus(ApiRecord, frozen=True):
    """What is known of a pod."""

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
    def began(self) -> str:
        """When it got its node, as far as it says; when it was made, where it says nothing."""
        given = (c.last_transition_time for c in self.status.conditions if c.type == "PodScheduled" and c.status == "True")
        return next(given, "") or self.status.start_time or self.metadata.creation_timestamp

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
