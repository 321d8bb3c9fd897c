"""Required affinity and anti-affinity between pods, as in the plugin InterPodAffinity of kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.live.kubernetes.label_selectors import selects
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod, PodAffinityTerm
from poolwise.live.kubernetes.pod_rules import PodRules

Domain = tuple[str, str]  # topology key, and its value on the nodes of the domain
NamespaceLabels = Mapping[str, Mapping[str, str]]
PlacedPod = tuple[Pod, Node]  # a pod that has a node, or that a decision has placed on it


def term_selects(term: PodAffinityTerm, owner: Pod, pod: Pod, namespaces: NamespaceLabels, unknown: bool = False) -> bool:
    """Return whether a term of `owner` selects a pod; `unknown` is the answer if the labels of its namespace are unknown."""
    own = [owner.metadata.namespace] if not term.namespaces and term.namespace_selector is None else term.namespaces
    if pod.metadata.namespace not in own:
        selector = term.namespace_selector
        if selector is None:
            return False
        labels = namespaces.get(pod.metadata.namespace)
        if labels is None and (selector.match_labels or selector.match_expressions):
            return unknown and selects(term.label_selector, pod.metadata.labels)
        if not selects(selector, labels or {}):
            return False
    return selects(term.label_selector, pod.metadata.labels)


def domain_of(term: PodAffinityTerm, node: Node) -> Domain | None:
    """Return the domain of a node, or None if it lacks the label."""
    value = node.metadata.labels.get(term.topology_key)
    return None if value is None else (term.topology_key, value)


@dataclass
class AffinityFilter:
    """Domains from which the pods on nodes exclude a pod, and domains to which its affinity attracts it."""

    terms: Sequence[PodAffinityTerm] = ()  # required affinity of the pod
    near: set[Domain] = field(default_factory=set)  # with a pod that all terms select
    starts_group: bool = False  # whether the pod matches its own terms, and no pod on a node does
    excluded: dict[Domain, str] = field(default_factory=dict)  # reason

    @classmethod
    def of(
        cls,
        pod: Pod,
        rules: PodRules | None,
        placed: Iterable[PlacedPod],
        related: Iterable[tuple[Pod, Node, PodRules]],
        namespaces: NamespaceLabels,
    ) -> AffinityFilter:
        """Compute the filter of a pod; `related` are the pods on nodes whose own terms may concern it."""
        affinity = cls(rules.affinity if rules is not None else ())
        for other, node, own in related:
            for term in own.anti_affinity:
                if (domain := domain_of(term, node)) is not None and term_selects(term, other, pod, namespaces, unknown=True):
                    affinity.excluded[domain] = f"the anti-affinity of pod {other.metadata.key}"
        if rules is None or not (rules.affinity or rules.anti_affinity):
            return affinity
        for other, node in placed:
            for term in rules.anti_affinity:
                if (domain := domain_of(term, node)) is not None and term_selects(term, pod, other, namespaces, unknown=True):
                    affinity.excluded[domain] = f"its anti-affinity to pod {other.metadata.key}"
            if rules.affinity and all(term_selects(term, pod, other, namespaces) for term in rules.affinity):
                affinity.near |= {domain for term in rules.affinity if (domain := domain_of(term, node)) is not None}
        affinity.starts_group = not affinity.near and all(term_selects(term, pod, pod, namespaces) for term in rules.affinity)
        return affinity

    def problem(self, node: Node) -> str | None:
        """Return why the pod may not run on a node, or None if it may."""
        name = node.metadata.name
        for term in self.terms:
            domain = domain_of(term, node)
            if domain is None:
                return f"node {name} lacks the label {term.topology_key}, which the pod's affinity requires"
            if domain not in self.near and not self.starts_group:
                return f"node {name} has no pod in its domain that matches the pod's affinity"
        if self.excluded:
            for domain in node.metadata.labels.items():
                if (why := self.excluded.get(domain)) is not None:
                    return f"{why} excludes node {name}"
        return None
