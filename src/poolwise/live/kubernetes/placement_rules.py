"""Placement rules of a pod, evaluated against the pods on nodes, the pods being bound, and the other pods of the decision."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.host_ports import conflicting_port
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.pod_affinity import AffinityFilter, Domain, PlacedPod
from poolwise.live.kubernetes.pod_rules import PodRules
from poolwise.live.kubernetes.preferences import (
    NODE_AFFINITY_WEIGHT,
    POD_AFFINITY_WEIGHT,
    SPREAD_WEIGHT,
    TAINT_WEIGHT,
    domain_weights,
    node_affinity_scores,
    pod_affinity_scores,
    taint_count,
    taint_scores,
    weighted_sum,
)
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.kubernetes.topology_spread import SpreadFilter, spread_scores


@dataclass
class KnownPods:
    """Cached pods with their nodes, None before they are first needed; valid until the next cluster event."""

    pods: list[PlacedPod] | None = None

    def add(self, pods: Iterable[PlacedPod]) -> None:
        """Add the pods of a start."""
        if self.pods is not None:
            self.pods += pods


class PlacedPods:
    """The pods of a cluster with their nodes, for one decision; `add` adds the pods that it places.

    `known` caches the pods that had nodes before the decision.
    """

    def __init__(self, cache: ClusterCache, state: ClusterState, pods: KnownPods) -> None:
        self.cache, self.state, self._known = cache, state, pods
        self.namespaces = {name: namespace.metadata.labels for name, namespace in cache.namespaces.items()}
        self._added: list[PlacedPod] = []

    @property
    def nodes(self) -> Collection[Node]:
        """All nodes of the cluster."""
        return self.cache.nodes.values()

    @cached_property
    def all(self) -> list[PlacedPod]:
        """All pods with their nodes."""
        if self._known.pods is None:
            names = [name for name, pods in self.cache.on_node.items() if pods]
            names += [name for name in self.state.run_pods_on if not self.cache.on_node.get(name)]
            on_nodes = ((self.cache.nodes.get(name), name) for name in names)
            placed_pods = ((pod, node) for node, name in on_nodes if node is not None for pod in self.state.pods_on(name))
            self._known.pods = list(placed_pods)
        return [*self._known.pods, *self._added]

    @cached_property
    def related(self) -> list[tuple[Pod, Node, PodRules]]:
        """The pods with affinity or anti-affinity to others, with their nodes and rules."""
        with_rules = []
        for key, name in (self.state.related | self.cache.related).items():
            pod, node, rules = self.cache.pods.get(key), self.cache.nodes.get(name), self.cache.pod_rules.get(key)
            if pod is not None and node is not None and rules is not None and not pod.terminated:
                with_rules.append((pod, node, rules))
        for pod, node in self._added:
            rules = self.cache.pod_rules.get(pod.metadata.key)
            if rules is not None and rules.relates_to_pods:
                with_rules.append((pod, node, rules))
        return with_rules

    def on(self, name: str) -> list[Pod]:
        """Return the pods on a node."""
        return [*self.state.pods_on(name), *(pod for pod, node in self._added if node.metadata.name == name)]

    def add(self, pod: Pod, node: Node) -> None:
        """Add a pod that the decision places on a node."""
        self._added.append((pod, node))
        self.__dict__.pop("all", None)
        self.__dict__.pop("related", None)

    def rules_for(self, pod: Pod, constraints: NodeConstraints) -> PlacementRules | None:
        """Return the rules that concern a pod, both its own and the rules of pods on nodes; None if there are none."""
        rules = self.cache.pod_rules.get(pod.metadata.key)
        if rules is None and not self.related and not self.cache.soft_tainted:
            return None
        return PlacementRules(pod, rules, constraints, self)


class PlacementRules:
    """The rules that concern one pod."""

    def __init__(self, pod: Pod, rules: PodRules | None, constraints: NodeConstraints, placed: PlacedPods) -> None:
        self._pod, self._placed, self._constraints = pod, placed, constraints
        self._rules = rules if rules is not None else PodRules()
        own_terms, spread = self._rules.affinity or self._rules.anti_affinity, self._rules.required_spread
        self._affinity = AffinityFilter.of(pod, self._rules, placed.all if own_terms else (), placed.related, placed.namespaces)
        self._spread = SpreadFilter.of(
            pod,
            spread,
            constraints,
            placed.nodes if spread else (),
            placed.all if spread else (),
            placed.state.spread_domains,
        )

    def problem(self, node: Node) -> str | None:
        """Return why the pod may not run on a node, or None if it may."""
        return self._port_problem(node) or self._affinity.problem(node) or self._spread.problem(node)

    def prefers_others(self, node: Node) -> bool:
        """Return whether the pod may prefer another node to this one."""
        tainted = node.metadata.name in self._placed.cache.soft_tainted
        return (
            self._rules.has_preferences
            or any(self._domain_weights.values())
            or (tainted and taint_count(self._pod.spec.tolerations, node) > 0)
        )

    def scores(self, candidates: Sequence[Node]) -> dict[str, int]:
        """Return node -> weighted sum of the scores of all preferences."""
        rules, spread, placed = self._rules, self._rules.preferred_spread, self._placed
        each = [(POD_AFFINITY_WEIGHT, pod_affinity_scores(self._domain_weights, candidates))]
        if placed.cache.soft_tainted:
            each.append((TAINT_WEIGHT, taint_scores(self._pod.spec.tolerations, candidates)))
        if rules.preferred_nodes:
            each.append((NODE_AFFINITY_WEIGHT, node_affinity_scores(rules.preferred_nodes, candidates)))
        if spread:
            domains = placed.state.spread_domains
            scores = spread_scores(self._pod, spread, self._constraints, candidates, placed.nodes, placed.all, domains)
            each.append((SPREAD_WEIGHT, scores))
        return weighted_sum(each)

    @cached_property
    def _domain_weights(self) -> dict[Domain, int]:
        """Domain -> weight that results from affinity to the pods in the domain."""
        own, placed = self._rules.preferred_pods, self._placed
        return domain_weights(self._pod, own, placed.all if own else (), placed.related, placed.namespaces)

    def _port_problem(self, node: Node) -> str | None:
        if not self._rules.ports:
            return None
        users = (self._placed.cache.pod_rules.get(pod.metadata.key) for pod in self._placed.on(node.metadata.name))
        port = conflicting_port(self._rules.ports, [port for rules in users if rules is not None for port in rules.ports])
        return None if port is None else f"host port {port} of node {node.metadata.name} is in use"
