"""What is made of what another process left half done: devices without a pod, pods between claims and node, gangs in part.

| found | done |
|---|---|
| a claim with a finalizer only | nothing |
| with devices, reserved for nobody | the devices are given back |
| reserved for a pod without a node | the pod is bound where the devices are; else they are given back |
| a pod with a node | a run |
| a gang of which a part has devices | it is started with these, the rest wherever there is room; else they are given back |
| a gang of which a part has nodes | the rest is started; after a time limit the part is evicted |
| a device in two claims | the claim whose pods have no node gives it back; else the later one's pods are evicted |
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.mirror import Mirror
from poolwise.live.kubernetes.objects import Allocation, Pod, ResourceClaim
from poolwise.live.kubernetes.starts import ClaimWrite, PodStart
from poolwise.live.kubernetes.units import PodJob


@dataclass(frozen=True)
class Begun:
    """A start that another process has begun.

    Attributes
    ----------
    starts : each pod with its node and claims; None where nothing is known of where it was to be
    reserved : claims that have devices, each with the pod (uid) whose reservation it is; "" where there is none
    """

    starts: tuple[PodStart | None, ...]
    reserved: tuple[tuple[ResourceClaim, str], ...]


def begun(job: PodJob, mirror: Mirror) -> Begun | None:
    """What another process has begun of a job that waits, None where that is nothing."""
    starts, reserved = list[PodStart | None](), list[tuple[ResourceClaim, str]]()
    for key, keys in zip(job.pods, job.claims, strict=True):
        pod, claims = mirror.waits(key), [mirror.claims[k] for k in keys if k in mirror.claims]
        if pod is None:
            return None
        mine = [claim for claim in claims if _reserved(claim, pod)]
        reserved += [(claim, pod.metadata.uid) for claim in mine]
        reserved += [(claim, "") for claim in claims if claim.status.allocation is not None and not claim.status.reserved_for]
        node = node_of(pod, mine)
        whole = bool(claims) and len(mine) == len(claims) and node in mirror.nodes
        starts.append(PodStart(pod, node, tuple(ClaimWrite(claim, None) for claim in claims)) if whole else None)
    return Begun(tuple(starts), tuple(reserved)) if reserved else None


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


@dataclass
class GangWatch:
    """Finds gangs of which a part has nodes for too long.

    Attributes
    ----------
    limit : seconds that this may last
    """

    limit: float = 60.0
    _since: dict[str, float] = field(default_factory=dict)

    def late(self, in_part: Mapping[str, Sequence[str]]) -> tuple[list[str], float | None]:
        """Keys of the pods to be evicted, and in how many seconds to look again (None: when something changes)."""
        now = time.monotonic()
        self._since = {group: self._since.get(group, now) for group in in_part}
        late = [group for group, since in self._since.items() if now - since >= self.limit]
        for group in late:
            del self._since[group]
        left = min((self.limit - (now - since) for since in self._since.values()), default=None)
        return [key for group in late for key in in_part[group]], left


def doubles(
    devices: Iterable[DeviceId], mirror: Mirror, under_way: Callable[[], set[str]]
) -> tuple[list[tuple[ResourceClaim, str]], list[Pod]]:
    """What to do where a device is in two claims: reservations to be ended, and pods to be evicted.

    Starts that are `under_way` (keys of pods) are left alone: they end one way or the other first.
    """
    given_back: list[tuple[ResourceClaim, str]] = []
    evicted: list[Pod] = []
    for device in devices:
        holders = mirror.usage.whole.get(device, set())
        if len(holders) < 2:
            continue
        claims = [claim for claim in mirror.claims.values() if claim.metadata.uid in holders]
        pods = {pod.metadata.uid: pod for pod in mirror.pods.values()}
        users = {claim.metadata.uid: [pods[u.uid] for u in claim.status.reserved_for if u.uid in pods] for claim in claims}
        if any(pod.metadata.key in under_way() for found in users.values() for pod in found):
            continue
        claims.sort(key=lambda claim: (_later(claim, users[claim.metadata.uid]), claim.metadata.key))
        for claim in claims[1:]:
            for pod in users[claim.metadata.uid]:
                if not mirror.ours(pod):
                    continue
                if pod.spec.node_name and not pod.over:
                    evicted.append(pod)
                else:
                    given_back.append((claim, pod.metadata.uid))
    return given_back, evicted


def _later(claim: ResourceClaim, users: list[Pod]) -> tuple[bool, str]:
    """What is given up first comes last: without a pod that has a node, then by when it got its devices."""
    allocation = claim.status.allocation
    unbound = not any(pod.spec.node_name for pod in users)
    return unbound, (allocation.allocation_timestamp or "") if allocation is not None else ""
