"""Required affinity and anti-affinity of pods, compared with the naive rule, and applied to pods and gangs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from poolwise.live.kubernetes.pod_affinity import AffinityFilter
from poolwise.live.kubernetes.pod_rules import PodRules
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make
from tests.live_kubernetes.naive_rules import HOST, NAMESPACES, REQUIRED, ZONE, Cluster, affinity_allows, clusters, decoded

SCHEDULER = ListScheduler(placement=FirstNodes())
GROUP = "pod-group.scheduling.sigs.k8s.io"


@settings(max_examples=500)
@given(clusters(affinity=True))
def test_filter_matches_the_naive_rule(cluster: Cluster) -> None:
    nodes, placed, related, pod = decoded(cluster)
    affinity = AffinityFilter.of(pod, PodRules.of(pod), placed, related, NAMESPACES)
    for item, node in zip(cluster[0], nodes, strict=True):
        assert (affinity.problem(node) is None) == affinity_allows(cluster, item)


def zones(*names: str, cpu: str = "16") -> FakeKubernetes:
    """Return one node per letter, in the zone that it names."""
    return FakeKubernetes(*(make.node(f"n{k}", cpu=cpu, labels={HOST: f"n{k}", ZONE: name}) for k, name in enumerate(names)))


def term(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {REQUIRED: list(terms)}}


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def add(kube: FakeKubernetes, name: str, app: str, affinity: dict[str, Any] | None = None, **more: Any) -> None:
    labels = {"app": app, **more.pop("labels", {})}
    kube.add(make.pod(name, seconds=None, labels=labels, **({"affinity": affinity} if affinity else {}), **more))


def test_pod_waits_for_the_pod_that_its_affinity_requires() -> None:
    kube = zones("a", "b", "b")
    add(kube, "client", "client", near(term("server")))
    driven = kube.open(SCHEDULER)
    (row,) = driven.loop.queue.jobs.tolist()
    assert driven.loop.aside[row] == "node n0 has no pod in its domain that matches the pod's affinity, and no other node fits"
    add(kube, "server", "server", nodeName="n2", schedulerName="default-scheduler")
    assert driven.settle().nodes()["client"] == "n1"


def test_first_pod_of_a_group_starts_and_attracts_the_others() -> None:
    kube = zones("a", "b", "a", cpu="1")
    for k in range(3):
        add(kube, f"p{k}", "x", near(term("x")))
    assert kube.open(SCHEDULER).nodes() == {"p0": "n0", "p1": "n2"}


def test_pods_that_are_being_bound_count() -> None:
    kube = zones("a", "b")
    kube.binds_at_once = False
    for k in range(3):
        add(kube, f"p{k}", "x", away(term("x", HOST)))
    add(kube, "q", "x")
    add(kube, "r", "y")
    kube.open(SCHEDULER)
    assert [(start.pod.metadata.name, start.node) for _, (start,) in kube.started] == [("p0", "n0"), ("p1", "n1"), ("r", "n0")]


def test_namespace_selector_uses_the_labels_of_namespaces() -> None:
    kube = zones("a", "b")
    kube.add({"kind": "Namespace", "metadata": {"name": "default", "labels": {}}})
    add(kube, "client", "client", near(term("server", namespaceSelector={"matchLabels": {"team": "t"}})))
    add(kube, "server", "server", nodeName="n1", schedulerName="default-scheduler")
    driven = kube.open(SCHEDULER)
    assert "client" not in driven.nodes()
    kube.add({"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "t"}}})
    assert driven.settle().nodes()["client"] == "n1"


@pytest.mark.parametrize("first", ["server", "client"])
def test_pods_of_a_gang_attract_each_other_in_any_order(first: str) -> None:
    kube = zones("a", "b", "b", cpu="1")
    second = {"server": "client", "client": "server"}[first]
    for k, app in enumerate((first, second)):
        affinity = near(term("server")) if app == "client" else None
        add(kube, f"p{k}", app, affinity, labels={GROUP: "g", f"{GROUP}/min-available": "2"})
    assert sorted(kube.open(SCHEDULER).nodes().values()) == ["n1", "n2"]


def test_gang_goes_to_a_zone_with_room_for_all_of_its_pods() -> None:
    kube = zones("a", "b", "b", "b", cpu="1")
    for k in range(3):
        add(kube, f"p{k}", "x", near(term("x")), labels={GROUP: "g", f"{GROUP}/min-available": "3"})
    assert sorted(kube.open(SCHEDULER).nodes().values()) == ["n1", "n2", "n3"]


def test_gang_that_exceeds_every_zone_does_not_start() -> None:
    kube = zones("a", "b", cpu="1")
    for k in range(2):
        add(kube, f"p{k}", "x", near(term("x")), labels={GROUP: "g", f"{GROUP}/min-available": "2"})
    assert kube.open(SCHEDULER).nodes() == {}
