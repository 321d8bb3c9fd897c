"""Node constraints of pods: node selectors, required node affinity, taints and tolerations."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from poolwise.live.kubernetes.objects import Node, NodeSelector, Pod, Requirement, SelectorTerm, Taint, Toleration

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def selector_matches(selector: NodeSelector | None, node: Node) -> bool:
    """Return whether any term of a selector matches a node; None matches every node."""
    return selector is None or any(term_matches(term, node) for term in selector.node_selector_terms)


def term_matches(term: SelectorTerm, node: Node) -> bool:
    """Return whether all requirements of a term match a node."""
    if not term.match_expressions and not term.match_fields:
        return False  # in Kubernetes, an empty term matches nothing
    fields = {"metadata.name": node.metadata.name}
    return all(_matches(requirement, node.metadata.labels) for requirement in term.match_expressions) and all(
        _matches(requirement, fields) for requirement in term.match_fields
    )


def _matches(requirement: Requirement, labels: dict[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if value is not None and requirement.values:
            numbers = value, requirement.values[0]
            if all(text.removeprefix("-").isdigit() for text in numbers):
                has, bound = map(int, numbers)
                return has > bound if requirement.operator == "Gt" else has < bound
    return False


def untolerated_taint(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> Taint | None:
    """Return the first taint that these tolerations do not cover and that prevents scheduling, or None."""
    return next((t for t in taints if t.effect in _BLOCKING_EFFECTS and not any(_tolerates(o, t) for o in tolerations)), None)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value


def taints_of(node: Node) -> list[Taint]:
    """Return the taints of a node, including that of a cordoned one."""
    return [*node.spec.taints, _UNSCHEDULABLE] if node.spec.unschedulable else node.spec.taints


class NodeConstraints(msgspec.Struct, frozen=True):
    """Constraints of a pod on its node; pods with the same constraints have equal objects."""

    labels: tuple[tuple[str, str], ...] = ()  # required labels, sorted
    selector: bytes = b""  # required node affinity, as JSON
    tolerations: bytes = b"[]"  # tolerations that matter for scheduling, as JSON

    @classmethod
    def of(cls, pod: Pod) -> NodeConstraints:
        """Read the constraints of a pod."""
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        relevant = [t for t in pod.spec.tolerations if t.effect in ("", *_BLOCKING_EFFECTS)]
        return cls(
            tuple(sorted(pod.spec.node_selector.items())),
            b"" if required is None else msgspec.json.encode(required),
            msgspec.json.encode(relevant),
        )

    def allows(self, node: Node) -> bool:
        """Return whether a pod may run on a node."""
        labels = node.metadata.labels
        return (
            all(labels.get(key) == value for key, value in self.labels)
            and (not self.selector or selector_matches(_selector(self.selector), node))
            and untolerated_taint(taints_of(node), _tolerations(self.tolerations)) is None
        )


@lru_cache(maxsize=4096)
def _selector(text: bytes) -> NodeSelector:
    return msgspec.json.decode(text, type=NodeSelector)


@lru_cache(maxsize=4096)
def _tolerations(text: bytes) -> list[Toleration]:
    return msgspec.json.decode(text, type=list[Toleration])


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def required_anti_affinity(pod: Pod) -> list[dict[str, Any]]:
    """Return the terms of a pod that keep other pods away."""
    affinity = pod.spec.affinity.pod_anti_affinity if pod.spec.affinity is not None else None
    terms: list[dict[str, Any]] = (affinity or {}).get(REQUIRED) or []
    return terms


def excluding_pod(pod: Pod, node: Node, others: Iterable[Pod], nodes: Mapping[str, Node]) -> Pod | None:
    """Return a pod whose required anti-affinity keeps `pod` away from a node, or None.

    `others` are running pods with such terms. A term with a namespace selector counts for all namespaces: their labels are
    unknown.
    """
    for other in others:
        home = nodes.get(other.spec.node_name)
        for term in required_anti_affinity(other):
            domain = home.metadata.labels.get(term.get("topologyKey", "")) if home is not None else None
            here = node.metadata.labels.get(term.get("topologyKey", ""))
            if domain is not None and domain == here and _term_selects(term, other, pod):
                return other
    return None


def _term_selects(term: dict[str, Any], owner: Pod, pod: Pod) -> bool:
    namespaces = term.get("namespaces") or ([] if "namespaceSelector" in term else [owner.metadata.namespace])
    if pod.metadata.namespace not in namespaces and term.get("namespaceSelector") is None:
        return False
    selector = term.get("labelSelector")
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    requirements = [msgspec.convert(one, Requirement) for one in selector.get("matchExpressions") or []]
    labels = pod.metadata.labels
    return all(labels.get(k) == v for k, v in wanted.items()) and all(_matches(one, labels) for one in requirements)
