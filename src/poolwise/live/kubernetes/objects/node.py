"""Nodes, with their taints and the tolerations of pods."""

from __future__ import annotations

from poolwise.live.kubernetes.objects.meta import ApiRecord, Condition, Meta


class Taint(ApiRecord, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(ApiRecord, frozen=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


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
