"""What a pod asks for, and what it asks for that is not supported: such a pod is left alone, and told so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from poolwise.errors import InputError
from poolwise.live.kubernetes.node_constraints import NodeConstraints
from poolwise.live.kubernetes.objects import Container, Pod, ResourceClaim
from poolwise.live.kubernetes.quantity import counted
from poolwise.units import SECOND, UNKNOWN, parse

DURATION = "poolwise/duration"
"""Annotation: how long a pod is expected to run, as "90 s" or "2 h"."""
KIND = "poolwise/kind"
"""Annotation: what kind of work a pod does, under which profiles of performance know it."""
GROUP, GROUP_SIZE = "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/min-available"
"""Labels of pods that start together, where a cluster has no PodGroups."""
NAMES = {"cpu": "cores", "memory": "memory"}
"""Resource of Kubernetes -> the name by which schedulers know it. Cores are counted in thousandths."""


@dataclass(frozen=True)
class PodDemand:
    """What a pod takes of a node, and on which nodes it may run; its claims are looked at elsewhere.

    Attributes
    ----------
    amounts : resource -> amount: cores in thousandths, memory in MiB, `pods` 1, anything else by its own name
    where : on which nodes it may run
    requested : ns that it is expected to take, `units.UNKNOWN` where nobody said
    """

    amounts: Mapping[str, int]
    where: NodeConstraints
    requested: int


def amounts_of(pod: Pod) -> dict[str, int]:
    """What a pod takes of a node.

    Containers and sidecars together, or the largest init container beside the sidecars that started before it, whichever
    is more; amounts of the whole pod stand in place of these. Then the overhead.
    """
    total = _sum(pod.spec.containers)
    before: dict[str, Fraction] = {}
    peak: dict[str, Fraction] = {}
    for container in pod.spec.init_containers:
        own = _sum([container])
        with_it = {name: before.get(name, Fraction(0)) + own.get(name, Fraction(0)) for name in {*before, *own}}
        if container.restart_policy == "Always":
            before = with_it
        peak = {name: max(peak.get(name, Fraction(0)), with_it.get(name, Fraction(0))) for name in {*peak, *with_it}}
    asked = {
        name: max(total.get(name, Fraction(0)) + before.get(name, Fraction(0)), peak.get(name, Fraction(0)))
        for name in {*total, *before, *peak}
    }
    whole = pod.spec.resources.requests if pod.spec.resources is not None else {}
    asked |= {name: counted(name, text) for name, text in whole.items()}
    for name, text in pod.spec.overhead.items():
        asked[name] = asked.get(name, Fraction(0)) + counted(name, text)
    return {"pods": 1, **{NAMES.get(name, name): ceil(amount) for name, amount in sorted(asked.items()) if amount}}


def _sum(containers: list[Container]) -> dict[str, Fraction]:
    found: dict[str, Fraction] = {}
    for container in containers:
        for name, text in container.resources.requests.items():
            found[name] = found.get(name, Fraction(0)) + counted(name, text)
    return found


def requested_of(pod: Pod) -> int:
    """Ns that a pod is expected to take; raises InputError for an annotation that is no time."""
    if pod.spec.active_deadline_seconds is not None:
        return pod.spec.active_deadline_seconds * SECOND
    said = pod.metadata.annotations.get(DURATION)
    if said is None:
        return UNKNOWN
    try:
        return parse(said, "time")
    except ValueError as error:
        raise InputError(f"pod {pod.metadata.key}: {error}", field=f"metadata.annotations.{DURATION}") from None


def demand_of(pod: Pod) -> PodDemand:
    """What a pod asks for; raises InputError for a quantity or an annotation that cannot be read."""
    return PodDemand(amounts_of(pod), NodeConstraints.of(pod), requested_of(pod))


def unsupported_fields(pod: Pod) -> Iterator[tuple[str, str]]:
    """Fields of a pod that mean something that this scheduler cannot keep, and what to do about each."""
    spec, affinity = pod.spec, pod.spec.affinity
    elsewhere = "leave it out, or let kube-scheduler place the pod"
    if affinity is not None and affinity.pod_affinity:
        yield "spec.affinity.podAffinity", elsewhere
    if affinity is not None and affinity.pod_anti_affinity:
        yield "spec.affinity.podAntiAffinity", elsewhere
    nodes = affinity.node_affinity if affinity is not None else None
    if nodes is not None and nodes.preferred_during_scheduling_ignored_during_execution:
        yield "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution", "require it, or leave it out"
    if spec.topology_spread_constraints:
        yield "spec.topologySpreadConstraints", elsewhere
    if any(port.host_port for container in (*spec.containers, *spec.init_containers) for port in container.ports):
        yield "spec.containers.ports.hostPort", elsewhere
    for volume in spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"spec.volumes[{volume.name}].persistentVolumeClaim", "use a volume that does not bind to nodes"
        if volume.ephemeral is not None:
            yield f"spec.volumes[{volume.name}].ephemeral", "use a volume that does not bind to nodes"


def claim_keys(pod: Pod) -> tuple[str, ...] | str:
    """Names of a pod's claims, or what it waits for: a claim that is still to be made from its template."""
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    found = []
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name or made.get(claim.name)
        if claim.resource_claim_name is None and claim.name in made and name is None:
            continue  # its template asks for nothing
        if name is None:
            return f"claim '{claim.name}' is still to be made from its template {claim.resource_claim_template_name}"
        found.append(f"{pod.metadata.namespace}/{name}")
    if (extended := pod.status.extended_resource_claim_status) is not None:
        found.append(f"{pod.metadata.namespace}/{extended.resource_claim_name}")
    return tuple(found)


def shareable(claim: ResourceClaim) -> bool:
    """Whether several pods may name a claim: it was not made for one of them, from a template."""
    return not any(owner.kind == "Pod" for owner in claim.metadata.owner_references)


def group_of(pod: Pod) -> tuple[str, int] | None:
    """Key of the group whose pods start together, and how many there must be by its labels (0: its PodGroup says)."""
    named = pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None
    if named:
        return f"{pod.metadata.namespace}/{named}", 0
    label = pod.metadata.labels.get(GROUP)
    if label:
        size = pod.metadata.labels.get(GROUP_SIZE) or pod.metadata.annotations.get(GROUP_SIZE) or "1"
        return f"{pod.metadata.namespace}/{label}", max(1, int(size) if size.isdigit() else 1)
    return None
