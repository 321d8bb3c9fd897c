"""Nodes, and what is said of nodes: selectors, taints, tolerations."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.record import ApiRecord, Condition, Meta


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
