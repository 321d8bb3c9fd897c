"""Starts whose node or devices no longer exist: they are undone, and their pods are placed again."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.live.kubernetes.node_constraints import untolerated_taint
from poolwise.live.kubernetes.objects.claim import ResourceClaim
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.pod_runs import ActiveRun, PodRuns
from poolwise.live.logs import log_event
from poolwise.quantities import SECOND

LOSS_DELAY = 2 * SECOND
"""Grace period (ns) for lost devices or nodes: a driver that republishes a pool withdraws its slices for an instant."""


class LossMonitor:
    """Finds starts that wait for devices, and whose devices or nodes were withdrawn, deleted or tainted with `NoExecute`."""

    def __init__(self, runs: PodRuns) -> None:
        self._runs = runs
        self._since: dict[int, int] = {}  # run -> time of its loss (ns)

    @property
    def is_waiting(self) -> bool:
        """True if a start is to be undone soon."""
        return bool(self._since)

    def undo_lost_starts(self) -> None:
        """Report new losses to the pods, and undo the starts whose losses have lasted for `LOSS_DELAY`."""
        now, lost_since = self._runs.clock.now, self._since
        lost = {number: why for number, active in self._runs.active.items() if (why := self._loss(active)) is not None}
        self._since = {number: lost_since.get(number, now) for number in lost}
        for number, why in lost.items():
            job = self._runs.active[number].job
            if number not in lost_since:
                log_event("start_lost", job=job.name, why=why)
                self._runs.report_unschedulable(
                    job.pods, f"{why}; the start is undone in {LOSS_DELAY // SECOND} s unless it returns"
                )
            elif now - self._since[number] >= LOSS_DELAY:
                self._runs.actions.abandon(number, why)
        pending = [since + LOSS_DELAY - now for since in self._since.values() if since + LOSS_DELAY > now]
        if pending:
            self._runs.clock.request_pass(min(pending))

    def _loss(self, active: ActiveRun) -> str | None:
        """Return a description of the loss of a start, None if the start is complete or has lost nothing."""
        if active.is_bound:
            return None
        cache = self._runs.cache
        for node in active.nodes:
            if node not in cache.nodes:
                return f"node {node} was deleted"
        for claim, device in self._devices(active):
            published = cache.inventory.devices.get(device)
            if published is None:
                return f"device {device} of claim {claim.metadata.key} is no longer published"
            if device in cache.inventory.evicting:
                tolerations = [toleration for wanted in claim.wanted for toleration in wanted.tolerations]
                taints = [taint for taint in cache.inventory.taints(published) if taint.effect == "NoExecute"]
                if (taint := untolerated_taint(taints, tolerations)) is not None:
                    return f"device {device} of claim {claim.metadata.key} has the taint {taint.key}:{taint.effect}"
        return None

    def _devices(self, active: ActiveRun) -> Iterator[tuple[ResourceClaim, DeviceId]]:
        cache = self._runs.cache
        for key in {key for keys in active.job.claims for key in keys}:
            if (claim := cache.claims.get(key)) is not None:
                yield from ((claim, share.id) for share in cache.usage.claims.get(claim.metadata.uid, ()))
