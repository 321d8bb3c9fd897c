"""The runs of a cluster: decided, on their way, at work; what they hold is kept from the decision to the end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.interfaces import PerformanceModel
from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.placement import Placed, PlacementFailures, Refused, alike, place, resume, undo
from poolwise.live.kubernetes.pod_jobs import PodJob, PodJobs, instant
from poolwise.live.kubernetes.recovery import InterruptedStart, begun
from poolwise.live.kubernetes.starts import NotBound
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.logs import say
from poolwise.model import Ended, Event, Outcome, Placement, Run, Snapshot, Start, Started
from poolwise.units import SECOND

RETRY, LONGEST_RETRY = SECOND, 60 * SECOND
"""Ns after which a start that failed is tried again, doubled each time up to the longest."""


@dataclass
class Active:
    """A run and what it is made of.

    Attributes
    ----------
    job : its job
    nodes : node of each pod
    held : uid of claims whose devices are assumed for it
    real : whether all pods are bound
    stopped : whether its pods are being evicted
    """

    job: PodJob
    nodes: tuple[str, ...]
    held: tuple[str, ...] = ()
    real: bool = False
    stopped: bool = False


class PodRuns:
    """Begins and ends runs.

    Attributes
    ----------
    active : number of a run -> the run
    freed_at : ns at which one ended last, or the machine changed, -1 before
    over_rows : rows of the job table whose jobs are over
    """

    def __init__(
        self,
        mirror: ClusterCache,
        units: PodJobs,
        state: ClusterState,
        writes: Actions,
        clock: LiveClock,
        estimate: PerformanceModel,
    ) -> None:
        self._mirror, self._units, self._state, self._writes = mirror, units, state, writes
        self._clock, self._estimate = clock, estimate
        self.active: dict[int, Active] = {}
        self.freed_at, self.over_rows = -1, 0
        self._next = 0
        self._leaving: dict[str, set[str]] = {}  # claim -> pods that are over

    def snapshot(self) -> Snapshot:
        """Show the state now."""
        state = self._state
        return Snapshot(
            self._clock.now,
            state.shape.machine,
            state.table,
            state.capacity.copy(),
            state.free,
            state.runs,
            self._estimate,
            lambda number, now: float(now - state.runs[number].start),  # reference ns of work that is believed done
            may_grow=True,
            freed_at=self.freed_at,
            traffic=state.traffic,
        )

    def under_way(self) -> set[str]:
        """Keys of the pods whose start is being written."""
        return {key for active in self.active.values() if not active.real for key in active.job.pods}

    # Decisions

    def start(self, start: Start, job: PodJob | None, before: Snapshot, vain: PlacementFailures) -> int | Refused:
        """Assume a start, decided of the state `before`; returns the number of its run, or why it cannot be.

        `vain` is what other starts of the plan have found out.
        """
        if job is None or job.run is not None:
            return Refused("tasks are not waiting")
        if self._state.shape.view == "shared" and len(start.tasks) < len(job.pods):
            return Refused("the pods of a group start together", True)
        if (wait := job.not_before - time.monotonic_ns()) > 0:
            self._clock.retry(wait)
            return Refused(f"tried again in {wait / SECOND:.1f} s")
        if (left := begun(job, self._mirror)) is not None:
            self._give_back(left)
            return Refused("devices of an earlier attempt are given back first")
        placed = place(start, job, self._mirror, self._state, vain)
        if isinstance(placed, Refused):
            return placed
        if placed.moved:  # where the policy had it, there is room left that it does not know of
            self._clock.retry(0)
        number = self._begin(job, placed, self._clock.now, before)
        self._writes.start(number, placed.pods)
        return number

    def lacking(self, starts: Iterable[tuple[Start, PodJob]]) -> dict[int, str]:
        """Row -> why, of the starts that could not be for as long as nothing changes; nothing is kept of the others."""
        found, held, vain, room = dict[int, str](), list[str](), PlacementFailures(), set[PodJob]()
        for start, job in starts:
            placed = place(start, job, self._mirror, self._state, vain)
            if isinstance(placed, Placed):
                held += placed.held
                room.add(job)
            elif placed.lasting:
                found[job.row] = placed.why
        undo(held, self._mirror)
        return found | alike(self._units.waiting() - room, self._mirror, vain) if found else {}

    def stop(self, number: int, reason: str) -> str:
        """Have the pods of a run evicted; returns why that cannot be, "" where it can."""
        active = self.active.get(number)
        if active is None:
            return "the run is over"
        active.stopped = True
        self._writes.stop([self._mirror.pods[key] for key in active.job.pods if key in self._mirror.pods], reason)
        return ""

    # What is found

    def adopt(self, job: PodJob) -> None:
        """Count a pod that has a node as a run."""
        pod = self._mirror.pods[job.pods[0]]
        node = pod.spec.node_name
        uids = [self._mirror.claims[key].metadata.uid for key in job.claims[0]]
        parts = [part for uid in uids for part in self._mirror.usage.claims.get(uid, ())]
        rows = self._state.rows_of(0, node, job.demand.amounts, parts)
        began = instant(pod.began) - self._clock.epoch
        number = self._begin(job, Placed((), (node,), Placement.of(rows), ()), min(began, self._clock.now), self.snapshot())
        self.active[number].real = True

    def resume(self, job: PodJob) -> None:
        """Go on with a start that another process has begun, or undo it."""
        found = begun(job, self._mirror)
        if found is None:
            return
        placed = resume(found, job, self._mirror, self._state)
        if isinstance(placed, Refused):
            say("not gone on with", job=job.name, why=placed.why)
            self._give_back(found)
        else:
            self._writes.start(self._begin(job, placed, self._clock.now, self.snapshot()), placed.pods)

    def _give_back(self, found: InterruptedStart) -> None:
        """Take back the reservations of a start that is not gone on with."""
        for claim, uid in found.reserved:
            self._writes.release_claim(claim, uid)

    # What happens

    def bound(self, number: int) -> list[Event]:
        """All pods of a run have their nodes."""
        active = self.active.get(number)
        if active is None:
            return []
        active.real = True
        active.job.failures = 0
        self._mirror.changes.pods.update(active.job.pods)  # they may be over already
        return [Started(number, active.job.row)]

    def not_bound(self, failed: NotBound) -> list[Event]:
        """Undo a start: its job waits again, or is made anew of what is left of it."""
        active = self._end(failed.run)
        job = active.job
        undo(active.held, self._mirror)
        for device in failed.failed:
            self._state.avoided[device] = time.monotonic_ns() + LONGEST_RETRY
            self._mirror.changes.devices.add(device)
        job.failures += 1
        after = min(LONGEST_RETRY, RETRY << min(job.failures, 6))
        job.not_before = time.monotonic_ns() + after
        self._clock.retry(after)
        for key in job.pods:
            if (pod := self._mirror.pending_pod(key)) is not None:
                self._writes.say(pod, failed.reason)
        whole = not failed.bound and all(self._mirror.pending_pod(key) is not None for key in job.pods)
        if not whole:
            self._forget(job)
            self._mirror.changes.pods.update(job.pods)
        tasks = tuple(range(int(self._state.table.tasks[job.row])))
        return [Ended(failed.run, job.row, tasks, Outcome.REFUSED, whole, failed.reason)]

    def leaving(self, claims: Iterable[str]) -> set[str]:
        """Keys of pods that are over, and whose runs waited for one of some claims to be given back."""
        return {pod for claim in claims for pod in self._leaving.pop(claim, ())}

    def pod_over(self, key: str) -> list[Event]:
        """End the run of a pod, where it was the last, and its claims are reserved for it no longer.

        What a run holds comes back in one piece, as policies expect it: a job that waits for a node and devices is not
        overtaken between the end of a pod and the moment at which Kubernetes gives its devices back.
        """
        job = self._state.ours.get(key)
        if job is None or job.run is None or not all(self._over(k, uid) for k, uid in zip(job.pods, job.uids, strict=True)):
            return []
        number, active = job.run, self.active[job.run]
        if not active.real:
            return []  # the binder will say
        held = [claim for uid, keys in zip(job.uids, job.claims, strict=True) for claim in keys if self._reserved(claim, uid)]
        for claim in held:
            self._leaving.setdefault(claim, set()).add(key)
        if held:
            return []
        outcome = Outcome.STOPPED if active.stopped else Outcome.FINISHED
        if any(node not in self._mirror.nodes for node in active.nodes):
            outcome = Outcome.LOST
        self._end(number)
        self._forget(job)
        return [Ended(number, job.row, tuple(range(len(job.pods))), outcome)]

    def _reserved(self, key: str, uid: str) -> bool:
        claim = self._mirror.claims.get(key)
        return claim is not None and any(user.uid == uid for user in claim.status.reserved_for)

    def _over(self, key: str, uid: str) -> bool:
        pod = self._mirror.pods.get(key)
        return pod is None or pod.metadata.uid != uid or pod.over

    def _forget(self, job: PodJob) -> None:
        self._units.end(job)
        self.over_rows += 1

    def _begin(self, job: PodJob, placed: Placed, began: int, view: Snapshot) -> int:
        number = self._next
        self._next += 1
        tasks = tuple(range(int(self._state.table.tasks[job.row])))
        end = view.expected_end(job.row, placed.placement) - view.now + began
        self._state.add(Run(number, job.row, tasks, placed.placement, began, end))
        for key, node in zip(job.pods, placed.nodes, strict=True):
            self._state.ours[key] = job
            self._state.busy.setdefault(node, {})[key] = job
        job.run = number
        self.active[number] = Active(job, placed.nodes, placed.held)
        return number

    def _end(self, number: int) -> Active:
        active = self.active.pop(number)
        run = self._state.remove(number)
        for key, node in zip(active.job.pods, active.nodes, strict=True):
            self._state.ours.pop(key, None)
            self._state.busy[node].pop(key, None)
            if not self._state.busy[node]:
                del self._state.busy[node]
        active.job.run = None
        self.freed_at = self._clock.now
        for owner in run.placement.owners():
            if (device := self._state.shape.devices.get(owner)) is not None:
                self._mirror.changes.devices.add(device)
        self._mirror.changes.nodes.update(active.nodes)
        return active
