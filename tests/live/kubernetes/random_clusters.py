"""Random clusters for the comparison of placement rules: nodes, pods on them, volumes, and candidate pods to place.

Equal seeds give equal clusters. The candidates combine all fields that relate a pod to nodes, other pods and volumes.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.live.kubernetes import objects as make

Item = dict[str, Any]
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
LATE = ("late-a", "late-bc", "late-any")
"""Storage classes whose volumes wait for their first consumer."""


def pin(node: str) -> str:
    """Return the extended resource that only one node has; unlike node affinity, it does not change topology spread."""
    return f"example.com/{node}"


@dataclass(frozen=True)
class RandomCluster:
    """Objects of a cluster, and the candidates: name -> labels and fields of the pod."""

    nodes: list[Item]
    volumes: list[Item]  # storage classes, volumes, and the claims that are bound to them
    pods: list[Item]  # with a node
    terminating: list[str]  # pods to delete, which a finalizer keeps
    candidates: dict[str, Item]

    def candidate(self, name: str, pod: str, scheduler: str, node: str | None = None) -> list[Item]:
        """Return a candidate as a pod of a scheduler, after its volume claim; `node` is the only node that it may use."""
        fields = dict(self.candidates[name])
        late, ports = fields.pop("late", None), fields.pop("ports", [])
        claims, volumes = [], fields.pop("volumes", [])
        if late is not None:
            claims = [make.volume_claim(f"{pod}-late", late)]
            volumes = [*volumes, {"name": "late", "persistentVolumeClaim": {"claimName": f"{pod}-late"}}]
        if node is not None:
            fields["extended"] = {pin(node): "1"}
        manifest = make.pod(pod, memory="16Mi", seconds=None, schedulerName=scheduler, volumes=volumes, **fields)
        manifest["spec"]["containers"][0]["ports"] = ports
        return [*claims, manifest]


def random_cluster(seed: int, nodes: int = 20, pods: int = 40, candidates: int = 12) -> RandomCluster:
    """Draw a cluster."""
    return _Drawing(random.Random(seed)).cluster(nodes, pods, candidates)


class _Drawing:
    def __init__(self, chance: random.Random) -> None:
        self._chance, self._of = chance, chance.choice
        self._names: list[str] = []

    def cluster(self, nodes: int, pods: int, candidates: int) -> RandomCluster:
        self._names = [f"n{k:02d}" for k in range(nodes)]
        held = [f"held{k}" for k in range(2)]
        placed = [self._placed(name) for name in (*(f"p{k:02d}" for k in range(pods)), *held)]
        for pod in placed[pods:]:
            pod["metadata"]["finalizers"] = ["example.com/hold"]
        for pod in placed[:3]:  # has succeeded, and counts nowhere
            pod["metadata"]["annotations"]["poolwise/runtime"] = "1ms"
        volumes = [volume for k in range(4) for volume in self._bound(f"bound-{k}")]
        wanted = {f"c{k:02d}": self._candidate() for k in range(candidates)}
        return RandomCluster([self._node(name) for name in self._names], [*_classes(), *volumes], placed, held, wanted)

    def _with(self, probability: float) -> bool:
        return self._chance.random() < probability

    def _some(self, values: Sequence[Any], least: int, most: int) -> list[Any]:
        return self._chance.sample(list(values), self._chance.randint(least, min(most, len(values))))

    def _node(self, name: str) -> Item:
        labels = {HOST: name, "gen": str(self._chance.randint(1, 4))}
        if self._with(0.9):
            labels[ZONE] = self._of("abc")
        if self._with(0.7):
            labels["disk"] = self._of(["ssd", "hdd"])
        kinds = [(key, effect) for key in ("spot", "owner") for effect in ("NoSchedule", "PreferNoSchedule")]
        taints = [
            {"key": key, "value": self._of("ab"), "effect": effect}
            for key, effect in (self._some(kinds, 1, 2) if self._with(0.4) else [])
        ]
        return make.node(name, cpu=self._of(["4", "8", "16"]), labels=labels, taints=taints, resources={pin(name): "100"})

    def _placed(self, name: str) -> Item:
        """Draw a pod on a node; its own terms concern candidates too."""
        fields: Item = {"labels": self._labels(), "cpu": self._of(["100m", "500m", "1"]), "nodeName": self._of(self._names)}
        if self._with(0.3):
            fields["affinity"] = self._pod_affinities(required=0.3)
        manifest = make.pod(
            name, memory="16Mi", seconds=None, schedulerName="none", tolerations=[{"operator": "Exists"}], **fields
        )
        manifest["metadata"]["namespace"] = self._of(["default", "default", "other"])
        manifest["spec"]["containers"][0]["ports"] = self._ports() if self._with(0.25) else []
        return manifest

    def _candidate(self) -> Item:
        fields: Item = {"labels": self._labels(), "cpu": self._of(["100m", "100m", "1", "3", "6"])}
        affinity = self._pod_affinities(required=0.35) if self._with(0.6) else {}
        if self._with(0.5):
            affinity["nodeAffinity"] = self._node_affinity()
        fields["affinity"] = affinity
        if self._with(0.15):
            fields["nodeSelector"] = {"disk": self._of(["ssd", "hdd"])}
        if self._with(0.4):
            fields["tolerations"] = [self._toleration() for _ in range(self._chance.randint(1, 2))]
        if self._with(0.5):
            fields["topologySpreadConstraints"] = self._spreads()
        if self._with(0.25):
            fields["initContainers"] = [self._init(kind) for kind in self._of([["init"], ["sidecar"], ["sidecar", "init"]])]
        if self._with(0.3):
            fields["ports"] = self._ports()
        if self._with(0.2):
            claim = f"bound-{self._chance.randrange(4)}"
            fields["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
        if self._with(0.15):
            fields["late"] = self._of(LATE)
        return fields

    def _init(self, kind: str) -> Item:
        requests = {"cpu": self._of(["500m", "2", "5"])}
        sidecar = {"restartPolicy": "Always"} if kind == "sidecar" else {}
        return {"name": kind, "image": "none", "resources": {"requests": requests}, **sidecar}

    def _labels(self) -> Item:
        return {key: self._of(values) for key, values in (("app", "abc"), ("tier", "xy"), ("version", "12")) if self._with(0.8)}

    def _ports(self) -> list[Item]:
        number = self._of([80, 443])
        port = {"containerPort": number, "hostPort": number, "protocol": self._of(["TCP", "TCP", "UDP"])}
        return [port | ({"hostIP": self._of(["0.0.0.0", "10.0.0.1", "10.0.0.2"])} if self._with(0.5) else {})]

    def _toleration(self) -> Item:
        key = self._of(["spot", "owner"])
        toleration = self._of(
            [{"key": key, "operator": "Exists"}, {"key": key, "value": self._of("ab")}, {"operator": "Exists"}]
        )
        return toleration | self._of([{}, {"effect": "NoSchedule"}, {"effect": "PreferNoSchedule"}])

    def _requirement(self, keys: Item) -> Item:
        key = self._of(sorted(keys))
        operator = self._of(["In", "NotIn", "Exists", "DoesNotExist"])
        values = {"values": self._some(keys[key], 1, 2)} if operator in ("In", "NotIn") else {}
        return {"key": key, "operator": operator, **values}

    def _node_term(self) -> Item:
        if self._with(0.2):
            names = {"key": "metadata.name", "operator": self._of(["In", "NotIn"]), "values": [self._of(self._names)]}
            return {"matchFields": [names]}
        if self._with(0.2):
            return {"matchExpressions": [{"key": "gen", "operator": self._of(["Gt", "Lt"]), "values": ["2"]}]}
        keys = {ZONE: "abc", "disk": ["ssd", "hdd"], "gen": "1234"}
        return {"matchExpressions": [self._requirement(keys) for _ in range(self._chance.randint(1, 2))]}

    def _node_affinity(self) -> Item:
        affinity: Item = {}
        if self._with(0.5):
            affinity[REQUIRED] = {"nodeSelectorTerms": [self._node_term() for _ in range(self._chance.randint(1, 2))]}
        if self._with(0.7):
            weights = (self._chance.randint(1, 100) for _ in range(self._chance.randint(1, 3)))
            affinity[PREFERRED] = [{"weight": weight, "preference": self._node_term()} for weight in weights]
        return affinity

    def _selector(self) -> Item:
        keys = {"app": "abc", "tier": "xy"}
        if self._with(0.6):
            return {"matchLabels": {key: self._of(keys[key]) for key in self._some(list(keys), 1, 2)}}
        return {"matchExpressions": [self._requirement(keys) for _ in range(self._chance.randint(0, 2))]}

    def _term(self) -> Item:
        term = {"topologyKey": self._of([HOST, ZONE, ZONE, "disk"]), "labelSelector": self._selector()}
        if self._with(0.2):
            term["namespaces"] = [self._of(sorted(NAMESPACES))]
        if self._with(0.2):
            term["namespaceSelector"] = self._of([{}, {"matchLabels": {"team": "b"}}])
        if self._with(0.15):
            term[self._of(["matchLabelKeys", "mismatchLabelKeys"])] = ["version"]
        return term

    def _pod_affinities(self, required: float) -> Item:
        """Draw affinity and anti-affinity to pods; `required` is the probability of required terms of each."""
        affinities: Item = {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if self._with(required):
                affinities.setdefault(kind, {})[REQUIRED] = [self._term() for _ in range(self._of([1, 1, 2]))]
            if self._with(0.5):
                weights = (self._chance.randint(1, 100) for _ in range(self._chance.randint(1, 2)))
                affinities.setdefault(kind, {})[PREFERRED] = [
                    {"weight": weight, "podAffinityTerm": self._term()} for weight in weights
                ]
        return affinities

    def _spreads(self) -> list[Item]:
        spreads = []
        for key in self._some([HOST, ZONE, "disk"], 1, 2):
            when = self._of(["DoNotSchedule", "ScheduleAnyway"])
            spread = {"topologyKey": key, "maxSkew": self._chance.randint(1, 4), "whenUnsatisfiable": when}
            spread["labelSelector"] = self._selector()
            if when == "DoNotSchedule" and self._with(0.25):
                spread["minDomains"] = self._chance.randint(2, 4)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if self._with(0.3):
                    spread[policy] = self._of(["Honor", "Ignore"])
            if self._with(0.2):
                spread["matchLabelKeys"] = ["version"]
            spreads.append(spread)
        return spreads

    def _bound(self, name: str) -> list[Item]:
        """Draw a volume that serves some nodes, a zone or all nodes, and the claim that is bound to it."""
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
        hosts = {"key": HOST, "operator": "In", "values": self._some(self._names, 3, len(self._names) // 2)}
        zones = {"key": ZONE, "operator": "In", "values": self._some("abc", 1, 2)}
        kind = self._of(["hosts", "zones", "labels", "all"])
        terms = {"hosts": [{"matchExpressions": [hosts]}], "zones": [{"matchExpressions": [zones]}]}
        where: Item = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms[kind]}}} if kind in terms else {}
        volume = make.volume(name, claimRef=reference, **where)
        if kind == "labels":
            volume["metadata"]["labels"] = {ZONE: self._of(["a", "b__c"])}
        return [volume, make.volume_claim(name, volumeName=name)]


def _classes() -> list[Item]:
    def topologies(*zones: str) -> Item:
        return {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [*zones]}]}]} if zones else {}

    allowed = zip(LATE, (("a",), ("b", "c"), ()), strict=True)
    return [make.storage_class(name, "csi.example", **topologies(*zones)) for name, zones in allowed]
