"""Preferences of pods among nodes: scores compared with the naive rule, and their effect on the placement's choice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.pod_rules import PodRules
from poolwise.live.kubernetes.preferences import (
    domain_weights,
    node_affinity_scores,
    pod_affinity_scores,
    taint_scores,
    weighted_sum,
)
from poolwise.live.kubernetes.topology_spread import spread_scores
from poolwise.policies.placement.devices.pooled import Pooled
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live_kubernetes.naive_rules import (
    HOST,
    NAMESPACES,
    PREFERRED,
    REQUIRED,
    ZONE,
    Cluster,
    clusters,
    decoded,
    naive_scores,
)

SCHEDULER = ListScheduler(placement=FirstNodes())


@settings(max_examples=500)
@given(clusters(affinity=True, preferences=True))
def test_scores_by_taints_nodes_and_pods_match_the_naive_rule(cluster: Cluster) -> None:
    nodes, placed, related, pod = decoded(cluster)
    rules, expected = PodRules.of(pod) or PodRules(), naive_scores(cluster)
    assert taint_scores(pod.spec.tolerations, nodes) == expected["taints"]
    assert node_affinity_scores(rules.preferred_nodes, nodes) == expected["nodes"]
    weights = domain_weights(pod, rules.preferred_pods, placed, related, NAMESPACES)
    assert pod_affinity_scores(weights, nodes) == expected["pods"]


@settings(max_examples=500)
@given(clusters(spread=True))
def test_scores_by_spread_match_the_naive_rule(cluster: Cluster) -> None:
    nodes, placed, _, pod = decoded(cluster)
    soft = (PodRules.of(pod) or PodRules()).preferred_spread
    if soft:
        assert spread_scores(pod, soft, NodeConstraints.of(pod), nodes, nodes, placed) == naive_scores(cluster)["spread"]


def test_scores_are_added_with_their_weights() -> None:
    assert weighted_sum([(3, {"a": 100, "b": 0}), (2, {"a": 0, "b": 100})]) == {"a": 300, "b": 200}


def zones(*names: str, cpu: str = "16", **more: Any) -> FakeKubernetes:
    """Return one node per letter, in the zone that it names; `more` are fields of the first node."""
    kube = FakeKubernetes()
    for k, name in enumerate(names):
        kube.add(make.node(f"n{k}", cpu=cpu, labels={HOST: f"n{k}", ZONE: name}, **(more if k == 0 else {})))
    return kube


def add(kube: FakeKubernetes, name: str, app: str = "a", **more: Any) -> None:
    kube.add(make.pod(name, seconds=None, labels={"app": app}, **more))


def prefers_zone(zone: str, weight: int = 1) -> dict[str, Any]:
    wish = {"weight": weight, "preference": {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}}
    return {"nodeAffinity": {PREFERRED: [wish]}}


def weighted(app: str, weight: int = 1) -> dict[str, Any]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}


SPREAD = {
    "topologyKey": ZONE,
    "maxSkew": 1,
    "whenUnsatisfiable": "ScheduleAnyway",
    "labelSelector": {"matchLabels": {"app": "a"}},
}
WISHES: list[tuple[dict[str, Any], str]] = [
    ({}, "n0"),
    ({"affinity": prefers_zone("c")}, "n2"),
    ({"affinity": {"podAffinity": weighted("server")}}, "n1"),
    ({"affinity": {"podAntiAffinity": weighted("filler")}}, "n1"),
    ({"topologySpreadConstraints": [SPREAD]}, "n1"),
    ({"affinity": prefers_zone("absent")}, "n0"),
]


@pytest.mark.parametrize("placement", [FirstNodes(), Pooled()])
@pytest.mark.parametrize(("wish", "node"), WISHES)
def test_pod_goes_to_the_node_that_it_prefers(wish: dict[str, Any], node: str, placement: Any) -> None:
    kube = zones("a", "b", "c")
    add(kube, "filler", "filler", nodeName="n0", schedulerName="default-scheduler")
    add(kube, "twin", nodeName="n0", schedulerName="default-scheduler")
    add(kube, "server", "server", nodeName="n1", schedulerName="default-scheduler")
    add(kube, "p", **wish)
    chosen = kube.open(ListScheduler(placement=placement)).nodes()["p"]
    assert chosen == node or (placement == Pooled() and node == "n0")


@pytest.mark.parametrize("tolerations", [[], [{"key": "soft", "operator": "Exists"}]])
def test_pod_avoids_a_node_with_an_untolerated_soft_taint(tolerations: list[dict[str, Any]]) -> None:
    kube = zones("a", "b", cpu="1", taints=[{"key": "soft", "effect": "PreferNoSchedule"}])
    add(kube, "p", tolerations=tolerations)
    driven = kube.open(SCHEDULER)
    assert driven.nodes()["p"] == ("n0" if tolerations else "n1")
    add(kube, "q")
    assert set(driven.settle().nodes().values()) == {"n0", "n1"}


def test_pod_that_a_rule_moves_avoids_a_soft_taint() -> None:
    kube = FakeKubernetes(
        make.node("n0"), make.node("n1", taints=[{"key": "soft", "effect": "PreferNoSchedule"}]), make.node("n2")
    )
    for k in range(3):
        manifest = make.pod(f"p{k}", seconds=None)
        manifest["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
        kube.add(manifest)
    assert kube.open(SCHEDULER).nodes() == {"p0": "n0", "p1": "n2", "p2": "n1"}


def test_preferred_node_without_room_is_skipped() -> None:
    kube = zones("a", "b", cpu="1")
    for k in range(2):
        add(kube, f"p{k}", affinity=prefers_zone("b"))
    assert kube.open(SCHEDULER).nodes() == {"p0": "n1", "p1": "n0"}


def test_affinity_of_a_running_pod_attracts_the_pods_that_it_selects() -> None:
    kube = zones("a", "b")
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "server"}}}
    add(kube, "client", nodeName="n1", schedulerName="default-scheduler", affinity={"podAffinity": {REQUIRED: [term]}})
    add(kube, "server", "server")
    add(kube, "other", "other")
    nodes = kube.open(SCHEDULER).nodes()
    assert (nodes["server"], nodes["other"]) == ("n1", "n0")


def test_pod_with_a_claim_goes_to_the_preferred_node_that_has_devices() -> None:
    kube = zones("a", "b", "b")
    kube.add(make.device_class("gpu", "gpu.example"))
    for k in (0, 2):
        kube.add(make.devices("gpu.example", f"n{k}", {"name": "g0"}, node=f"n{k}"))
    kube.add(make.claim("c", make.exactly("gpu")))
    add(kube, "p", claims={"g": {"resourceClaimName": "c"}}, affinity=prefers_zone("b"))
    assert kube.open(SCHEDULER).nodes()["p"] == "n2"


def test_pods_of_a_gang_prefer_each_other() -> None:
    kube = zones("a", "b", "c", "b")
    group = "pod-group.scheduling.sigs.k8s.io"
    labels = {"app": "a", group: "g", f"{group}/min-available": "2"}
    for name, affinity in (("p0", prefers_zone("b", 100)), ("p1", {"podAffinity": weighted("a")})):
        kube.add(make.pod(name, cpu="9", seconds=None, labels=labels, affinity=affinity))
    assert kube.open(SCHEDULER).nodes() == {"p0": "n1", "p1": "n3"}
