"""Pod groups, whose pods start together."""

from __future__ import annotations

from typing import Any

from poolwise.live.kubernetes.objects.meta import ApiRecord, Meta


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
