"""Runs of a cluster: decided, being bound, or running; each holds its resources from the decision to its end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.interfaces import PerformanceModel
from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.placement import (
    Placed,
    PlacementFailures,
    Refused,
    matching_failures,
    place,
    resume,
    undo_assumed,
)
from poolwise.live.kubernetes.pod_jobs import PodJob, PodJobs, timestamp_ns
from poolwise.live.kubernetes.recovery import InterruptedStart, interrupted_start
from poolwise.live.kubernetes.starts import BindFailed
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.logs import log_event
from poolwise.model import Ended, Event, Outcome, Placement, Run, Snapshot, Start, Started
from poolwise.units import SECOND

RETRY, LONGEST_RETRY = SECOND, 60 * SECOND
"""Initial and longest delay (ns) before a failed start is retried; the delay doubles with each failure."""


@dataclass
class ActiveRun:
    """A run and its pods.

    Attributes
    ----------
    job : its job
    nodes : node of each pod
    held : uid of the claims whose devices are assumed for it
    is_bound : whether all pods are bound
    stopped : whether its pods are being evicted
    """

    job: PodJob
    nodes: tuple[str, ...]
    held: tuple[str, ...] = ()
    is_bound: bool = False
    stopped: bool = False


class PodRuns:
    """Starts, tracks and ends runs.

    Attributes
    ----------
    active : run number -> run
    freed_at : time (ns) at which a run last ended or the machine changed, -1 before
    """

    def __init__(
        self,
        cache: ClusterCache,
        pod_jobs: PodJobs,
        state: ClusterState,
        actions: Actions,
        clock: LiveClock,
        estimate: PerformanceModel,
    ) -> None:
        self._cache, self._pod_jobs, self._state, self._actions = cache, pod_jobs, state, actions
        self._clock, self._estimate = clock, estimate
        self.active: dict[int, ActiveRun] = {}
        self.freed_at = -1
        self._next = 0
        self._awaiting_release: dict[str, set[str]] = {}  # claim -> terminated pods whose runs wait for its release

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        state = self._state
        return Snapshot(
            self._clock.now,
            state.mapping.machine,
            state.table,
            state.capacity.copy(),
            state.free,
            state.runs,
            self._estimate,
            lambda number, now: float(now - state.runs[number].start),  # expected progress in reference ns
            may_grow=True,
            freed_at=self.freed_at,
            traffic=state.traffic,
        )

    def binding_pods(self) -> set[str]:
        """Return the keys of pods that are being bound."""
        return {key for active in self.active.values() if not active.is_bound for key in active.job.pods}

    # Decisions

    def start(self, start: Start, job: PodJob | None, before: Snapshot, failures: PlacementFailures) -> int | Refused:
        """Assume a start that was decided from the state `before`; return the number of its run, or a refusal.

        `failures` contains the placement failures since the last cluster events.
        """
        if job is None or job.run is not None:
            return Refused("tasks are not waiting")
        if self._state.mapping.view == "shared" and len(start.tasks) < len(job.pods):
            return Refused("the pods of a gang must start together", True)
        if (wait := job.not_before - time.monotonic_ns()) > 0:
            self._clock.request_pass(wait)
            return Refused(f"retry in {wait / SECOND:.1f} s after a failed start")
        if (left := interrupted_start(job, self._cache)) is not None:
            self._release(left)
            return Refused("waiting for the devices of an earlier attempt to be released")
        placed = place(start, job, self._cache, self._state, failures)
        if isinstance(placed, Refused):
            return placed
        if placed.moved:  # the policy's node still has room that the policy counts as taken
            self._clock.request_pass(0)
        number = self._begin(job, placed, self._clock.now, before)
        self._actions.start(number, placed.pods)
        return number

    def unplaceable(self, starts: Iterable[tuple[Start, PodJob]]) -> dict[int, str]:
        """Return row -> reason for starts that cannot fit until resources are released; nothing stays assumed."""
        found, held, failures, room = dict[int, str](), list[str](), PlacementFailures(), set[PodJob]()
        for start, job in starts:
            placed = place(start, job, self._cache, self._state, failures)
            if isinstance(placed, Placed):
                held += placed.held
                room.add(job)
            elif placed.lasting:
                found[job.row] = placed.why
        undo_assumed(held, self._cache)
        return found | matching_failures(self._pod_jobs.waiting() - room, self._cache, failures) if found else {}

    def stop(self, number: int, reason: str) -> str:
        """Evict the pods of a run; return why that is impossible, or ""."""
        active = self.active.get(number)
        if active is None:
            return "the run has ended"
        active.stopped = True
        self._actions.stop([self._cache.pods[key] for key in active.job.pods if key in self._cache.pods], reason)
        return ""

    # Adoption and recovery

    def adopt(self, job: PodJob) -> None:
        """Create a run for a pod that already has a node."""
        pod = self._cache.pods[job.pods[0]]
        node = pod.spec.node_name
        uids = [self._cache.claims[key].metadata.uid for key in job.claims[0]]
        shares = [share for uid in uids for share in self._cache.usage.claims.get(uid, ())]
        rows = self._state.rows_of(0, node, job.demand.amounts, shares)
        began = timestamp_ns(pod.scheduled_at) - self._clock.epoch
        number = self._begin(job, Placed((), (node,), Placement.of(rows), ()), min(began, self._clock.now), self.snapshot())
        self.active[number].is_bound = True

    def resume(self, job: PodJob) -> None:
        """Resume a start that another process began, or undo it."""
        found = interrupted_start(job, self._cache)
        if found is None:
            return
        placed = resume(found, job, self._cache, self._state)
        if isinstance(placed, Refused):
            log_event("start_abandoned", job=job.name, why=placed.why)
            self._release(found)
        else:
            self._actions.start(self._begin(job, placed, self._clock.now, self.snapshot()), placed.pods)

    def _release(self, found: InterruptedStart) -> None:
        """Release the reservations of an abandoned start."""
        for claim, uid in found.reserved:
            self._actions.release_claim(claim, uid)

    # Outcomes

    def on_bound(self, number: int) -> list[Event]:
        """Mark a run as bound."""
        active = self.active.get(number)
        if active is None:
            return []
        active.is_bound = True
        active.job.failures = 0
        self._cache.changes.pods.update(active.job.pods)  # they may have terminated already
        return [Started(number, active.job.row)]

    def on_bind_failed(self, failed: BindFailed) -> list[Event]:
        """Undo a failed start: the job waits again, or is formed again from its remaining pods."""
        active = self._end(failed.run)
        job = active.job
        undo_assumed(active.held, self._cache)
        for device in failed.failed:
            self._state.avoided[device] = time.monotonic_ns() + LONGEST_RETRY
            self._cache.changes.devices.add(device)
        job.failures += 1
        after = min(LONGEST_RETRY, RETRY << min(job.failures, 6))
        job.not_before = time.monotonic_ns() + after
        self._clock.request_pass(after)
        for key in job.pods:
            if (pod := self._cache.pending_pod(key)) is not None:
                self._actions.report_unschedulable(pod, failed.reason)
        whole = not failed.bound and all(self._cache.pending_pod(key) is not None for key in job.pods)
        if not whole:
            self._pod_jobs.end(job)
            self._cache.changes.pods.update(job.pods)
        tasks = tuple(range(int(self._state.table.tasks[job.row])))
        return [Ended(failed.run, job.row, tasks, Outcome.REFUSED, whole, failed.reason)]

    def pop_released_pods(self, claims: Iterable[str]) -> set[str]:
        """Return the keys of terminated pods whose runs waited for the release of one of these claims."""
        return {pod for claim in claims for pod in self._awaiting_release.pop(claim, ())}

    def on_pod_terminated(self, key: str) -> list[Event]:
        """End the run of a pod if all of its pods have terminated and their claims are no longer reserved for them.

        The resources of a run return together, as policies expect: otherwise another job could overtake one that needs a node
        and devices, between the termination of the pod and the deallocation of its devices.
        """
        job = self._state.run_pods.get(key)
        if (
            job is None
            or job.run is None
            or not all(self._has_terminated(k, uid) for k, uid in zip(job.pods, job.uids, strict=True))
        ):
            return []
        number, active = job.run, self.active[job.run]
        if not active.is_bound:
            return []  # the binder will report the outcome
        held = [claim for uid, keys in zip(job.uids, job.claims, strict=True) for claim in keys if self._reserved(claim, uid)]
        for claim in held:
            self._awaiting_release.setdefault(claim, set()).add(key)
        if held:
            return []
        outcome = Outcome.STOPPED if active.stopped else Outcome.FINISHED
        if any(node not in self._cache.nodes for node in active.nodes):
            outcome = Outcome.LOST
        self._end(number)
        self._pod_jobs.end(job)
        return [Ended(number, job.row, tuple(range(len(job.pods))), outcome)]

    def _reserved(self, key: str, uid: str) -> bool:
        claim = self._cache.claims.get(key)
        return claim is not None and any(user.uid == uid for user in claim.status.reserved_for)

    def _has_terminated(self, key: str, uid: str) -> bool:
        pod = self._cache.pods.get(key)
        return pod is None or pod.metadata.uid != uid or pod.terminated

    def _begin(self, job: PodJob, placed: Placed, began: int, view: Snapshot) -> int:
        number = self._next
        self._next += 1
        tasks = tuple(range(int(self._state.table.tasks[job.row])))
        end = view.expected_end(job.row, placed.placement) - view.now + began
        self._state.add(Run(number, job.row, tasks, placed.placement, began, end))
        for key, node in zip(job.pods, placed.nodes, strict=True):
            self._state.run_pods[key] = job
            self._state.run_pods_on.setdefault(node, {})[key] = job
        job.run = number
        self.active[number] = ActiveRun(job, placed.nodes, placed.held)
        return number

    def _end(self, number: int) -> ActiveRun:
        active = self.active.pop(number)
        run = self._state.remove(number)
        for key, node in zip(active.job.pods, active.nodes, strict=True):
            self._state.run_pods.pop(key, None)
            self._state.run_pods_on[node].pop(key, None)
            if not self._state.run_pods_on[node]:
                del self._state.run_pods_on[node]
        active.job.run = None
        self.freed_at = self._clock.now
        for owner in run.placement.owners():
            if (device := self._state.mapping.devices.get(owner)) is not None:
                self._cache.changes.devices.add(device)
        self._cache.changes.nodes.update(active.nodes)
        return active
