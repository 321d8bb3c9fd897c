"""What is made of what another process left half done: devices without a pod, pods between claims and node, gangs in part.

The last two rows are the work of `upkeep`.

| found | done |
|---|---|
| a claim with a finalizer only | nothing |
| with devices, reserved for nobody | the devices are given back |
| reserved for a pod without a node | it is bound where it was meant to be, else where they serve; else they are given back |
| a pod with a node | a run |
| a gang of which a part has devices | it is started with these, the rest wherever there is room; else they are given back |
| a gang of which a part has nodes | the rest is started; after a time limit the part is evicted |
| a device in two claims | the claim whose pods have no node gives it back; else the later one's pods are evicted |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.objects import Allocation, Pod, ResourceClaim
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart


@dataclass(frozen=True)
class InterruptedStart:
    """A start that another process has begun.

    Attributes
    ----------
    starts : each pod with its node and claims; None where nothing is known of where it was to be
    reserved : claims that have devices, each with the pod (uid) whose reservation it is; "" where there is none
    """

    starts: tuple[PodStart | None, ...]
    reserved: tuple[tuple[ResourceClaim, str], ...]


def begun(job: PodJob, mirror: ClusterCache) -> InterruptedStart | None:
    """What another process has begun of a job that waits, None where that is nothing."""
    starts, reserved = list[PodStart | None](), list[tuple[ResourceClaim, str]]()
    for key, keys in zip(job.pods, job.claims, strict=True):
        pod, claims = mirror.pending_pod(key), [mirror.claims[k] for k in keys if k in mirror.claims]
        if pod is None:
            return None
        mine = [claim for claim in claims if _reserved(claim, pod)]
        reserved += [(claim, pod.metadata.uid) for claim in mine]
        reserved += [(claim, "") for claim in claims if claim.status.allocation is not None and not claim.status.reserved_for]
        node = node_of(pod, mine)
        whole = bool(claims) and len(mine) == len(claims) and node in mirror.nodes
        starts.append(PodStart(pod, node, tuple(ClaimWrite(claim, None) for claim in claims)) if whole else None)
    return InterruptedStart(tuple(starts), tuple(reserved)) if reserved else None


def _reserved(claim: ResourceClaim, pod: Pod) -> bool:
    return claim.status.allocation is not None and any(user.uid == pod.metadata.uid for user in claim.status.reserved_for)


def node_of(pod: Pod, claims: Iterable[ResourceClaim]) -> str:
    """The node that a start was meant for: what its allocations name, else what the pod does; "" where nothing says."""
    for claim in claims:
        allocation: Allocation | None = claim.status.allocation
        selector = allocation.node_selector if allocation is not None else None
        for term in selector.node_selector_terms if selector is not None else ():
            for need in term.match_fields:
                if need.key == "metadata.name" and need.operator == "In" and len(need.values) == 1:
                    return need.values[0]
    return pod.status.nominated_node_name
