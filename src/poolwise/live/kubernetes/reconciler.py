"""Reconciliation: evict incomplete gangs, resolve doubly allocated devices, and retry devices after failed attachments."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from poolwise.live.kubernetes.objects import DeviceId, Pod, ResourceClaim
from poolwise.live.kubernetes.pod_runs import PodRuns
from poolwise.units import SECOND


@dataclass
class Reconciler:
    """Evicts pods, releases claims and restores devices, to repair states that should not last; `gang_limit` is in seconds."""

    runs: PodRuns
    gang_limit: float
    # group -> time at which it was first seen incomplete (ns)
    _since: dict[str, int] = field(default_factory=dict, init=False)

    def reconcile(self, devices: Iterable[DeviceId]) -> None:
        """Check all incomplete gangs, and devices whose allocation changed."""
        self._evict_partial_gangs()
        for device in devices:
            self._resolve_conflict(device)
        self._restore_devices()

    def _evict_partial_gangs(self) -> None:
        """Evict the pods of gangs that have been incomplete for longer than the limit."""
        partial_gangs, now = self.runs.pod_jobs.partial_gangs, self.runs.clock.now
        limit = int(self.gang_limit * SECOND)
        self._since = {group: self._since.get(group, now) for group in partial_gangs}
        for group in [group for group, since in self._since.items() if now - since >= limit]:
            self.runs.actions.stop(
                [self.runs.cache.pods[key] for key in partial_gangs[group]], "its gang was not complete within the time limit"
            )
            del self._since[group]
        if self._since:
            left = limit - (now - min(self._since.values()))
            self.runs.clock.request_pass(max(left, SECOND // 10))

    def _resolve_conflict(self, device: DeviceId) -> None:
        """Release or evict all but one of the claims that hold a device."""
        cache, actions = self.runs.cache, self.runs.actions
        holders = cache.usage.whole.get(device, ())
        if len(holders) < 2:
            return
        claims = [claim for claim in cache.claims.values() if claim.metadata.uid in holders]
        pods = {pod.metadata.uid: pod for pod in cache.pods.values()}
        users = {claim.metadata.uid: [pods[u.uid] for u in claim.status.reserved_for if u.uid in pods] for claim in claims}
        binding_pods = self.runs.binding_pods()
        if any(pod.metadata.key in binding_pods for found in users.values() for pod in found):
            cache.changes.devices.add(device)  # check again after the start has succeeded or failed
            return
        claims.sort(key=lambda claim: (_release_order(claim, users[claim.metadata.uid]), claim.metadata.key))
        for claim in claims[1:]:
            for pod in filter(cache.is_managed, users[claim.metadata.uid]):
                if pod.spec.node_name and not pod.terminated:
                    actions.stop([pod], "a device is allocated to two claims")
                else:
                    actions.release_claim(claim, pod.metadata.uid)

    def _restore_devices(self) -> None:
        """Make devices available again whose exclusion has expired."""
        avoided, now = self.runs.state.avoided, time.monotonic_ns()
        for device in [device for device, until in avoided.items() if until <= now]:
            del avoided[device]
            self.runs.cache.changes.devices.add(device)
        if avoided:
            self.runs.clock.request_pass(min(avoided.values()) - now)


def _release_order(claim: ResourceClaim, users: list[Pod]) -> tuple[bool, str]:
    """Return a sort key by which claims keep a device: those with a bound pod first, then by allocation time."""
    allocation = claim.status.allocation
    unbound = not any(pod.spec.node_name for pod in users)
    return unbound, (allocation.allocation_timestamp or "") if allocation is not None else ""
