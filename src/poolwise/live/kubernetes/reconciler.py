"""Reconciliation: evict incomplete gangs, resolve doubly allocated devices, and retry devices after failed attachments."""

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
    """Evicts pods, releases claims and restores devices, to repair states that should not last.

    Parameters
    ----------
    cache, pod_jobs, state, runs : the cluster, its jobs, its machine and its runs
    actions : receives evictions and releases
    clock : schedules the next check
    gang_limit : time limit (s) for a gang of which only some pods have nodes
    """

    def __init__(
        self,
        cache: ClusterCache,
        pod_jobs: PodJobs,
        state: ClusterState,
        runs: PodRuns,
        actions: Actions,
        clock: LiveClock,
        gang_limit: float,
    ) -> None:
        self._cache, self._pod_jobs, self._state, self._runs = cache, pod_jobs, state, runs
        self._actions, self._clock, self._limit = actions, clock, gang_limit
        self._since: dict[str, float] = {}  # group -> time at which it was first seen incomplete (monotonic seconds)

    def reconcile(self, devices: Iterable[DeviceId]) -> None:
        """Check all incomplete gangs, and devices whose allocation changed."""
        self._evict_partial_gangs()
        released, evicted = _conflicting_allocations(devices, self._cache, self._runs)
        for claim, uid in released:
            self._actions.release_claim(claim, uid)
        self._actions.stop(evicted, "a device is allocated to two claims")
        self._restore_devices()

    def _evict_partial_gangs(self) -> None:
        """Evict the pods of gangs that have been incomplete for longer than the limit."""
        partial_gangs, now = self._pod_jobs.partial_gangs, time.monotonic()
        self._since = {group: self._since.get(group, now) for group in partial_gangs}
        for group in [group for group, since in self._since.items() if now - since >= self._limit]:
            self._actions.stop(
                [self._cache.pods[key] for key in partial_gangs[group]], "its gang was not complete within the time limit"
            )
            del self._since[group]
        if self._since:
            left = self._limit - (now - min(self._since.values()))
            self._clock.request_pass(max(int(left * SECOND), SECOND // 10))

    def _restore_devices(self) -> None:
        """Make devices available again whose exclusion has expired."""
        avoided, now = self._state.avoided, time.monotonic_ns()
        for device in [device for device, until in avoided.items() if until <= now]:
            del avoided[device]
            self._cache.changes.devices.add(device)
        if avoided:
            self._clock.request_pass(min(avoided.values()) - now)


def _conflicting_allocations(
    devices: Iterable[DeviceId], cache: ClusterCache, runs: PodRuns
) -> tuple[list[tuple[ResourceClaim, str]], list[Pod]]:
    """Return the reservations to release and the pods to evict where a device is allocated to two claims.

    Devices of pods that are being bound are checked again after the start has succeeded or failed.
    """
    released: list[tuple[ResourceClaim, str]] = []
    evicted: list[Pod] = []
    for device in devices:
        holders = cache.usage.whole.get(device, ())
        if len(holders) < 2:
            continue
        claims = [claim for claim in cache.claims.values() if claim.metadata.uid in holders]
        pods = {pod.metadata.uid: pod for pod in cache.pods.values()}
        users = {claim.metadata.uid: [pods[u.uid] for u in claim.status.reserved_for if u.uid in pods] for claim in claims}
        binding_pods = runs.binding_pods()
        if any(pod.metadata.key in binding_pods for found in users.values() for pod in found):
            cache.changes.devices.add(device)
            continue
        claims.sort(key=lambda claim: (_release_order(claim, users[claim.metadata.uid]), claim.metadata.key))
        for claim in claims[1:]:
            for pod in users[claim.metadata.uid]:
                if not cache.is_managed(pod):
                    continue
                if pod.spec.node_name and not pod.terminated:
                    evicted.append(pod)
                else:
                    released.append((claim, pod.metadata.uid))
    return released, evicted


def _release_order(claim: ResourceClaim, users: list[Pod]) -> tuple[bool, str]:
    """Return a sort key by which claims keep a device: those with a bound pod first, then by allocation time."""
    allocation = claim.status.allocation
    unbound = not any(pod.spec.node_name for pod in users)
    return unbound, (allocation.allocation_timestamp or "") if allocation is not None else ""
