"""Required anti-affinity of running pods, which other schedulers placed, keeps pods away from their nodes."""

from __future__ import annotations

from typing import Any

import pytest

from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.schedulers.list import ListScheduler
from tests.helpers.played_cluster import FakeKubernetes
from tests.live.kubernetes import objects as make

HOST = "kubernetes.io/hostname"


def cluster(**term: Any) -> FakeKubernetes:
    """Return two nodes; a pod with an anti-affinity term runs on the first."""
    kube = FakeKubernetes(*(make.node(f"n{k}", labels={HOST: f"n{k}"}) for k in range(2)))
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, **term}]}}
    kube.add(make.pod("guard", seconds=None, nodeName="n0", schedulerName="default-scheduler", affinity=affinity))
    return kube


@pytest.mark.parametrize(
    ("term", "node"),
    [
        ({"labelSelector": {"matchLabels": {"app": "a"}}}, "n1"),
        ({"labelSelector": {"matchLabels": {"app": "b"}}}, "n0"),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, "n1"),
        ({"labelSelector": {}}, "n1"),
        ({}, "n0"),
        ({"labelSelector": {}, "namespaces": ["other"]}, "n0"),
        ({"labelSelector": {}, "namespaces": ["other"], "namespaceSelector": {}}, "n1"),
        ({"labelSelector": {}, "topologyKey": "zone"}, "n0"),
    ],
)
def test_pod_is_kept_away_by_a_matching_term(term: dict[str, Any], node: str) -> None:
    kube = cluster(**term)
    kube.add(make.pod("p", seconds=None, labels={"app": "a"}))
    nodes = kube.open(ListScheduler(placement=FirstNodes())).nodes()
    assert nodes["p"] == node


def test_pod_starts_once_the_other_pod_is_gone() -> None:
    kube = cluster(labelSelector={})
    kube.add(make.pod("full", cpu="16", seconds=None, nodeName="n1", schedulerName="default-scheduler"))
    kube.add(make.pod("p", seconds=None))
    driven = kube.open(ListScheduler(placement=FirstNodes()))
    assert "p" not in driven.nodes()
    (row,) = driven.loop.queue.jobs.tolist()
    assert driven.loop.aside[row] == "the anti-affinity of pod default/guard excludes node n0, and no other node fits"
    kube.remove(Pod, "default/guard")
    assert driven.settle().nodes()["p"] == "n0"
