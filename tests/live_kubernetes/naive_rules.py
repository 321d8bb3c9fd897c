"""Placement rules of kube-scheduler, restated on plain dictionaries and evaluated node by node, and random clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st

from poolwise.live.kubernetes.objects.node import Node
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.pod_affinity import PlacedPod
from poolwise.live.kubernetes.pod_rules import PodRules

Item = dict[str, Any]
Cluster = tuple[list[Item], list[tuple[Item, Item]], Item]  # nodes, pods with their nodes, the pod to place
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b"}, "third": {}}


def labels_of(item: Item) -> dict[str, str]:
    labels: dict[str, str] = item["metadata"].get("labels", {})
    return labels


def selected(selector: Item | None, labels: dict[str, str]) -> bool:
    if selector is None:
        return False
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for requirement in selector.get("matchExpressions", []):
        present, value = requirement["key"] in labels, labels.get(requirement["key"])
        good = {
            "In": present and value in requirement.get("values", []),
            "NotIn": not present or value not in requirement.get("values", []),
            "Exists": present,
            "DoesNotExist": not present,
        }[requirement["operator"]]
        if not good:
            return False
    return True


def term_matches(term: Item, owner: Item, pod: Item) -> bool:
    namespaces = set(term.get("namespaces", []))
    if not namespaces and "namespaceSelector" not in term:
        namespaces = {owner["metadata"]["namespace"]}
    if "namespaceSelector" in term:
        namespaces |= {name for name, labels in NAMESPACES.items() if selected(term["namespaceSelector"], labels)}
    return pod["metadata"]["namespace"] in namespaces and selected(term.get("labelSelector"), labels_of(pod))


def terms(pod: Item, kind: str, when: str = REQUIRED) -> list[Any]:
    entries: list[Any] = pod["spec"].get("affinity", {}).get(kind, {}).get(when, [])
    return entries


def same_domain(key: str, one: Item, other: Item) -> bool:
    return key in labels_of(one) and labels_of(one)[key] == labels_of(other).get(key)


def affinity_allows(cluster: Cluster, node: Item) -> bool:
    """Return whether required affinity and anti-affinity, of the pod and of those on nodes, allow a node."""
    _, placed, pod = cluster
    for other, home in placed:
        for term in terms(pod, "podAntiAffinity"):
            if term_matches(term, pod, other) and same_domain(term["topologyKey"], node, home):
                return False
        for term in terms(other, "podAntiAffinity"):
            if term_matches(term, other, pod) and same_domain(term["topologyKey"], node, home):
                return False
    wanted = terms(pod, "podAffinity")
    if any(term["topologyKey"] not in labels_of(node) for term in wanted):
        return False
    matching = [home for other, home in placed if all(term_matches(term, pod, other) for term in wanted)]
    if all(any(same_domain(term["topologyKey"], node, home) for home in matching) for term in wanted):
        return True
    somewhere = any(term["topologyKey"] in labels_of(home) for term in wanted for home in matching)
    return not somewhere and all(term_matches(term, pod, pod) for term in wanted)


def spread_selector(constraint: Item, pod: Item) -> Item | None:
    selector: Item | None = constraint.get("labelSelector")
    if selector is None:
        return None
    own = [key for key in constraint.get("matchLabelKeys", []) if key in labels_of(pod)]
    added = [{"key": key, "operator": "In", "values": [labels_of(pod)[key]]} for key in own]
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", []), *added]}


def spread_count(cluster: Cluster, constraint: Item, node: Item) -> int:
    """Return the number of matching pods on one node. An empty selector counts none."""
    _, placed, pod = cluster
    selector = spread_selector(constraint, pod)
    if not selector or not (selector.get("matchLabels") or selector["matchExpressions"]):
        return 0
    return sum(
        home is node
        and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and "deletionTimestamp" not in other["metadata"]
        and selected(selector, labels_of(other))
        for other, home in placed
    )


def is_selected_node(pod: Item, node: Item) -> bool:
    return all(labels_of(node).get(key) == value for key, value in pod["spec"].get("nodeSelector", {}).items())


def untolerated(pod: Item, node: Item, effect: str) -> list[Item]:
    keys = {toleration["key"] for toleration in pod["spec"].get("tolerations", [])}
    return [taint for taint in node["spec"].get("taints", []) if taint["effect"] == effect and taint["key"] not in keys]


def spread_domains(cluster: Cluster, constraint: Item, together: Sequence[Item]) -> dict[str, int]:
    """Return the number of matching pods of each domain with an eligible node."""
    nodes, _, pod = cluster
    counts: dict[str, int] = {}
    for node in nodes:
        if any(other["topologyKey"] not in labels_of(node) for other in together):
            continue
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not is_selected_node(pod, node):
            continue
        if constraint.get("nodeTaintsPolicy", "Ignore") == "Honor" and untolerated(pod, node, "NoSchedule"):
            continue
        domain = labels_of(node)[constraint["topologyKey"]]
        counts[domain] = counts.get(domain, 0) + spread_count(cluster, constraint, node)
    return counts


def spread_allows(cluster: Cluster, node: Item) -> bool:
    """Return whether count + self - minimum stays within maxSkew for each `DoNotSchedule` constraint."""
    pod = cluster[2]
    hard = [
        spread for spread in pod["spec"].get("topologySpreadConstraints", []) if spread["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    for constraint in hard:
        if constraint["topologyKey"] not in labels_of(node):
            return False
        domains = spread_domains(cluster, constraint, hard)
        minimum = min(domains.values()) if len(domains) >= constraint.get("minDomains", 1) else 0
        itself = int(selected(spread_selector(constraint, pod), labels_of(pod)))
        if domains.get(labels_of(node)[constraint["topologyKey"]], 0) + itself - minimum > constraint["maxSkew"]:
            return False
    return True


def naive_scores(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Return kind of preference -> node -> normalized score, with all nodes as candidates."""
    nodes, placed, pod = cluster
    names = [node["metadata"]["name"] for node in nodes]
    intolerable = [len(untolerated(pod, node, "PreferNoSchedule")) for node in nodes]
    taints = [100 - 100 * n // max(intolerable) if max(intolerable) else 100 for n in intolerable]
    wished = [
        sum(
            preferred["weight"]
            for preferred in terms(pod, "nodeAffinity", PREFERRED)
            if preferred["preference"] and selected(preferred["preference"], labels_of(node))
        )
        for node in nodes
    ]
    affine = [100 * n // max(wished) if max(wished) else 0 for n in wished]
    sums = []
    for node in nodes:
        total = 0
        for other, home in placed:
            for sign, kind in ((1, "podAffinity"), (-1, "podAntiAffinity")):
                for owner, seen in ((pod, other), (other, pod)):
                    for weighted in terms(owner, kind, PREFERRED):
                        term = weighted["podAffinityTerm"]
                        if term_matches(term, owner, seen) and same_domain(term["topologyKey"], node, home):
                            total += sign * weighted["weight"]
            for term in terms(other, "podAffinity"):
                if term_matches(term, other, pod) and same_domain(term["topologyKey"], node, home):
                    total += 1
        sums.append(total)
    low, high = min(sums), max(sums)
    pods = [int(100 * ((total - low) / (high - low))) if high > low else 0 for total in sums]
    scores = {"taints": taints, "nodes": affine, "pods": pods, "spread": _naive_spread(cluster)}
    return {kind: dict(zip(names, values, strict=True)) for kind, values in scores.items()}


def _naive_spread(cluster: Cluster) -> list[int]:
    nodes, _, pod = cluster
    soft = [
        spread for spread in pod["spec"].get("topologySpreadConstraints", []) if spread["whenUnsatisfiable"] == "ScheduleAnyway"
    ]
    labeled = [node for node in nodes if all(spread["topologyKey"] in labels_of(node) for spread in soft)]
    raw = {}
    for node in labeled:
        total = 0.0
        for constraint in soft:
            key = constraint["topologyKey"]
            if key == HOST:
                count, size = spread_count(cluster, constraint, node), len(labeled)
            else:
                count = spread_domains(cluster, constraint, soft).get(labels_of(node)[key], 0)
                size = len({labels_of(node)[key] for node in labeled})
            total += count * math.log(size + 2) + (constraint["maxSkew"] - 1)
        raw[node["metadata"]["name"]] = int(total + 0.5)
    high, low = max(raw.values(), default=0), min(raw.values(), default=0)
    scores = {name: 100 * (high + low - value) // high if high else 100 for name, value in raw.items()}
    return [scores.get(node["metadata"]["name"], 0) for node in nodes]


# Random clusters

_labels = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b"]), max_size=2)
_requirements = st.builds(
    lambda key, operator, values: (
        {"key": key, "operator": operator} | ({"values": values} if operator in ("In", "NotIn") else {})
    ),
    st.sampled_from(["app", "tier"]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
)
_selectors = st.one_of(
    _labels.map(lambda labels: {"matchLabels": labels}),
    st.lists(_requirements, max_size=2).map(lambda e: {"matchExpressions": e}),
)
_keys = st.sampled_from([HOST, ZONE])


def _record(required: Item, optional: Item) -> st.SearchStrategy[Item]:
    return st.fixed_dictionaries(required, optional=optional)


_terms = _record(
    {"topologyKey": _keys},
    {
        "labelSelector": _selectors,
        "namespaces": st.lists(st.sampled_from(["default", "other"]), min_size=1, max_size=1),
        "namespaceSelector": st.sampled_from([{}, {"matchLabels": {"team": "a"}}]),
    },
)
_weighted = _record({"weight": st.integers(1, 100), "podAffinityTerm": _terms}, {})
_pod_affinity = _record({}, {REQUIRED: st.lists(_terms, max_size=2), PREFERRED: st.lists(_weighted, max_size=2)})
_preferences = _record(
    {
        "weight": st.integers(1, 100),
        "preference": st.one_of(
            st.just({}), st.lists(_requirements, min_size=1, max_size=2).map(lambda e: {"matchExpressions": e})
        ),
    },
    {},
)
_spreads = _record(
    {
        "topologyKey": _keys,
        "maxSkew": st.integers(1, 2),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": _selectors,
    },
    {
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.just(["tier"]),
    },
)


@st.composite
def clusters(draw: st.DrawFn, affinity: bool = False, spread: bool = False, preferences: bool = False) -> Cluster:
    """Draw a cluster; its nodes may lack the label of their zone, and have taints."""
    nodes = []
    taint = st.builds(
        lambda key, effect: {"key": key, "effect": effect},
        st.sampled_from("xy"),
        st.sampled_from(["NoSchedule", "PreferNoSchedule"]),
    )
    for k in range(draw(st.integers(1, 5))):
        zone = draw(st.sampled_from(["z0", "z1", "z2", ""]))
        labels = {HOST: f"n{k}", **({ZONE: zone} if zone else {}), **draw(_labels)}
        nodes.append({"metadata": {"name": f"n{k}", "labels": labels}, "spec": {"taints": draw(st.lists(taint, max_size=2))}})

    def pod(name: str) -> Item:
        meta: Item = {"name": name, "namespace": draw(st.sampled_from(sorted(NAMESPACES))), "labels": draw(_labels)}
        spec: Item = {}
        if affinity:
            spec["affinity"] = draw(_record({}, {"podAffinity": _pod_affinity, "podAntiAffinity": _pod_affinity}))
        if preferences:
            spec.setdefault("affinity", {})["nodeAffinity"] = {PREFERRED: draw(st.lists(_preferences, max_size=2))}
            spec["tolerations"] = draw(st.sampled_from([[], [{"key": "x", "operator": "Exists"}]]))
        if spread:
            spec["topologySpreadConstraints"] = draw(st.lists(_spreads, min_size=1, max_size=2))
            spec["nodeSelector"] = draw(st.sampled_from([{}, {}, {"app": "a"}]))
        return {"metadata": meta, "spec": spec}

    placed = [(pod(f"p{k}"), draw(st.sampled_from(nodes))) for k in range(draw(st.integers(0, 6)))]
    if placed and draw(st.booleans()):
        placed[0][0]["metadata"]["deletionTimestamp"] = "2026-11-22T12:00:00Z"
    return nodes, placed, pod("new")


def decoded(cluster: Cluster) -> tuple[list[Node], list[PlacedPod], list[tuple[Pod, Node, PodRules]], Pod]:
    """Return the nodes, the pods on them, those of them with affinity, and the pod to place."""
    nodes = {item["metadata"]["name"]: msgspec.convert(item, Node) for item in cluster[0]}
    placed = [(msgspec.convert(pod, Pod), nodes[home["metadata"]["name"]]) for pod, home in cluster[1]]
    related = [(pod, node, rules) for pod, node in placed if (rules := PodRules.of(pod)) is not None and rules.relates_to_pods]
    return list(nodes.values()), placed, related, msgspec.convert(cluster[2], Pod)
