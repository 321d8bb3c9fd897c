"""Topology spread constraints, as in the plugin PodTopologySpread of kube-scheduler.

The default constraints of a cluster, which kube-scheduler adds to pods of services and replica sets, are not applied.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, log

from poolwise.live.kubernetes.label_selectors import selects
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod, SpreadConstraint
from poolwise.live.kubernetes.objects.selectors import LabelSelector, Requirement
from poolwise.live.kubernetes.pod_affinity import PlacedPod

HOSTNAME = "kubernetes.io/hostname"


KnownDomains = dict[Hashable, dict[str, str]]
"""Cached node -> domain of constraints, valid until nodes change."""


def spread_selector(constraint: SpreadConstraint, pod: Pod) -> LabelSelector | None:
    """Return the selector of a constraint, with the pod's values of `matchLabelKeys`."""
    keys = [key for key in constraint.match_label_keys if key in pod.metadata.labels]
    if constraint.label_selector is None or not keys:
        return constraint.label_selector
    added = [Requirement(key=key, operator="In", values=[pod.metadata.labels[key]]) for key in keys]
    before = constraint.label_selector
    return LabelSelector(match_labels=before.match_labels, match_expressions=[*before.match_expressions, *added])


@dataclass
class _Counted:
    """A constraint, and the number of matching pods in each domain."""

    constraint: SpreadConstraint
    matches_itself: bool
    pods: Mapping[str, int]  # value of the topology key -> number of pods

    @cached_property
    def minimum(self) -> int:
        """The number of pods in the domain with the fewest; 0 if there are too few domains."""
        return min(self.pods.values(), default=0) if len(self.pods) >= self.constraint.min_domains else 0


@dataclass(frozen=True)
class SpreadFilter:
    """Nodes that keep the skew of each `DoNotSchedule` constraint of a pod within its limit."""

    counted: Sequence[_Counted] = ()

    @classmethod
    def of(
        cls,
        pod: Pod,
        constraints: Sequence[SpreadConstraint],
        on_nodes: NodeConstraints,
        nodes: Collection[Node],
        placed: Collection[PlacedPod],
        domains: KnownDomains | None = None,
    ) -> SpreadFilter:
        """Count the matching pods of each domain; `on_nodes` are the node constraints of the pod."""
        if not constraints:
            return cls()
        return cls(
            [
                _Counted(
                    constraint,
                    selects(spread_selector(constraint, pod), pod.metadata.labels),
                    _count(pod, constraint, constraints, on_nodes, nodes, placed, domains),
                )
                for constraint in constraints
            ]
        )

    def problem(self, node: Node) -> str | None:
        """Return why the pod may not run on a node, or None if it may."""
        for counted in self.counted:
            key = counted.constraint.topology_key
            domain = node.metadata.labels.get(key)
            if domain is None:
                return f"node {node.metadata.name} lacks the label {key} of the pod's topology spread constraint"
            skew = counted.pods.get(domain, 0) + counted.matches_itself - counted.minimum
            if skew > counted.constraint.max_skew:
                return (
                    f"node {node.metadata.name} would increase the skew of the pod's topology spread over {key} to {skew}"
                    f" (maxSkew {counted.constraint.max_skew})"
                )
        return None


def spread_scores(
    pod: Pod,
    constraints: Sequence[SpreadConstraint],
    on_nodes: NodeConstraints,
    candidates: Sequence[Node],
    nodes: Collection[Node],
    placed: Collection[PlacedPod],
    domains: KnownDomains | None = None,
) -> dict[str, int]:
    """Return node -> score (0 to 100) of the `ScheduleAnyway` constraints of a pod; domains with few pods score high."""
    labeled = [
        node for node in candidates if all(constraint.topology_key in node.metadata.labels for constraint in constraints)
    ]
    raw = dict.fromkeys((node.metadata.name for node in labeled), 0.0)
    for constraint in constraints:
        key = constraint.topology_key
        if key == HOSTNAME:  # each node is a domain, and the policies for nodes do not apply
            weight = log(len(labeled) + 2)
            by_node: dict[str, int] = {}
            for _, node in _matching(pod, constraint, placed):
                by_node[node.metadata.name] = by_node.get(node.metadata.name, 0) + 1
            pods = {node.metadata.name: by_node.get(node.metadata.name, 0) for node in labeled}
        else:
            weight = log(len({node.metadata.labels[key] for node in labeled}) + 2)
            counts = _count(pod, constraint, constraints, on_nodes, nodes, placed, domains)
            pods = {node.metadata.name: counts.get(node.metadata.labels[key], 0) for node in labeled}
        for name, number in pods.items():
            raw[name] += number * weight + (constraint.max_skew - 1)
    rounded = {name: floor(value + 0.5) for name, value in raw.items()}
    scores = {node.metadata.name: 0 for node in candidates}
    most, least = max(rounded.values(), default=0), min(rounded.values(), default=0)
    return scores | {name: 100 * (most + least - value) // most if most else 100 for name, value in rounded.items()}


def _count(
    pod: Pod,
    constraint: SpreadConstraint,
    together: Sequence[SpreadConstraint],
    on_nodes: NodeConstraints,
    nodes: Collection[Node],
    placed: Iterable[PlacedPod],
    cached_domains: KnownDomains | None,
) -> dict[str, int]:
    """Return domain -> number of matching pods on its eligible nodes."""
    domains = _domains(constraint, together, on_nodes, nodes, cached_domains if cached_domains is not None else {})
    counts = dict.fromkeys(domains.values(), 0)
    for _, node in _matching(pod, constraint, placed):
        if (domain := domains.get(node.metadata.name)) is not None:
            counts[domain] += 1
    return counts


def _domains(
    constraint: SpreadConstraint,
    together: Sequence[SpreadConstraint],
    on_nodes: NodeConstraints,
    nodes: Collection[Node],
    domains: KnownDomains,
) -> dict[str, str]:
    """Return node -> domain of the eligible nodes, which have the labels of all constraints `together`."""
    topology_keys = frozenset(member.topology_key for member in together)
    honored = constraint.node_affinity_policy == "Honor", constraint.node_taints_policy == "Honor"
    key = constraint.topology_key, topology_keys, honored, on_nodes
    if key not in domains:
        domains[key] = {
            node.metadata.name: node.metadata.labels[constraint.topology_key]
            for node in nodes
            if topology_keys <= node.metadata.labels.keys()
            and (not honored[0] or on_nodes.selects(node))
            and (not honored[1] or on_nodes.tolerates(node))
        }
    return domains[key]


def _matching(pod: Pod, constraint: SpreadConstraint, placed: Iterable[PlacedPod]) -> Iterable[PlacedPod]:
    """Yield the placed pods that a constraint counts; as in kube-scheduler, an empty selector counts none."""
    selector = spread_selector(constraint, pod)
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return
    for other, node in placed:
        same = other.metadata.namespace == pod.metadata.namespace and other.metadata.deletion_timestamp is None
        if same and selects(selector, other.metadata.labels):
            yield other, node
