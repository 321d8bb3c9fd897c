"""What is looked after while a platform runs: gangs in part, devices in two claims, devices that could not be attached."""

from __future__ import annotations

import time
from collections.abc import Iterable

from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.objects import Pod, ResourceClaim
from poolwise.live.kubernetes.pod_jobs import PodJobs
from poolwise.live.kubernetes.pod_runs import PodRuns
from poolwise.live.kubernetes.state import ClusterState
from poolwise.units import SECOND


class Reconciler:
    """Evicts, gives back and waits.

    Parameters
    ----------
    gang_limit
        Seconds for which only a part of a gang may have nodes.
    """

    def __init__(
        self,
        mirror: ClusterCache,
        units: PodJobs,
        state: ClusterState,
        runs: PodRuns,
        writes: Actions,
        clock: LiveClock,
        gang_limit: float,
    ) -> None:
        self._mirror, self._units, self._state, self._runs = mirror, units, state, runs
        self._writes, self._clock, self._limit = writes, clock, gang_limit
        self._since: dict[str, float] = {}  # group -> when a part of it was seen to have nodes

    def look(self, devices: Iterable[DeviceId]) -> None:
        """Look at all gangs in part, and at devices that were taken or given back."""
        self._gangs()
        given_back, evicted = _doubles(devices, self._mirror, self._runs)
        for claim, uid in given_back:
            self._writes.release_claim(claim, uid)
        self._writes.stop(evicted, "a device is in two claims")
        self._avoided()

    def _gangs(self) -> None:
        """Evict the part of a gang that has had nodes alone for too long."""
        in_part, now = self._units.in_part, time.monotonic()
        self._since = {group: self._since.get(group, now) for group in in_part}
        for group in [group for group, since in self._since.items() if now - since >= self._limit]:
            self._writes.stop([self._mirror.pods[key] for key in in_part[group]], "its gang could not be completed in time")
            del self._since[group]
        if self._since:
            left = self._limit - (now - min(self._since.values()))
            self._clock.retry(max(int(left * SECOND), SECOND // 10))

    def _avoided(self) -> None:
        """Take devices up again that were left alone for long enough."""
        avoided, now = self._state.avoided, time.monotonic_ns()
        for device in [device for device, until in avoided.items() if until <= now]:
            del avoided[device]
            self._mirror.changes.devices.add(device)
        if avoided:
            self._clock.retry(min(avoided.values()) - now)


def _doubles(
    devices: Iterable[DeviceId], mirror: ClusterCache, runs: PodRuns
) -> tuple[list[tuple[ResourceClaim, str]], list[Pod]]:
    """What to do where a device is in two claims: reservations to be ended, and pods to be evicted.

    Starts that are under way are left alone: they end one way or the other first, and are looked at again then.
    """
    given_back: list[tuple[ResourceClaim, str]] = []
    evicted: list[Pod] = []
    for device in devices:
        holders = mirror.usage.whole.get(device, ())
        if len(holders) < 2:
            continue
        claims = [claim for claim in mirror.claims.values() if claim.metadata.uid in holders]
        pods = {pod.metadata.uid: pod for pod in mirror.pods.values()}
        users = {claim.metadata.uid: [pods[u.uid] for u in claim.status.reserved_for if u.uid in pods] for claim in claims}
        under_way = runs.under_way()
        if any(pod.metadata.key in under_way for found in users.values() for pod in found):
            mirror.changes.devices.add(device)
            continue
        claims.sort(key=lambda claim: (_later(claim, users[claim.metadata.uid]), claim.metadata.key))
        for claim in claims[1:]:
            for pod in users[claim.metadata.uid]:
                if not mirror.is_managed(pod):
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
