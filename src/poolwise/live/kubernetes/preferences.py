"""Preferences of a pod among nodes: scores of 0 to 100 per kind, with the weights of kube-scheduler's default profile."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from poolwise.live.kubernetes.node_constraints import term_matches, tolerates_taint
from poolwise.live.kubernetes.objects.node import Node, Toleration
from poolwise.live.kubernetes.objects.pod import Pod, PodAffinityTerm, PreferredNodes, WeightedPodAffinityTerm
from poolwise.live.kubernetes.pod_affinity import Domain, NamespaceLabels, PlacedPod, domain_of, term_selects
from poolwise.live.kubernetes.pod_rules import PodRules

TAINT_WEIGHT, NODE_AFFINITY_WEIGHT, POD_AFFINITY_WEIGHT, SPREAD_WEIGHT = 3, 2, 2, 2
REQUIRED_WEIGHT = 1
"""Weight of each required affinity term, of a pod on a node, that selects the pod (`hardPodAffinityWeight`)."""


def taint_scores(tolerations: Collection[Toleration], candidates: Iterable[Node]) -> dict[str, int]:
    """Return node -> score; the node with the most untolerated `PreferNoSchedule` taints scores 0, one without them 100."""
    counts = {node.metadata.name: taint_count(tolerations, node) for node in candidates}
    most = max(counts.values(), default=0)
    return {name: 100 - 100 * count // most if most else 100 for name, count in counts.items()}


def taint_count(tolerations: Collection[Toleration], node: Node) -> int:
    """Return the number of `PreferNoSchedule` taints of a node that are not tolerated."""
    relevant = [toleration for toleration in tolerations if toleration.effect in ("", "PreferNoSchedule")]
    taints = (taint for taint in node.spec.taints if taint.effect == "PreferNoSchedule")
    return sum(not any(tolerates_taint(toleration, taint) for toleration in relevant) for taint in taints)


def node_affinity_scores(preferred: Sequence[PreferredNodes], candidates: Iterable[Node]) -> dict[str, int]:
    """Return node -> score, proportional to the weights of the matching terms; an empty term matches nothing."""
    sums = {
        node.metadata.name: sum(term.weight for term in preferred if term_matches(term.preference, node)) for node in candidates
    }
    most = max(sums.values(), default=0)
    return {name: 100 * value // most if most else 0 for name, value in sums.items()}


def domain_weights(
    pod: Pod,
    preferred: Sequence[WeightedPodAffinityTerm],
    placed: Iterable[PlacedPod],
    related: Iterable[tuple[Pod, Node, PodRules]],
    namespaces: NamespaceLabels,
) -> dict[Domain, int]:
    """Return domain -> sum of the weights of the pod's terms, and of terms of the pods on nodes that select the pod."""
    weights: dict[Domain, int] = {}

    def add(term: PodAffinityTerm, weight: int, owner: Pod, selected: Pod, home: Node) -> None:
        domain = domain_of(term, home)
        if domain is not None and term_selects(term, owner, selected, namespaces):
            weights[domain] = weights.get(domain, 0) + weight

    if preferred:
        for other, node in placed:
            for preference in preferred:
                add(preference.pod_affinity_term, preference.weight, pod, other, node)
    for other, node, own in related:
        for term in own.affinity:
            add(term, REQUIRED_WEIGHT, other, pod, node)
        for preference in own.preferred_pods:
            add(preference.pod_affinity_term, preference.weight, other, pod, node)
    return weights


def pod_affinity_scores(weights: Mapping[Domain, int], candidates: Iterable[Node]) -> dict[str, int]:
    """Return node -> score by the weights of its domains: 0 for the lowest sum and 100 for the highest."""
    sums = {node.metadata.name: sum(weights.get(domain, 0) for domain in node.metadata.labels.items()) for node in candidates}
    least, most = min(sums.values(), default=0), max(sums.values(), default=0)
    return {name: int(100 * ((value - least) / (most - least))) if most > least else 0 for name, value in sums.items()}


def weighted_sum(each: Iterable[tuple[int, Mapping[str, int]]]) -> dict[str, int]:
    """Return node -> sum of its scores, each times its weight."""
    totals: dict[str, int] = {}
    for weight, scores in each:
        for name, score in scores.items():
            totals[name] = totals.get(name, 0) + weight * score
    return totals
