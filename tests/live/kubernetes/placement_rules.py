"""Host ports, affinity, spread and preferences place pods on the nodes that kube-scheduler chooses for the same pods.

Both schedulers place the same pods, one after the other, on the same nodes. The rules of each pod leave one node or zone, so
that the scores for free resources, which Poolwise replaces by its placement, do not decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.kubernetes import objects as make
from tests.live.kubernetes.control_plane import ControlPlane, control_plane, kube_scheduler, scheduling

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
ZONES = {"n0": "a", "n1": "a", "n2": "b", "n3": "c"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("kube")) as plane:
        yield plane


def term(app: str, key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def spread(key: str, when: str, app: str = "spread", **more: Any) -> dict[str, Any]:
    constraint = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": {"app": app}}}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


def wish(zone: str) -> dict[str, Any]:
    match = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return {"nodeAffinity": {PREFERRED: [{"weight": 50, "preference": match}]}}


def weighted(app: str, **more: Any) -> dict[str, Any]:
    return {PREFERRED: [{"weight": 50, "podAffinityTerm": term(app, **more)}]}


PODS: list[tuple[str, str, dict[str, Any]]] = [
    ("server", "server", {"nodeSelector": {HOST: "n2"}}),
    ("near", "near", {"affinity": {"podAffinity": {REQUIRED: [term("server", namespaceSelector={})]}}}),
    ("towards", "towards", {"affinity": {"podAffinity": weighted("server")}}),
    ("wish", "wish", {"affinity": wish("c")}),
    *((f"alone-{k}", "alone", {"affinity": {"podAntiAffinity": {REQUIRED: [term("alone", HOST)]}}}) for k in range(4)),
    *((f"group-{k}", "group", {"affinity": {"podAffinity": {REQUIRED: [term("group", HOST)]}}}) for k in range(3)),
    *((f"spread-{k}", "spread", spread(ZONE, "DoNotSchedule")) for k in range(6)),
    *((f"even-{k}", "even", spread(ZONE, "ScheduleAnyway", "even")) for k in range(3)),
    *((f"port-{k}", "port", {"port": 8080}) for k in range(4)),
    ("no-port", "port", {"port": 8080}),
    ("lonely", "lonely", {"affinity": {"podAffinity": {REQUIRED: [term("absent")]}}}),
    ("domains", "even", spread(ZONE, "DoNotSchedule", "even", minDomains=5)),
]
"""Name, label and fields."""


def pod(name: str, app: str, more: dict[str, Any], scheduler: str) -> dict[str, Any]:
    fields = dict(more)
    port = fields.pop("port", None)
    manifest = make.pod(name, cpu="100m", memory="16Mi", seconds=None, labels={"app": app}, schedulerName=scheduler, **fields)
    if port is not None:
        manifest["spec"]["containers"][0]["ports"] = [{"containerPort": port, "hostPort": port}]
    return manifest


def nodes() -> list[dict[str, Any]]:
    soft = [{"key": "soft", "value": "", "effect": "PreferNoSchedule"}]
    return [
        make.node(name, labels={HOST: name, ZONE: zone}, taints=soft if name == "n1" else []) for name, zone in ZONES.items()
    ]


def placements(cluster: ControlPlane, scheduler: str) -> dict[str, str]:
    """Create the pods one after the other, and return pod -> node, "" for a pod that is reported as unschedulable."""
    nodes: dict[str, str] = {}
    for name, app, more in PODS:
        cluster.apply([pod(name, app, more, scheduler)])

        def decided(name: str = name) -> bool:
            (item,) = [item for item in cluster.get("pods") if item["metadata"]["name"] == name]
            conditions = item.get("status", {}).get("conditions", [])
            refused = any(condition["type"] == "PodScheduled" and condition["status"] == "False" for condition in conditions)
            nodes[name] = item["spec"].get("nodeName", "")
            return bool(nodes[name]) or refused

        cluster.wait(decided, 60, f"a decision on {name}")
    return nodes


def compared(found: dict[str, str]) -> dict[str, Any]:
    """Return what must agree: the nodes of single pods, and how the pods of each label are distributed over zones."""
    apps: dict[str, list[str]] = {}
    for name, app, _ in PODS:
        zone = ZONES.get(found[name], "none")
        apps.setdefault(app, []).append(zone if app != "alone" and app != "port" else found[name])
    same_node = len({found[f"group-{k}"] for k in range(3)}) == 1
    last = [found["alone-3"], found["port-3"]]  # on the node with a soft taint
    return {
        "zones": {app: sorted(each) for app, each in apps.items() if app != "group"},
        "group on one node": same_node,
        "last": last,
    }


def test_placement_rules_match_the_decisions_of_kube_scheduler(cluster: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('version = 1\norder = "fcfs"\nbackfill = "easy"\nplacement = "first_fit"\n')
    cluster.apply(nodes())
    with kube_scheduler(cluster):
        expected = placements(cluster, "default-scheduler")
    cluster.clear()
    cluster.apply(nodes())
    with scheduling(cluster, str(tmp_path / "s.toml"), log=tmp_path / "log"):
        chosen = placements(cluster, "poolwise")
    print({"kube-scheduler": expected, "poolwise": chosen})
    assert compared(chosen) == compared(expected)
    assert not any(node == "n1" for name, node in chosen.items() if not name.startswith(("alone", "port", "spread")))
