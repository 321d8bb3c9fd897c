"""Results of placing a start: placements, refusals, and the failures that are cached."""

from __future__ import annotations

from dataclasses import dataclass, field

from poolwise.live.kubernetes.placement_rules import KnownPods
from poolwise.live.kubernetes.starts import PodStart
from poolwise.model import Placement


@dataclass(frozen=True)
class Placed:
    """A start that fits."""

    pods: tuple[PodStart, ...]  # pods to bind, with their nodes and claims
    placement: Placement  # resources that the run holds
    held: tuple[str, ...]  # uid of the claims whose devices are assumed
    moved: bool = False  # whether a pod is on another node than decided, because no suitable devices serve that one


@dataclass(frozen=True)
class Refused:
    """A start that does not fit."""

    why: str
    lasting: bool = False  # whether it will not fit until resources are released or added


class DoesNotFit(Exception):
    """A start that does not fit."""


class NotModeled(DoesNotFit):
    """A pod does not fit a node for a reason that the policy does not model: its constraints, or a resource."""


class KeptAway(DoesNotFit):
    """A pod that a placement rule keeps away from a node."""


class NotReady(Exception):
    """A start that is not possible yet because a pending change must complete first."""


@dataclass(frozen=True)
class PlacementFailures:
    """Placement failures, cached until resources are released or added, and dropped with the next cluster events."""

    everywhere: dict[bytes, str] = field(default_factory=dict)  # request key of a pod that fits on no node -> reason
    # request key of a pod and `Inventory.device_set_key` of a node that does not fit -> reason
    by_device_set: dict[tuple[bytes, int], str] = field(default_factory=dict)
    # nodes to which pods were moved; the policy may have planned other pods there
    moved_to: set[str] = field(default_factory=set)
    known_pods: KnownPods = field(default_factory=KnownPods)
