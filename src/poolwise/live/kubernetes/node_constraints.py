"""Node constraints of pods: node selectors, required node affinity, taints and tolerations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec

from poolwise.live.kubernetes.label_selectors import requirement_matches
from poolwise.live.kubernetes.objects.node import Node, Taint, Toleration
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.selectors import NodeSelector, SelectorTerm

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
    return all(requirement_matches(requirement, node.metadata.labels) for requirement in term.match_expressions) and all(
        requirement_matches(requirement, fields) for requirement in term.match_fields
    )


def untolerated_taint(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> Taint | None:
    """Return the first taint that these tolerations do not cover and that prevents scheduling, or None."""
    return next(
        (t for t in taints if t.effect in _BLOCKING_EFFECTS and not any(tolerates_taint(o, t) for o in tolerations)), None
    )


def tolerates_taint(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration covers a taint."""
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value


def taints_of(node: Node) -> list[Taint]:
    """Return the taints of a node, including the implicit taint of a cordoned node."""
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
        return self.selects(node) and untolerated_taint(taints_of(node), _tolerations(self.tolerations)) is None

    def selects(self, node: Node) -> bool:
        """Return whether the node selector and the required node affinity match a node."""
        labels = node.metadata.labels
        return all(labels.get(key) == value for key, value in self.labels) and (
            not self.selector or selector_matches(_selector(self.selector), node)
        )

    def tolerates(self, node: Node) -> bool:
        """Return whether the tolerations cover the taints of a node, except the taint of a cordoned node."""
        return untolerated_taint(node.spec.taints, _tolerations(self.tolerations)) is None


@lru_cache(maxsize=4096)
def _selector(text: bytes) -> NodeSelector:
    return msgspec.json.decode(text, type=NodeSelector)


@lru_cache(maxsize=4096)
def _tolerations(text: bytes) -> list[Toleration]:
    return msgspec.json.decode(text, type=list[Toleration])
