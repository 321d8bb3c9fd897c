"""On which nodes a pod may run, as Kubernetes says it: selectors, required affinity, taints."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

import msgspec

from poolwise.live.kubernetes.objects import Node, NodeSelector, Pod, Requirement, SelectorTerm, Taint, Toleration

_KEEPS_OFF = ("NoSchedule", "NoExecute")
_UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def selects(selector: NodeSelector | None, node: Node) -> bool:
    """Whether any term of a selector holds for a node; none at all means every node."""
    return selector is None or any(term_holds(term, node) for term in selector.node_selector_terms)


def term_holds(term: SelectorTerm, node: Node) -> bool:
    """Whether all requirements of a term hold for a node."""
    if not term.match_expressions and not term.match_fields:
        return False  # as Kubernetes has it: an empty term selects nothing
    fields = {"metadata.name": node.metadata.name}
    return all(_holds(need, node.metadata.labels) for need in term.match_expressions) and all(
        _holds(need, fields) for need in term.match_fields
    )


def _holds(need: Requirement, labels: dict[str, str]) -> bool:
    value = labels.get(need.key)
    match need.operator:
        case "In":
            return value in need.values
        case "NotIn":
            return value not in need.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or not _is_number(value) or not need.values or not _is_number(need.values[0]):
                return False
            return int(value) > int(need.values[0]) if need.operator == "Gt" else int(value) < int(need.values[0])
    return False


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def kept_off(taints: Iterable[Taint], tolerations: Collection[Toleration]) -> Taint | None:
    """The first taint that keeps off whoever has these tolerations, None where there is none."""
    return next((t for t in taints if t.effect in _KEEPS_OFF and not any(_tolerates(o, t) for o in tolerations)), None)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value


def taints_of(node: Node) -> list[Taint]:
    """The taints of a node, that of a cordoned one among them."""
    return [*node.spec.taints, _UNSCHEDULABLE] if node.spec.unschedulable else node.spec.taints


class NodeConstraints(msgspec.Struct, frozen=True):
    """What a pod says of the nodes on which it may run; pods that say the same have equal ones.

    Attributes
    ----------
    labels : labels that a node must have, in order
    selector : required affinity, as JSON
    tolerations : what it tolerates, as JSON
    """

    labels: tuple[tuple[str, str], ...] = ()
    selector: bytes = b""
    tolerations: bytes = b"[]"

    @classmethod
    def of(cls, pod: Pod) -> NodeConstraints:
        """Read a pod."""
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
        matter = [t for t in pod.spec.tolerations if t.effect in ("", *_KEEPS_OFF)]
        return cls(
            tuple(sorted(pod.spec.node_selector.items())),
            b"" if required is None else msgspec.json.encode(required),
            msgspec.json.encode(matter),
        )

    def allows(self, node: Node) -> bool:
        """Whether a pod may run on a node."""
        labels = node.metadata.labels
        return (
            all(labels.get(key) == value for key, value in self.labels)
            and (not self.selector or selects(_selector(self.selector), node))
            and kept_off(taints_of(node), _tolerations(self.tolerations)) is None
        )


@lru_cache(maxsize=4096)
def _selector(text: bytes) -> NodeSelector:
    return msgspec.json.decode(text, type=NodeSelector)


@lru_cache(maxsize=4096)
def _tolerations(text: bytes) -> list[Toleration]:
    return msgspec.json.decode(text, type=list[Toleration])
