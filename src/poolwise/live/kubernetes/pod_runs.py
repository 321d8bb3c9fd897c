"""Runs of a cluster: decided, being bound, or running; each holds its resources from the decision to its end."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.objects.pod import Pod
from poolwise.live.kubernetes.placement import matching_failures, place, resume
from poolwise.live.kubernetes.placement_results import Placed, PlacementFailures, Refused
from poolwise.live.kubernetes.pod_jobs import PodJob, PodJobs, timestamp_ns
from poolwise.live.kubernetes.recovery import InterruptedStart, interrupted_start
from poolwise.live.kubernetes.starts import BindFailed, PodStart
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.logs import log_event
from poolwise.model import Ended, Event, Outcome, Placement, Run, Snapshot, Start, Started
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND

RETRY, LONGEST_RETRY = SECOND, 60 * SECOND
"""Initial and longest delay (ns) before a failed start is retried; the delay doubles with each failure."""
RELEASE_DELAY = 5 * SECOND
"""Grace period (ns) for another process to bind the pods for which it has reserved claims."""


@dataclass
class ActiveRun:
    """A run and its pods."""

    job: PodJob
    nodes: tuple[str, ...]  # node of each pod
    held: tuple[str, ...] = ()  # uid of the claims whose devices are assumed for it
    is_bound: bool = False  # whether all pods are bound
    stopped: bool = False  # whether its pods are being evicted


class PodRuns:
    """Starts, tracks and ends runs."""

    def __init__(self, cache: ClusterCache, pod_jobs: PodJobs, state: ClusterState, actions: Actions, clock: LiveClock) -> None:
        self.cache, self.pod_jobs, self.state, self.actions, self.clock = cache, pod_jobs, state, actions, clock
        self.active: dict[int, ActiveRun] = {}  # by number
        self.freed_at = -1  # time (ns) at which a run last ended or the machine changed, -1 before
        self._next = 0
        self._runs_of: dict[str, set[int]] = {}  # key of a pod -> runs of pods with that key, which end one after the other
        self._awaiting_release: dict[str, set[str]] = {}  # claim -> terminated pods whose runs wait for its release

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        state = self.state
        return Snapshot(
            self.clock.now,
            state.mapping.machine,
            state.table,
            state.capacity.copy(),
            state.free,
            state.runs,
            Ideal(),
            lambda number, now: float(now - state.runs[number].start),  # expected progress in reference ns
            may_grow=True,
            freed_at=self.freed_at,
            traffic=state.traffic,
        )

    def binding_pods(self) -> set[str]:
        """Return the keys of pods that are being bound."""
        return {key for active in self.active.values() if not active.is_bound for key in active.job.pods}

    # Decisions

    def start(self, start: Start, job: PodJob | None, snapshot: Snapshot, failures: PlacementFailures) -> int | Refused:
        """Assume a start that was decided from the state `snapshot`; return the number of its run, or a refusal."""
        if job is None or job.run is not None:
            return Refused("tasks are not waiting")
        if self.state.mapping.view == "shared" and len(start.tasks) < len(job.pods):
            return Refused("the pods of a gang must start together", True)
        if (wait := job.not_before - time.monotonic_ns()) > 0:
            self.clock.request_pass(wait)
            return Refused("its last start failed; it is retried after a delay")
        if (left := interrupted_start(job, self.cache)) is not None:
            if (wait := self._release_delay(job, left)) > 0:
                self.clock.request_pass(wait)
                return Refused("its claims are reserved; another process may be about to bind its pods")
            self._release(left)
            return Refused("waiting for the devices of an earlier attempt to be released")
        job.release_after = 0
        placed = place(start, job, self.cache, self.state, failures)
        if isinstance(placed, Refused):
            return placed
        if placed.moved:  # the policy's node still has room that the policy counts as taken
            self.clock.request_pass(0)
        number = self._begin(job, placed, self.clock.now, snapshot)
        failures.known_pods.add((placed_pod.pod, self.cache.nodes[placed_pod.node]) for placed_pod in placed.pods)
        self.actions.start(number, placed.pods)
        return number

    def unplaceable(self, starts: Iterable[tuple[Start, PodJob]]) -> dict[int, str]:
        """Return row -> reason for starts that cannot fit until resources are released; nothing stays assumed."""
        reasons, held, failures, room = dict[int, str](), list[str](), PlacementFailures(), set[PodJob]()
        for start, job in starts:
            placed = place(start, job, self.cache, self.state, failures)
            if isinstance(placed, Placed):
                held += placed.held
                room.add(job)
            elif placed.lasting:
                reasons[job.row] = placed.why
        self.cache.undo_assumed(held)
        return reasons | matching_failures(self.pod_jobs.waiting() - room, self.cache, failures) if reasons else {}

    def stop(self, number: int, reason: str) -> str:
        """Evict the pods of a run; return why that is impossible, or ""."""
        active = self.active.get(number)
        if active is None:
            return "the run has ended"
        active.stopped = True
        self.actions.stop(self._pods(active.job), reason)
        return ""

    def report_unschedulable(self, pods: Iterable[str], why: str) -> None:
        """Report to the users of pods that can be scheduled why they wait."""
        for key in pods:
            if (pod := self.cache.pending_pod(key)) is not None:
                self.actions.report_unschedulable(pod, why)

    # Adoption and recovery

    def adopt(self, job: PodJob) -> None:
        """Create a run for a pod that already has a node."""
        pod = self.cache.pods[job.pods[0]]
        node = pod.spec.node_name
        uids = [self.cache.claims[key].metadata.uid for key in job.claims[0]]
        shares = [share for uid in uids for share in self.cache.usage.claims.get(uid, ())]
        rows = self.state.rows_of(0, node, job.demand.amounts, shares)
        began = timestamp_ns(pod.scheduled_at) - self.clock.epoch
        number = self._begin(
            job, Placed((PodStart(pod, node),), Placement.of(rows), ()), min(began, self.clock.now), self.snapshot()
        )
        self.active[number].is_bound = True

    def resume(self, job: PodJob) -> None:
        """Resume a start that another process began, or undo it."""
        interrupted = interrupted_start(job, self.cache)
        if interrupted is None:
            return
        placed = resume(interrupted, job, self.cache, self.state)
        if isinstance(placed, Refused):
            log_event("start_abandoned", job=job.name, why=placed.why)
            self._release(interrupted)
        else:
            self.actions.start(self._begin(job, placed, self.clock.now, self.snapshot()), placed.pods)

    def _release_delay(self, job: PodJob, interrupted: InterruptedStart) -> int:
        """Return the time (ns) for which another process may still complete a start of a waiting job."""
        if not any(uid for _, uid in interrupted.reserved):
            return 0
        now = time.monotonic_ns()
        job.release_after = job.release_after or now + RELEASE_DELAY
        return job.release_after - now

    def _release(self, interrupted: InterruptedStart) -> None:
        for claim, uid in interrupted.reserved:
            self.actions.release_claim(claim, uid)

    # Outcomes

    def on_bound(self, number: int) -> list[Event]:
        """Mark a run as bound."""
        active = self.active.get(number)
        if active is None:
            return []
        active.is_bound = True
        active.job.failures = 0
        node_of = dict(zip(active.job.pods, active.nodes, strict=True))
        for pod in self._pods(active.job):
            key = pod.metadata.key
            self.actions.report_event(pod, "Scheduled", f"Successfully assigned {key} to {node_of[key]}", warning=False)
        self.cache.changes.pods.update(active.job.pods)  # they may have terminated already
        return [Started(number, active.job.row)]

    def on_bind_failed(self, failed: BindFailed) -> list[Event]:
        """Undo a failed start: the job waits again, or is formed again from its remaining pods."""
        active = self._end(failed.run)
        job = active.job
        self.cache.undo_assumed(active.held)
        for device in failed.failed:
            self.state.avoided[device] = time.monotonic_ns() + LONGEST_RETRY
            self.cache.changes.devices.add(device)
        for volume in failed.volumes:
            self.state.avoided_volumes[volume] = time.monotonic_ns() + LONGEST_RETRY
        job.failures += 1
        avoidable = bool(failed.failed or failed.volumes) or failed.lost  # the next attempt avoids the cause
        after = RETRY if avoidable else min(LONGEST_RETRY, RETRY << min(job.failures, 6))
        job.not_before = time.monotonic_ns() + after
        self.clock.request_pass(after)
        pending = [pod.metadata.key for pod in self._pods(job) if self.cache.pending_pod(pod.metadata.key) is not None]
        self.report_unschedulable(pending, failed.reason)
        whole = not failed.bound and len(pending) == len(job.pods)
        if not whole:
            self.pod_jobs.end(job)
        self.cache.changes.pods.update(job.pods)  # they may have changed in between
        tasks = tuple(range(int(self.state.table.tasks[job.row])))
        return [Ended(failed.run, job.row, tasks, Outcome.REFUSED, whole, failed.reason)]

    def pop_released_pods(self, claims: Iterable[str]) -> set[str]:
        """Return the keys of terminated pods whose runs waited for the release of one of these claims."""
        return {pod for claim in claims for pod in self._awaiting_release.pop(claim, ())}

    def on_pod_terminated(self, key: str) -> list[Event]:
        """End the runs with a pod of this key if all their pods have terminated and their claims are not reserved for them.

        There are several such runs if the pod is the successor of one whose run has not ended.

        The resources of a run are released together, as policies expect. Otherwise, between the termination of a pod and the
        deallocation of its devices, another job could overtake one that needs both a node and devices.
        """
        return [event for number in sorted(self._runs_of.get(key, ())) for event in self._end_if_terminated(number, key)]

    def _end_if_terminated(self, number: int, key: str) -> list[Event]:
        active, job = self.active[number], self.active[number].job
        if not active.is_bound:  # the binder will report the outcome
            return []
        if not all(self._has_terminated(k, uid) for k, uid in zip(job.pods, job.uids, strict=True)):
            return []
        held = [claim for uid, keys in zip(job.uids, job.claims, strict=True) for claim in keys if self._reserved(claim, uid)]
        for claim in held:
            self._awaiting_release.setdefault(claim, set()).add(key)
        if held:
            return []
        outcome = Outcome.STOPPED if active.stopped else Outcome.FINISHED
        if any(node not in self.cache.nodes for node in active.nodes):
            outcome = Outcome.LOST
        self._end(number)
        self.pod_jobs.end(job)
        return [Ended(number, job.row, tuple(range(len(job.pods))), outcome)]

    def _pods(self, job: PodJob) -> list[Pod]:
        """Return the pods of a job that exist; a successor of the same name is not one of them."""
        pods = ((self.cache.pods.get(key), uid) for key, uid in zip(job.pods, job.uids, strict=True))
        return [pod for pod, uid in pods if pod is not None and pod.metadata.uid == uid]

    def _reserved(self, key: str, uid: str) -> bool:
        claim = self.cache.claims.get(key)
        return claim is not None and claim.is_reserved_for(uid)

    def _has_terminated(self, key: str, uid: str) -> bool:
        pod = self.cache.pods.get(key)
        return pod is None or pod.metadata.uid != uid or pod.terminated

    def _begin(self, job: PodJob, placed: Placed, began: int, snapshot: Snapshot) -> int:
        number = self._next
        self._next += 1
        tasks = tuple(range(int(self.state.table.tasks[job.row])))
        end = snapshot.expected_end(job.row, placed.placement) - snapshot.now + began
        self.state.add(Run(number, job.row, tasks, placed.placement, began, end))
        nodes = tuple(start.node for start in placed.pods)
        for key, uid, node in zip(job.pods, job.uids, nodes, strict=True):
            self._runs_of.setdefault(key, set()).add(number)
            self.state.run_pods[uid] = job
            self.state.run_pods_on.setdefault(node, {})[uid] = key
            if key in self.cache.pod_rules and self.cache.pod_rules[key].relates_to_pods:
                self.state.related[key] = node
        job.run = number
        job.held = {key: self.cache.amounts(self.cache.pods[key]) for key in job.pods}
        self.active[number] = ActiveRun(job, nodes, placed.held)
        return number

    def _end(self, number: int) -> ActiveRun:
        active = self.active.pop(number)
        run = self.state.remove(number)
        for key, uid, node in zip(active.job.pods, active.job.uids, active.nodes, strict=True):
            self._runs_of[key].discard(number)
            if not self._runs_of[key]:
                del self._runs_of[key]
            self.state.run_pods.pop(uid, None)
            if not self.state.has_run(key):
                self.state.related.pop(key, None)
            self.state.run_pods_on[node].pop(uid, None)
            if not self.state.run_pods_on[node]:
                del self.state.run_pods_on[node]
        active.job.run = None
        self.freed_at = self.clock.now
        for owner in run.placement.owners():
            if (device := self.state.mapping.devices.get(owner)) is not None:
                self.cache.changes.devices.add(device)
        self.cache.changes.nodes.update(active.nodes)
        return active
