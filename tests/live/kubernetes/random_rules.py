"""Placement rules of random pods on random clusters are those of kube-scheduler, node by node.

kube-scheduler decides about each candidate without restriction. Its log names the score of every feasible node. Poolwise then
decides about the same candidate once for each node, which an extended resource pins, and once without a pin: the pod must start
on exactly the feasible nodes, and the unpinned one on a node with the highest score. kube-scheduler runs without the scores
that the placement of Poolwise replaces: those for free resources and images.

`POOLWISE_RULES_SEEDS="1 2 3"` selects the clusters, and `POOLWISE_RULES_PODS` the number of candidates of each.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.live.kubernetes.api import Api
from tests.live.kubernetes.control_plane import FIRST_FIT, ControlPlane, control_plane, kube_scheduler, scheduling
from tests.live.kubernetes.random_clusters import NAMESPACES, RandomCluster, random_cluster

SEEDS = os.environ.get("POOLWISE_RULES_SEEDS", "1 2 3").split()
CANDIDATES = int(os.environ.get("POOLWISE_RULES_PODS", "12"))
REPLACED = ("NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")
PROFILE = {
    "schedulerName": "default-scheduler",
    "plugins": {"score": {"disabled": [{"name": name} for name in REPLACED]}},
}
KUBE_SCHEDULER = {
    "KUBE_SCHEDULER_PROFILES": json.dumps([PROFILE]),
    "KUBE_SCHEDULER_FLAGS": "--vmodule=schedule_one=10",
    "KUBE_GATES": "GenericWorkload=true,GangScheduling=true,DRADeviceTaintRules=true,OpportunisticBatching=false",
}
"""Settings that log all scores, and evaluate each pod, also if an equal one came before."""
SELECTED = "volume.kubernetes.io/selected-node"
DECISION = 60.0
"""Seconds within which a scheduler must decide about a pod; reached only if it never decides."""
_CORE = "/api/v1/namespaces"
_GROUPS = {"StorageClass": "/apis/storage.k8s.io/v1/storageclasses", "PersistentVolume": "/api/v1/persistentvolumes"}


@dataclass
class Verdict:
    """A decision about a candidate.

    Attributes
    ----------
    node : chosen node, "" if no node is feasible
    message : condition of a pod without a node
    scores : feasible node -> score
    """

    node: str
    message: str = ""
    scores: dict[str, int] = field(default_factory=dict)


class Prober:
    """Lets both schedulers decide about the candidates of a cluster."""

    def __init__(self, plane: ControlPlane, cluster: RandomCluster) -> None:
        self._api, self._cluster, self._plane = Api(plane), cluster, plane
        self._count = 0

    def create_cluster(self) -> None:
        """Create all objects, and wait until their states last."""
        cluster, api = self._cluster, self._api
        for name, labels in NAMESPACES.items():
            with suppress(AssertionError):  # it exists
                api.ask("POST", _CORE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            api.ask("PATCH", f"{_CORE}/{name}", {"metadata": {"labels": labels}})
        api.create(cluster.nodes)
        for manifest in (*cluster.volumes, *cluster.pods):
            self._create(manifest)
        for name in cluster.terminating:
            pod = next(pod for pod in cluster.pods if pod["metadata"]["name"] == name)
            api.ask("DELETE", f"{_CORE}/{pod['metadata']['namespace']}/pods/{name}?gracePeriodSeconds=0")
        claims = f"{_CORE}/default/persistentvolumeclaims"
        wait(lambda: all(item["status"]["phase"] == "Bound" for item in api.ask("GET", claims)["items"]), "bound claims")
        wait(lambda: all(map(_is_ready, api.ask("GET", "/api/v1/nodes")["items"])), "nodes without the taint not-ready")
        wait(lambda: len(self._pods_in("Succeeded")) == 3, "three pods have succeeded")
        wait(lambda: not self._pods_in("Pending"), "all other pods run")

    def by_kube_scheduler(self, name: str) -> Verdict:
        """Return the decision of kube-scheduler on a candidate, with the score of each feasible node."""
        pod = self._probe(name, "default-scheduler")
        verdict = self._decision(pod)
        self._delete([pod])
        if verdict.node:
            log = (self._plane.folder / "scheduler.log").read_text()
            line = re.compile(rf'final score for pod" pod="default/{pod}" node="([^"]+)" score=(-?\d+)')
            verdict.scores = {node: int(score) for node, score in line.findall(log)} or {verdict.node: 0}
        return verdict

    def by_poolwise(self, name: str) -> Verdict:
        """Return the decision of Poolwise on a candidate."""
        pod = self._probe(name, "poolwise")
        verdict = self._decision(pod)
        self._delete([pod])
        return verdict

    def feasible(self, name: str, node: str) -> bool:
        """Return whether Poolwise starts a candidate that may use one node only."""
        pod = self._probe(name, "poolwise", node)
        verdict = self._decision(pod)
        self._delete([pod])
        assert verdict.node in ("", node), f"{name} is on {verdict.node} instead of {node}"
        return bool(verdict.node)

    def started(self, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Create candidates, each pinned to a node on which it must not start, at the same time; return those that start."""
        pods = {self._probe(name, "poolwise", node): (name, node) for name, node in pairs}
        try:
            return [pair for pod, pair in pods.items() if self._decision(pod).node]
        finally:
            self._delete(pods)

    def _probe(self, name: str, scheduler: str, node: str | None = None) -> str:
        self._count += 1
        pod = f"{name}-{self._count:04d}"
        for manifest in self._cluster.candidate(name, pod, scheduler, node):
            self._create(manifest)
        return pod

    def _create(self, one: dict[str, Any]) -> None:
        kind, namespace = one["kind"], one["metadata"].get("namespace")
        self._api.ask("POST", _GROUPS[kind] if kind in _GROUPS else f"{_CORE}/{namespace}/{kind.lower()}s", one)

    def _decision(self, pod: str) -> Verdict:
        verdicts: list[Verdict] = []

        def decided() -> bool:
            item = self._api.ask("GET", f"{_CORE}/default/pods/{pod}")
            if node := item["spec"].get("nodeName") or self._selected(item):
                verdicts.append(Verdict(node))
            for condition in item.get("status", {}).get("conditions", []):
                if condition["type"] == "PodScheduled" and condition["status"] == "False" and not verdicts:
                    verdicts.append(Verdict("", condition.get("message", "")))
            return bool(verdicts)

        wait(decided, f"a decision on {pod}")
        return verdicts[0]

    def _selected(self, pod: dict[str, Any]) -> str:
        """Return the node selected for the volume of a pod, "" without one: no provisioner runs, so the pod stays unbound."""
        name = f"{pod['metadata']['name']}-late"
        if not any(
            volume.get("persistentVolumeClaim", {}).get("claimName") == name for volume in pod["spec"].get("volumes", [])
        ):
            return ""
        claim = self._api.ask("GET", f"{_CORE}/default/persistentvolumeclaims/{name}")
        return str(claim["metadata"].get("annotations", {}).get(SELECTED, ""))

    def _delete(self, pods: Iterable[str]) -> None:
        for pod in pods:
            self._api.ask("DELETE", f"{_CORE}/default/pods/{pod}?gracePeriodSeconds=0")
            if "late" in self._cluster.candidates[pod.rpartition("-")[0]]:
                self._api.ask("DELETE", f"{_CORE}/default/persistentvolumeclaims/{pod}-late")

    def _pods_in(self, phase: str) -> list[Any]:
        items: list[Any] = self._api.ask("GET", f"/api/v1/pods?fieldSelector=status.phase={phase}")["items"]
        return [item for item in items if "deletionTimestamp" not in item["metadata"]]


def wait(condition: Callable[[], bool], words: str, seconds: float = DECISION) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not within {seconds:g} s: {words}"
        time.sleep(0.02)


def _is_ready(node: dict[str, Any]) -> bool:
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return "node.kubernetes.io/not-ready" not in taints and bool(node["status"].get("conditions"))


def differences(prober: Prober, name: str, expected: Verdict, nodes: Iterable[str]) -> list[str]:
    """Return how Poolwise's decisions on a candidate differ: nodes that it accepts or refuses wrongly, and its choice."""
    texts = [
        f"{name} {'starts' if node not in expected.scores else 'does not start'} on {node}"
        for node in nodes
        if prober.feasible(name, node) != (node in expected.scores)
    ]
    chosen, best = prober.by_poolwise(name), max(expected.scores.values(), default=0)
    if expected.scores and expected.scores.get(chosen.node, -1) != best:
        texts.append(f"{name} goes to {chosen.node or chosen.message}, the scores are {expected.scores}")
    if not expected.scores and chosen.node:
        texts.append(f"{name} goes to {chosen.node}, which is infeasible: {expected.message}")
    return texts


@pytest.mark.parametrize("seed", [int(seed) for seed in SEEDS])
def test_random_pods_have_the_feasible_nodes_and_the_preferences_of_kube_scheduler(seed: int, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(FIRST_FIT)
    cluster = random_cluster(seed, candidates=CANDIDATES)
    names = [node["metadata"]["name"] for node in cluster.nodes]
    with control_plane(tmp_path / "kube") as plane:
        prober = Prober(plane, cluster)
        prober.create_cluster()
        with kube_scheduler(plane, **KUBE_SCHEDULER), scheduling(plane, str(tmp_path / "s.toml"), log=tmp_path / "log"):
            expected = {name: prober.by_kube_scheduler(name) for name in cluster.candidates}
            infeasible = [(name, node) for name in expected for node in names if node not in expected[name].scores]
            suspects = {name for name, _ in prober.started(infeasible)}
            deviations = []
            for name, verdict in expected.items():
                nodes = names if name in suspects else verdict.scores
                deviations += differences(prober, name, verdict, nodes)
            again = {each.partition(" ")[0] for each in deviations}
            if again:  # a scheduler may have decided before it saw the deletion of the last candidate
                deviations = [
                    deviation
                    for name in again
                    for deviation in differences(prober, name, prober.by_kube_scheduler(name), names)
                ]
    sizes = {name: len(verdict.scores) for name, verdict in expected.items()}
    print(f"seed {seed}: feasible nodes of each candidate, of {len(names)}: {sizes}; {len(infeasible)} pairs are infeasible")
    details = {name: cluster.candidates[name] for name in sorted({each.partition(" ")[0] for each in deviations})}
    assert not deviations, f"seed {seed}: {json.dumps({'differences': deviations, 'candidates': details}, indent=1)}"
