"""Demand of a pod: amounts, node constraints, requested time, claims and group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from poolwise.errors import InputError
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.pod import Container, ContainerStatus, Pod
from poolwise.live.kubernetes.quantity import exact_amount
from poolwise.quantities import SECOND, UNKNOWN, parse

DURATION = "poolwise/duration"  # annotation with the expected run time of a pod, such as "90 s" or "2 h"
KIND = "poolwise/kind"  # annotation with the kind of work of a pod, by which performance profiles look it up
GROUP, GROUP_SIZE = "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/min-available"
"""Labels of pods that start together, for clusters without PodGroups."""
NAMES = {"cpu": "cores", "memory": "memory"}
"""Kubernetes resource -> resource name in schedulers. CPU is counted in millicores."""
ZERO = Fraction(0)


@dataclass(frozen=True)
class PodDemand:
    """Amounts that a pod takes of its node, and the nodes on which it may run; claims are handled separately."""

    # resource -> amount: cores in thousandths, memory in MiB, `pods` 1, any other resource under its own name
    amounts: Mapping[str, int]
    constraints: NodeConstraints
    requested: int  # requested time (ns), `units.UNKNOWN` without one


def node_amounts(pod: Pod) -> dict[str, int]:
    """Return the amounts that a pod takes of its node.

    They are the sum of the containers and sidecars, or, if larger, of an init container and the sidecars that started before
    it. Pod-level requests replace that value. The pod's overhead is added.

    While a resize is pending, the larger of the desired, admitted and applied amounts counts, as in kube-scheduler
    (`PodRequests` of k8s.io/component-helpers).
    """
    requested: dict[str, Fraction] = {}
    for container in pod.spec.containers:
        _add(requested, _container_requests(pod, container, pod.status.container_statuses))
    if pod.spec.init_containers:
        requested = _with_init_containers(pod, requested)
    whole = pod.spec.resources.requests if pod.spec.resources is not None else {}
    applied = pod.status.resources.requests if pod.status.resources is not None else None
    effective = _effective_requests(pod, whole, applied, pod.status.allocated_resources)
    requested |= {name: effective.get(name, ZERO) for name in whole}
    for name, text in pod.spec.overhead.items():
        requested[name] = requested.get(name, ZERO) + exact_amount(name, text)
    positive = ((name, amount) for name, amount in sorted(requested.items()) if amount.numerator > 0)
    return {"pods": 1, **{NAMES.get(name, name): ceil(amount) for name, amount in positive}}


def _with_init_containers(pod: Pod, total: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Return the larger of the amounts of all containers with sidecars, and of each init container with earlier sidecars."""
    before: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in pod.spec.init_containers:
        sidecar = container.restart_policy == "Always"
        own = _container_requests(pod, container, pod.status.init_container_statuses if sidecar else [])
        with_it = {name: before.get(name, ZERO) + own.get(name, ZERO) for name in {*before, *own}}
        if sidecar:
            before = with_it
        peak = {name: max(peak.get(name, ZERO), with_it.get(name, ZERO)) for name in {*peak, *with_it}}
    return {
        name: max(total.get(name, ZERO) + before.get(name, ZERO), peak.get(name, ZERO)) for name in {*total, *before, *peak}
    }


def _container_requests(pod: Pod, container: Container, statuses: Iterable[ContainerStatus]) -> dict[str, Fraction]:
    """Return the amounts of a container, including those that its status reports."""
    status = next((status for status in statuses if status.name == container.name), None)
    applied = status.resources.requests if status is not None and status.resources is not None else None
    return _effective_requests(pod, container.resources.requests, applied, status.allocated_resources if status else {})


def _effective_requests(
    pod: Pod, desired: Mapping[str, str], applied: Mapping[str, str] | None, admitted: Mapping[str, str]
) -> dict[str, Fraction]:
    """Return the largest amount of each resource; the desired one does not count if the kubelet can never admit it."""
    each = [desired]
    if applied is not None:
        each = [applied, admitted] if _resize_is_infeasible(pod) else [desired, applied, admitted]
    largest = {name: exact_amount(name, text) for name, text in each[0].items()}
    for requests in each[1:]:
        for name, text in requests.items():
            largest[name] = max(largest.get(name, ZERO), exact_amount(name, text))
    return largest


def _resize_is_infeasible(pod: Pod) -> bool:
    return any(condition.type == "PodResizePending" and condition.reason == "Infeasible" for condition in pod.status.conditions)


def _add(total: dict[str, Fraction], more: Mapping[str, Fraction]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def requested_time(pod: Pod) -> int:
    """Return the requested time of a pod (ns); raise InputError for an invalid annotation."""
    if pod.spec.active_deadline_seconds is not None:
        return pod.spec.active_deadline_seconds * SECOND
    annotation = pod.metadata.annotations.get(DURATION)
    if annotation is None:
        return UNKNOWN
    try:
        return parse(annotation, "time")
    except ValueError as error:
        raise InputError(f"pod {pod.metadata.key}: {error}", field=f"metadata.annotations.{DURATION}") from None


def demand_of(pod: Pod) -> PodDemand:
    """Return a pod's demand; raise InputError for an invalid quantity or annotation."""
    return PodDemand(node_amounts(pod), NodeConstraints.of(pod), requested_time(pod))


def claim_keys(pod: Pod) -> tuple[str, ...] | str:
    """Return the keys of a pod's claims, or a sentence that states which template's claim does not exist yet."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    keys = []
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name or made.get(claim.name)
        if claim.resource_claim_name is None and claim.name in made and name is None:
            continue  # the template requests no devices
        if name is None:
            return f"claim '{claim.name}' has not been created from its template {claim.resource_claim_template_name} yet"
        keys.append(f"{pod.metadata.namespace}/{name}")
    if (extended := pod.status.extended_resource_claim_status) is not None:
        keys.append(f"{pod.metadata.namespace}/{extended.resource_claim_name}")
    return tuple(keys)


def shareable(claim: ResourceClaim) -> bool:
    """Return whether several pods may use a claim: it was not created for one pod from a template."""
    return not any(owner.kind == "Pod" for owner in claim.metadata.owner_references)


def group_of(pod: Pod) -> tuple[str, int] | None:
    """Return a pod's group and its minimum size by labels (0 if its PodGroup defines it), or None without a group."""
    named = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None
    if named:
        return f"{pod.metadata.namespace}/{named}", 0
    label = pod.metadata.labels.get(GROUP)
    if label:
        size = pod.metadata.labels.get(GROUP_SIZE) or pod.metadata.annotations.get(GROUP_SIZE) or "1"
        return f"{pod.metadata.namespace}/{label}", max(1, int(size) if size.isdigit() else 1)
    return None
