"""Topology spread constraints of pods, compared with the naive rule, and applied to pods and gangs."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings

from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.objects.selectors import LabelSelector, Requirement
from poolwise.live.kubernetes.pod_rules import PodRules
from poolwise.live.kubernetes.topology_spread import SpreadFilter, spread_selector
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live_kubernetes.naive_rules import HOST, ZONE, Cluster, clusters, decoded, spread_allows

SCHEDULER = ListScheduler(placement=FirstNodes())
GROUP = "pod-group.scheduling.sigs.k8s.io"


@settings(max_examples=500)
@given(clusters(spread=True))
def test_filter_matches_the_naive_rule(cluster: Cluster) -> None:
    nodes, placed, _, pod = decoded(cluster)
    rules = PodRules.of(pod) or PodRules()
    spread = SpreadFilter.of(pod, rules.required_spread, NodeConstraints.of(pod), nodes, placed)
    for item, node in zip(cluster[0], nodes, strict=True):
        assert (spread.problem(node) is None) == spread_allows(cluster, item)


def test_match_label_keys_restrict_the_selector_to_the_values_of_the_pod() -> None:
    constraint = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["hash", "absent"]}
    waiting = msgspec.convert(make.pod("p", labels={"hash": "1"}, topologySpreadConstraints=[constraint]), Pod)
    expected = LabelSelector(
        match_labels={"app": "a"}, match_expressions=[Requirement(key="hash", operator="In", values=["1"])]
    )
    assert spread_selector(waiting.spec.topology_spread_constraints[0], waiting) == expected


def zones(*names: str, cpu: str = "16") -> FakeKubernetes:
    """Return one node per letter, in the zone that it names."""
    return FakeKubernetes(*(make.node(f"n{k}", cpu=cpu, labels={HOST: f"n{k}", ZONE: name}) for k, name in enumerate(names)))


def add(kube: FakeKubernetes, name: str, gang: int = 0, **more: Any) -> None:
    spread = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    labels = {"app": "a", **({GROUP: "g", f"{GROUP}/min-available": str(gang)} if gang else {})}
    kube.add(make.pod(name, seconds=None, labels=labels, topologySpreadConstraints=[{**spread, **more}]))


def test_pods_alternate_between_zones() -> None:
    kube = zones("a", "a", "b", cpu="2")
    for k in range(5):
        add(kube, f"p{k}")
    nodes = kube.open(SCHEDULER).nodes()
    assert [nodes[f"p{k}"] == "n2" for k in range(5)] == [False, True, False, True, False]


def test_pod_waits_while_the_skew_is_too_large() -> None:
    kube = zones("a", "b", cpu="1")
    kube.add(make.pod("other", seconds=None, nodeName="n1", schedulerName="default-scheduler"))
    for k in range(2):
        add(kube, f"p{k}")
    driven = kube.open(SCHEDULER)
    assert "p0" in driven.nodes() and "p1" not in driven.nodes()
    kube.remove(Pod, "default/other")
    assert driven.settle().nodes()["p1"] == "n1"


def test_pods_of_a_gang_are_spread() -> None:
    kube = zones("a", "a", "b", "b")
    for k in range(4):
        add(kube, f"p{k}", gang=4, topologyKey=HOST)
    assert sorted(kube.open(SCHEDULER).nodes().values()) == ["n0", "n1", "n2", "n3"]


def test_too_few_domains_count_as_an_empty_one() -> None:
    kube = zones("a", "b")
    for k in range(3):
        add(kube, f"p{k}", minDomains=3)
    assert sorted(kube.open(SCHEDULER).nodes().values()) == ["n0", "n1"]
