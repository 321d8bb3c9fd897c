"""Reconciliation: evict incomplete gangs, resolve devices allocated twice, and retry devices after failed attachments."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poolwise.live.kubernetes.metrics import KubernetesMetrics
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.pod_runs import PodRuns
from poolwise.live.logs import log_event
from poolwise.quantities import SECOND

YIELD_DELAY = 30 * SECOND
"""Grace period (ns) for another scheduler to release a device that it allocated although a claim held it."""


@dataclass
class _Conflict:
    """A device that several claims hold."""

    claims: frozenset[str]  # their uids
    since: int  # time of its detection (ns)
    # uids of the claims from which it was released, and whether a pod of the claim was bound then
    released: set[tuple[str, bool]] = field(default_factory=set)


@dataclass
class Reconciler:
    """Evicts pods, releases claims and restores devices, to repair states that should not last; `gang_limit` is in seconds."""

    runs: PodRuns
    gang_limit: float
    metrics: KubernetesMetrics = field(default_factory=KubernetesMetrics)
    # group -> time at which it was first seen incomplete (ns)
    _since: dict[str, int] = field(default_factory=dict, init=False)
    _conflicts: dict[DeviceId, _Conflict] = field(default_factory=dict, init=False)  # devices that several claims hold

    def reconcile(self, devices: Iterable[DeviceId]) -> None:
        """Check all incomplete gangs, and devices whose allocation changed."""
        self._evict_partial_gangs()
        self._resolve_conflicts(devices)
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

    def _resolve_conflicts(self, devices: Iterable[DeviceId]) -> None:
        """Report devices that several claims hold, and release them from all claims but one.

        A claim with a bound pod keeps the device; if there are several such claims, the one allocated first keeps it. The
        scheduler changes only its own pods. If the other claims belong to another scheduler, that one may release the device;
        after `YIELD_DELAY`, this one does.
        """
        for device in {*devices, *self._conflicts}:
            claims = self._holders(device)
            if len(claims) < 2:
                self._conflicts.pop(device, None)
                continue
            users = {claim.metadata.uid: self._users(claim) for claim in claims}
            claims.sort(key=lambda claim: (self._release_order(claim, users[claim.metadata.uid]), claim.metadata.key))
            binding_pods = self.runs.binding_pods()
            if any(pod.metadata.key in binding_pods for pods in users.values() for pod in pods):
                self.runs.cache.changes.devices.add(device)  # check again after the start has succeeded or failed
                continue
            uids = frozenset(users)
            conflict = self._conflicts.get(device)
            if conflict is None or conflict.claims != uids:
                conflict = self._conflicts[device] = _Conflict(uids, self.runs.clock.now)
                self._report_conflict(device, claims, users)
            self._release_from(claims, users, conflict)

    def _release_from(self, claims: Sequence[ResourceClaim], users: Mapping[str, Sequence[Pod]], conflict: _Conflict) -> None:
        """Release the device from all claims but the first, or from that one if another scheduler does not release it."""
        cache, now = self.runs.cache, self.runs.clock.now
        others = [claim for claim in claims[1:] if not any(map(cache.is_managed, users[claim.metadata.uid]))]
        losers = list(claims[1:])
        if others and now - conflict.since >= YIELD_DELAY:
            losers.append(claims[0])
        elif others:
            self.runs.clock.request_pass(YIELD_DELAY - (now - conflict.since))
        for claim in losers:
            uid = claim.metadata.uid
            attempt = uid, any(map(self._is_bound, users[uid]))  # the reservation of a pod that was just bound remains
            if attempt not in conflict.released:
                conflict.released.add(attempt)
                self._release(claim, users[uid])

    def _release(self, claim: ResourceClaim, users: Iterable[Pod]) -> None:
        """Evict this scheduler's pods that use a claim, or release their reservations if they are not bound."""
        for pod in filter(self.runs.cache.is_managed, users):
            if self._is_bound(pod) and not pod.terminated:
                self.runs.actions.stop([pod], "a device is allocated to two claims")
            else:
                self.runs.actions.release_claim(claim, pod.metadata.uid)

    def _report_conflict(self, device: DeviceId, claims: Sequence[ResourceClaim], users: Mapping[str, Sequence[Pod]]) -> None:
        keys = [claim.metadata.key for claim in claims]
        log_event("device_allocated_twice", logging.WARNING, device=str(device), claims=keys)
        self.metrics.double_allocations.inc()
        note = f"device {device} is allocated to the claims {', '.join(keys)}"
        concerned = {user.metadata.uid for pods in users.values() for user in pods}
        concerned |= {owner.uid for claim in claims for owner in claim.metadata.owner_references}  # a reservation may be gone
        for pod in self.runs.cache.pods.values():
            if pod.metadata.uid in concerned and self.runs.cache.is_managed(pod):
                self.runs.actions.report_event(pod, "DeviceAllocatedTwice", note)

    def _holders(self, device: DeviceId) -> list[ResourceClaim]:
        """Return the claims that hold a device which one of them holds whole."""
        usage = self.runs.cache.usage
        uids = {*usage.whole.get(device, ()), *usage.shares.get(device, ())} if device in usage.whole else set()
        return [c for c in self.runs.cache.claims.values() if c.metadata.uid in uids] if len(uids) > 1 else []

    def _users(self, claim: ResourceClaim) -> list[Pod]:
        """Return the pods that a claim is reserved for."""
        uids = {user.uid for user in claim.status.reserved_for}
        return [pod for pod in self.runs.cache.pods.values() if pod.metadata.uid in uids]

    def _is_bound(self, pod: Pod) -> bool:
        """Return whether a pod has a node, even if the watch has not yet reported that this scheduler bound it."""
        return bool(pod.spec.node_name) or pod.metadata.uid in self.runs.state.run_pods

    def _release_order(self, claim: ResourceClaim, users: list[Pod]) -> tuple[bool, str]:
        """Return a sort key by which claims keep a device: those with a bound pod first, then by allocation time."""
        allocation = claim.status.allocation
        unbound = not any(map(self._is_bound, users))
        return unbound, (allocation.allocation_timestamp or "") if allocation is not None else ""

    def _restore_devices(self) -> None:
        """Make devices available again whose exclusion has expired."""
        avoided, now = self.runs.state.avoided, time.monotonic_ns()
        for device in [device for device, until in avoided.items() if until <= now]:
            del avoided[device]
            self.runs.cache.changes.devices.add(device)
        if avoided:
            self.runs.clock.request_pass(min(avoided.values()) - now)
