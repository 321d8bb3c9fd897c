"""Independent checker of a cluster's consistency; it shares no code with the scheduler."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import Any

from tests.live.kubernetes.control_plane import ControlPlane

_SUFFIX = {"": 1, "m": Decimal("0.001"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SUFFIX |= {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(text: str) -> Decimal:
    digits = str(text).rstrip("KMGTkmi")
    return Decimal(digits) * _SUFFIX[str(text)[len(digits) :]]


def problems(plane: ControlPlane, *, moving: bool = False) -> list[str]:
    """Return violations: overcommitted nodes, devices, capacities and counters.

    Claims and gangs are checked only in a cluster at rest: while it is `moving`, pods and claims are read at different times.
    """
    gang_label, pods = "pod-group.scheduling.sigs.k8s.io", plane.get("pods")
    claims = {f"{c['metadata']['namespace']}/{c['metadata']['name']}": c for c in plane.get("resourceclaims")}
    slices, nodes = plane.get("resourceslices"), {n["metadata"]["name"]: n for n in plane.get("nodes")}
    live = [p for p in pods if p["spec"].get("nodeName") and p["status"].get("phase") not in ("Succeeded", "Failed")]
    violations = [*_nodes(live, nodes), *_devices(claims, slices)]
    return violations if moving else [*violations, *_claims(live, claims, nodes), *_gangs(pods, gang_label)]


def _nodes(live: list[dict[str, Any]], nodes: dict[str, Any]) -> list[str]:
    used: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    violations = []
    for pod in live:
        where = pod["spec"]["nodeName"]
        if where not in nodes:
            violations.append(f"{pod['metadata']['name']} is on {where}, which does not exist")
            continue
        used[where]["pods"] += 1
        mapped = {(use["containerName"], use["resourceName"]) for use in _extended(pod).get("requestMappings", [])}
        for container in pod["spec"]["containers"]:
            for name, text in container.get("resources", {}).get("requests", {}).items():
                if (container["name"], name) not in mapped:  # a claim provides this resource
                    used[where][name] += amount(text)
    for node, taken in used.items():
        for name, much in taken.items():
            if much > amount(nodes[node]["status"]["allocatable"].get(name, "0")):
                violations.append(
                    f"node {node}: {much} of {name} in use, {nodes[node]['status']['allocatable'].get(name)} allocatable"
                )
    return violations


def _extended(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod status's reference to the claim for its extended resources."""
    claim_status: dict[str, Any] = pod["status"].get("extendedResourceClaimStatus") or {}
    return claim_status


def _devices(claims: dict[str, Any], slices: list[dict[str, Any]]) -> list[str]:
    published = {
        (s["spec"]["driver"], s["spec"]["pool"]["name"], d["name"]): d for s in slices for d in s["spec"].get("devices", [])
    }
    counters = {
        (s["spec"]["driver"], s["spec"]["pool"]["name"], c["name"], n): amount(v["value"])
        for s in slices
        for c in s["spec"].get("sharedCounters", [])
        for n, v in c["counters"].items()
    }
    whole: dict[Any, list[str]] = defaultdict(list)
    shares: dict[Any, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    violations = []
    for key, claim in claims.items():
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []):
            device = (result["driver"], result["pool"], result["device"])
            if device not in published:
                violations.append(f"claim {key} has {device}, which does not exist")
                continue
            if result.get("consumedCapacity") is None:
                whole[device].append(key)
            for name, text in (result.get("consumedCapacity") or {}).items():
                shares[device][name] += amount(text)
    violations += [
        f"device {device} is allocated to {len(keys)} claims: {keys}" for device, keys in whole.items() if len(keys) > 1
    ]
    for device, taken in shares.items():
        if device in whole:
            violations.append(f"device {device} is allocated both whole and shared")
        for name, much in taken.items():
            if much > amount(published[device]["capacity"][name]["value"]):
                violations.append(f"device {device}: {much} of {name} in use")
    used: dict[Any, Decimal] = defaultdict(Decimal)
    for device in {*whole, *shares}:
        for use in published[device].get("consumesCounters", []):
            for name, value in use["counters"].items():
                used[(*device[:2], use["counterSet"], name)] += amount(value["value"])
    violations += [
        f"counter {counter}: {much} in use" for counter, much in used.items() if much > counters.get(counter, Decimal(0))
    ]
    return violations


def _claims(live: list[dict[str, Any]], claims: dict[str, Any], nodes: dict[str, Any]) -> list[str]:
    """Return bound pods whose claims are unallocated, not reserved for them, or unusable on their node."""
    violations = []
    for pod in live:
        made = {s["name"]: s.get("resourceClaimName") for s in pod["status"].get("resourceClaimStatuses", [])}
        names = [use.get("resourceClaimName") or made.get(use["name"]) for use in pod["spec"].get("resourceClaims", [])]
        names += [_extended(pod)["resourceClaimName"]] if _extended(pod) else []
        for used in names:
            key = f"{pod['metadata']['namespace']}/{used}"
            status = claims.get(key, {}).get("status", {})
            name = pod["metadata"]["name"]
            if not status.get("allocation"):
                violations.append(f"{name} is bound, but claim {key} is not allocated")
                continue
            if pod["metadata"]["uid"] not in [user["uid"] for user in status.get("reservedFor", [])]:
                violations.append(f"{name} is bound, but claim {key} is not reserved for it")
            terms = status["allocation"].get("nodeSelector", {}).get("nodeSelectorTerms")
            if terms and not _selected(terms, nodes.get(pod["spec"]["nodeName"])):
                violations.append(f"the devices of claim {key} cannot be used on {pod['spec']['nodeName']}")
    return violations


def _selected(terms: list[dict[str, Any]], node: dict[str, Any] | None) -> bool:
    if node is None:
        return False
    labels, name = node["metadata"].get("labels", {}), node["metadata"]["name"]
    for term in terms:
        by_label = all(labels.get(e["key"]) in e["values"] for e in term.get("matchExpressions", []))
        by_field = all(name in e["values"] for e in term.get("matchFields", []))
        if by_label and by_field:
            return True
    return False


def _gangs(pods: list[dict[str, Any]], label: str) -> list[str]:
    size: dict[str, int] = {}
    bound: dict[str, int] = defaultdict(int)
    for pod in pods:
        group = pod["metadata"].get("labels", {}).get(label)
        if group:
            size[group] = int(pod["metadata"]["labels"][f"{label}/min-available"])
            bound[group] += bool(pod["spec"].get("nodeName"))
    return [f"{bound[g]} of the {n} pods of gang {g} have nodes" for g, n in size.items() if 0 < bound[g] < n]
