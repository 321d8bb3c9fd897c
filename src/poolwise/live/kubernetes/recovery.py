"""Recovery from starts that another process left incomplete, found in the claims and pods of the cluster.

The reconciler handles the last two rows.

| state found | action |
|---|---|
| a claim with only a finalizer | none |
| an allocated claim that is reserved for no pod | the claim is deallocated |
| a claim reserved for a pod without a node | the pod is bound to its intended node or another that fits; else it is released |
| a pod with a node | it becomes a run |
| a gang of which some pods have devices | these pods keep them and all start; else the claims are released |
| a gang of which some pods have nodes | the others start; after a time limit the bound pods are evicted |
| a device in two claims | a claim without a bound pod is released; else the pods of the later claim are evicted |
"""

from __future__ import annotations

from dataclasses import dataclass

from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.pod_jobs import PodJob
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart


@dataclass(frozen=True)
class InterruptedStart:
    """A start that another process began."""

    starts: tuple[PodStart | None, ...]  # each pod with its node and claims; None if its intended node is unknown
    # allocated claims, each with the uid of the pod that it is reserved for, "" if there is none
    reserved: tuple[tuple[ResourceClaim, str], ...]


def interrupted_start(job: PodJob, cache: ClusterCache) -> InterruptedStart | None:
    """Return the start that another process began for a waiting job, None if there is none."""
    starts, reserved = list[PodStart | None](), list[tuple[ResourceClaim, str]]()
    for key, keys in zip(job.pods, job.claims, strict=True):
        pod, claims = cache.pending_pod(key), [cache.claims[k] for k in keys if k in cache.claims]
        if pod is None:
            return None
        reserved_claims = [c for c in claims if c.status.allocation is not None and c.is_reserved_for(pod.metadata.uid)]
        reserved += [(claim, pod.metadata.uid) for claim in reserved_claims]
        reserved += [(claim, "") for claim in claims if claim.status.allocation is not None and not claim.status.reserved_for]
        pinned = [claim.pinned_node for claim in reserved_claims]
        node = next((node for node in pinned if node is not None), pod.status.nominated_node_name)
        whole = bool(claims) and len(reserved_claims) == len(claims) and node in cache.nodes
        starts.append(PodStart(pod, node, tuple(ClaimWrite(claim, None) for claim in claims)) if whole else None)
    return InterruptedStart(tuple(starts), tuple(reserved)) if reserved else None
