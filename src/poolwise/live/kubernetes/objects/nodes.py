"""Nodes, node selectors, taints and tolerations."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.record import ApiRecord, Condition, Meta


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
