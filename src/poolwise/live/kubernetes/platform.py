"""Kubernetes platform: pod events become job events; commits are assumed in the cache and written in the background."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from poolwise.errors import InputError, PoolwiseError
from poolwise.interfaces import Scheduler
from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.feasibility import Feasibility
from poolwise.live.kubernetes.losses import LossMonitor
from poolwise.live.kubernetes.machine import ClusterLayout, is_usable
from poolwise.live.kubernetes.metrics import KubernetesMetrics
from poolwise.live.kubernetes.objects.device import DeviceId
from poolwise.live.kubernetes.placement import matching_failures
from poolwise.live.kubernetes.placement_results import PlacementFailures, Refused
from poolwise.live.kubernetes.pod_jobs import JobChanges, PodJob, PodJobs, timestamp_ns
from poolwise.live.kubernetes.pod_runs import LONGEST_RETRY, PodRuns
from poolwise.live.kubernetes.reconciler import Reconciler
from poolwise.live.kubernetes.starts import BindFailed, Bound
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.kubernetes.taint_reports import TaintReporter
from poolwise.live.kubernetes.watch_client import ClusterEvent, Stopped, WatchClient
from poolwise.live.logs import log_event
from poolwise.live.platform import without_starts
from poolwise.live.wait_reasons import INTERVAL
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Continuation,
    Decision,
    Decisions,
    Event,
    EventBatch,
    JobTable,
    JobWithdrawn,
    Reject,
    Resize,
    Snapshot,
    Start,
    Stop,
    Wait,
    Wakeup,
)
from poolwise.quantities import SECOND

GATHER = 0.002  # seconds for which cluster events are collected before a pass
REBUILD_PAUSE = 3.0
"""Pause before the next rebuild of the machine, as a multiple of the duration of the last one.

Nodes become ready one by one, and each changes the machine; with the pause, rebuilding takes at most a quarter of the time.
"""


class KubernetesPlatform:
    """A Kubernetes cluster, read through an open watch client: the pods whose scheduler name is `name`, or one of `profiles`.

    The scheduler determines the view of the cluster (`ClusterState`). Jobs that no node could run are reported and withheld
    from the queue. A gang of which only some pods have nodes for longer than `gang_limit` (s) is evicted.
    """

    withholds_infeasible: ClassVar[bool] = True

    def __init__(
        self,
        watch_client: WatchClient,
        name: str,
        scheduler: Scheduler,
        actions: Actions,
        layout: ClusterLayout | None = None,
        *,
        continued: Continuation | None = None,
        gang_limit: float = 60.0,
        metrics: KubernetesMetrics | None = None,
        profiles: Iterable[str] = (),
    ) -> None:
        self.watch_client, self.actions = watch_client, actions
        self.continued = continued if continued is not None else Continuation()
        self.cache = ClusterCache(name, *profiles)
        self._sync()
        self.clock = LiveClock(self.continued.epoch or self._earliest_creation())
        self.pod_jobs = PodJobs(self.cache, self.clock)
        self.state = ClusterState(self.cache, scheduler, layout if layout is not None else ClusterLayout(), self.clock.epoch)
        self.runs = PodRuns(self.cache, self.pod_jobs, self.state, actions, self.clock)
        self._feasibility = Feasibility(self.cache, self.state)
        self._next_draw = self.continued.next_draw
        self._stopped: Stopped | None = None
        self._stop_requested = self._refused = False
        self._pending: list[Event] = []
        self._rebuild_after = 0.0  # monotonic time
        self._report_until = 0
        self._by_row: dict[int, PodJob] = {}
        self._waits: dict[int, Wait] = {}  # row -> reason in the last commit
        self._placement_failures = PlacementFailures()  # since the last cluster events
        self._metrics = metrics = metrics if metrics is not None else KubernetesMetrics()
        self._reconciler = Reconciler(self.runs, gang_limit, metrics)
        self._taint_reporter = TaintReporter(self.cache, actions, metrics)
        self._loss_monitor = LossMonitor(self.runs)
        self.clock.tick()
        self._pending += self._apply_received([])

    # Platform

    @property
    def table(self) -> JobTable:
        """The jobs that have arrived."""
        return self.state.table

    @table.setter
    def table(self, table: JobTable) -> None:
        self.state.table = table

    def events(self) -> Iterator[EventBatch]:
        """Yield batches of events until the run stops; the first one reports all waiting jobs."""
        self.clock.tick()
        if not self.has_nodes:
            log_event("no_usable_nodes", waiting=len(self.pod_jobs.waiting()))
            for received in self._receive():
                self._pending += self._apply_received(received)
                if self.has_nodes:
                    break
            else:
                return
        waiting = (job for job in self._in_order() if job.run is None and job not in self._feasibility.infeasible)
        first = [Arrival(job.row) for job in waiting]
        pending, self._pending = self._pending, []
        yield EventBatch(self.clock.now, (*(e for e in pending if not isinstance(e, Arrival)), *first))
        for received in self._receive():
            if (batch := self.batch(received)) is not None:
                self._request_report_passes(batch)
                yield batch

    @property
    def has_nodes(self) -> bool:
        """True if there is a node that jobs can run on."""
        return bool(self.state.mapping.nodes)

    def batch(self, received: Sequence[ClusterEvent]) -> EventBatch | None:
        """Apply cluster events and return the events for the loop; None if there are none, or no nodes."""
        self.clock.tick()
        if not self._pending and self.table.crowded(len(self.pod_jobs.by_pod)):  # the loop has handled all earlier events
            self._by_row = {job.row: job for job in self._in_order()}
            self.table = self.table.recycled(self._by_row)  # gives rows of jobs that are gone to later jobs
        self._pending += self._apply_received(received)
        if not self._pending or not self.has_nodes:
            return None
        pending, self._pending = self._pending, []
        return EventBatch(self.clock.now, tuple(pending))

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        return self.runs.snapshot()

    def commit(self, decisions: Decisions) -> CommitResult:
        """Assume the decisions and write them in the background. A `Wait` counts as committed if its reason is new."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        started: list[tuple[Start, int]] = []
        before, aside = self.runs.snapshot(), dict[int, str]()
        for decision in self._without_known_waits(decisions):
            match decision:
                case Start(job):
                    run = self.runs.start(decision, self._by_row.get(job), before, self._placement_failures)
                    if isinstance(run, Refused):
                        rejected.append((decision, run.why))
                        if run.lasting:
                            aside[job] = run.why
                        continue
                    started.append((decision, run))
                case Stop(number, _, reason):
                    if refused := self.runs.stop(number, reason):
                        rejected.append((decision, refused))
                        continue
                case Resize():
                    rejected.append((decision, "resizing a running pod is not supported"))
                    continue
                case Reject(row, reason):
                    self.pod_jobs.messages.record(self._by_row[row].pods, reason)
                    self.pod_jobs.end(self._by_row[row])
            committed.append(decision)
        self.clock.next_wakeup = decisions.next_wakeup
        if rejected:  # by a check that the policy does not model, such as unknown devices
            self._refused = True
            self.clock.request_pass(LONGEST_RETRY)
        if aside:
            queued = self.pod_jobs.waiting() - self._feasibility.infeasible.keys()
            aside |= matching_failures(queued, self.cache, self._placement_failures)
        return CommitResult(tuple(committed), tuple(rejected), tuple(started), aside)

    def _without_known_waits(self, decisions: Decisions) -> list[Decision]:
        """Return the decisions without the waits that repeat those of the last pass, of which there may be thousands."""
        waits_before, waits, others = self._waits, dict[int, Wait](), list[Decision]()
        for decision in decisions:
            if isinstance(decision, Wait):
                waits[decision.job] = decision
                before = waits_before.get(decision.job)
                if before is decision or before == decision:
                    continue
            others.append(decision)
        self._waits = waits
        return others

    def unplaceable(self, starts: Iterable[Start]) -> dict[int, str]:
        """Return row -> reason for the jobs that a commit of these starts would set aside."""
        decided = ((start, self._by_row[start.job]) for start in starts if start.job in self._by_row)
        return self.runs.unplaceable((start, job) for start, job in decided if any(job.claims) or self.cache.pod_rules)

    # LivePlatform

    def stop(self) -> None:
        """End `events`."""
        self._stop_requested = True
        self.watch_client.events.put(Stopped())

    def class_of(self, job: int) -> str:
        """Return the priority class of a job, "none" without one."""
        return self._by_row[job].class_name if job in self._by_row else "none"

    def report_wait(self, job: int, why: str) -> None:
        """Set the condition of all pods of a job, and emit events."""
        if (pending := self._by_row.get(job)) is not None:
            self.runs.report_unschedulable(pending.pods, why + self._preemption_note(pending) if why else why)

    def _preemption_note(self, job: PodJob) -> str:
        """Return a note for a job that would preempt others under kube-scheduler, else ""."""
        pods = [self.cache.pods[key] for key in job.pods if key in self.cache.pods]
        preempts = any(pod.spec.preemption_policy != "Never" for pod in pods)
        lower = any(active.job.priority < job.priority for active in self.runs.active.values())
        return "; pods with a lower priority are not preempted" if preempts and lower else ""

    # Events

    def resume_start(self, job: PodJob) -> None:
        """Resume the interrupted start of a waiting job, if another process began one."""
        self.runs.resume(job)

    def _sync(self) -> None:
        """Read events until the initial list of every kind is complete."""
        while self.cache.unsynced:
            received = self.watch_client.events.get()
            if isinstance(received, Stopped):
                raise PoolwiseError(received.reason or "stopped before the cluster was seen")
            if not isinstance(received, Bound | BindFailed):
                self.cache.apply_event(received)

    def _earliest_creation(self) -> int:
        """Return the earliest creation time in the cluster (ns since 1970), so that no time is negative."""
        created = (
            timestamp_ns(pod.metadata.creation_timestamp) for pod in self.cache.pods.values() if self.cache.is_managed(pod)
        )
        return min((time.time_ns(), *created))

    def _request_report_passes(self, batch: EventBatch) -> None:
        """Request passes for a while after an event: wait reasons are reported during passes, at intervals."""
        now = self.clock.now
        if any(not isinstance(event, Wakeup) for event in batch.events):
            self._report_until = now + int(1.1 * INTERVAL * SECOND)
        if any(isinstance(event, Arrival) for event in batch.events):
            self.clock.request_pass(int(0.11 * INTERVAL * SECOND))
        elif now < self._report_until:
            self.clock.request_pass(self._report_until - now)

    def _receive(self) -> Iterator[list[ClusterEvent]]:
        """Yield received events until the run stops; raise PoolwiseError if it stops for a reason."""
        while not self._stop_requested:
            if self._stopped is not None:
                if self._stopped.reason:
                    raise PoolwiseError(self._stopped.reason)
                return
            yield self._gather()

    def _gather(self) -> list[ClusterEvent]:
        """Wait for events or for the time of the next pass, then return all available events."""
        self.clock.tick()
        received: list[ClusterEvent] = []
        try:
            received.append(self.watch_client.events.get(timeout=self.clock.seconds_left))
            until = max(time.monotonic() + GATHER, self._rebuild_after)
            while (left := until - time.monotonic()) > 0:
                received.append(self.watch_client.events.get(timeout=left))
        except queue.Empty:
            pass
        return received

    def _apply_received(self, received: Sequence[ClusterEvent]) -> list[Event]:
        """Apply cluster events and return the events for the loop."""
        due = self.clock.pop_due()  # before later steps request another pass
        self._placement_failures = PlacementFailures()
        events: list[Event] = []
        for event in received:
            match event:
                case Bound(run):
                    events += self.runs.on_bound(run)
                case BindFailed():
                    events += self.runs.on_bind_failed(event)
                case Stopped():
                    self._stopped = event
                case _:
                    self.cache.apply_event(event)
        changes = self.cache.pop_changes()
        job_changes = [self.pod_jobs.update_pods(changes.pods), self.pod_jobs.update_claims(changes.claims)]
        if changes.machine or changes.volumes:
            job_changes.append(self.pod_jobs.retry_unscheduled())
        for key in sorted(changes.pods | self.runs.pop_released_pods(changes.claims)):
            events += self.runs.on_pod_terminated(key)
        candidates = self.cache.pods if changes.machine else changes.pods  # a new node may already have pods
        events += self._apply_job_changes(job_changes, self._adopt_bound_pods(candidates), changes.machine)
        if changes.machine or changes.taints:
            events += self._release_feasible()
        self._reconciler.reconcile(changes.devices)
        if changes.devices or changes.machine:
            self._taint_reporter.report()
        if changes.machine or self._loss_monitor.is_waiting or changes.devices & self.cache.inventory.evicting:
            self._loss_monitor.undo_lost_starts()
        events += self._refresh_capacity(changes.nodes | self.cache.changes.nodes, changes.devices | self.cache.changes.devices)
        if changes.links:
            self.state.refresh_links()
        freed = self._refused and bool(
            changes.devices or changes.nodes or changes.claims or changes.namespaces or changes.volumes
        )
        if due or changes.links or freed:
            self._refused = False
            events.append(Wakeup())
        for claim in self.pod_jobs.pop_missing_claims():
            self.actions.create_claim(claim)
        for key, why in self.pod_jobs.messages.pop_due().items():
            self.runs.report_unschedulable([key], why)
        return events

    def _adopt_bound_pods(self, pods: Iterable[str]) -> list[PodJob]:
        """Return jobs for managed pods that have a node but no known run."""
        pod_jobs = []
        for key in sorted(pods):
            pod = self.cache.pods.get(key)
            node = self.cache.nodes.get(pod.spec.node_name) if pod is not None else None
            if pod is None or node is None or not is_usable(node):
                continue
            if not self.cache.is_managed(pod) or pod.terminated or self.state.has_run(key):
                continue
            try:
                pod_jobs.append(self.pod_jobs.adopt(pod))
            except InputError as problem:  # the pod still counts toward its node; nothing more is known about it
                log_event("pod_not_adopted", pod=key, error=problem.message)
        return pod_jobs

    def _apply_job_changes(self, job_changes: list[JobChanges], adopted: list[PodJob], machine_changed: bool) -> list[Event]:
        """Add and remove jobs; if the machine changes, rebuild the state."""
        arrived = [job for part in job_changes for job in part.arrived if self.pod_jobs.by_pod.get(job.pods[0]) is job]
        altered = [now for part in job_changes for _, now in part.altered if self.pod_jobs.by_pod.get(now.pods[0]) is now]
        withdrawn = [job for part in job_changes for job in (*part.withdrawn, *(before for before, _ in part.altered))]
        events: list[Event] = [JobWithdrawn(job.row) for job in withdrawn if job.row >= 0]
        for job in (*arrived, *adopted):
            drawn = self.continued.draw(job.name)
            job.submitted = min(job.submitted, self.clock.epoch + self.clock.now)  # the server's clock may be ahead
            job.draw = self._next_draw if drawn is None else drawn
            self._next_draw += drawn is None
        new = sorted((*arrived, *adopted, *altered), key=lambda job: (job.submitted, job.name))
        if machine_changed or (new and not self.state.add_jobs(new)):
            begun = time.monotonic()
            self.state.rebuild_machine(self._in_order())
            self._rebuild_after = time.monotonic() + REBUILD_PAUSE * (time.monotonic() - begun)
            self.runs.freed_at = self.clock.now
            events.append(Wakeup())
        self._by_row.update((job.row, job) for job in new)
        for job in adopted:
            self.runs.adopt(job)
        for job in arrived:
            self.resume_start(job)
        self._feasibility.forget(withdrawn)
        return events + [Arrival(job.row) for job in new if job.run is None and not self._withhold(job)]

    def _withhold(self, job: PodJob) -> bool:
        """Return whether a job is withheld from the queue because no node could run it, and report why."""
        why = self._feasibility.withhold(job) if self.withholds_infeasible else ""
        if why:
            self.pod_jobs.messages.record(job.pods, why, settling=True)  # nodes and devices may be about to appear
        self._metrics.infeasible_jobs.set(len(self._feasibility.infeasible))
        return bool(why)

    def _release_feasible(self) -> list[Event]:
        """Return the arrivals of jobs that have become feasible, and report the new reasons of the others."""
        released = self._feasibility.reset()
        for job, why in self._feasibility.infeasible.items():
            self.pod_jobs.messages.record(job.pods, why, settling=True)
        for job in released:
            for key in job.pods:
                self.pod_jobs.messages.forget(key)
        self._metrics.infeasible_jobs.set(len(self._feasibility.infeasible))
        return [Arrival(job.row) for job in sorted(released, key=lambda job: (job.submitted, job.name))]

    def _in_order(self) -> list[PodJob]:
        return sorted(
            self.pod_jobs.jobs() | {a.job for a in self.runs.active.values()}, key=lambda job: (job.submitted, job.name)
        )

    def _refresh_capacity(self, nodes: set[str], devices: set[DeviceId]) -> list[Event]:
        owner = self.state.mapping.node_owner
        changed = [owner[node] for node in sorted(nodes) if self.state.refresh_node(node)]
        for device in sorted(devices):
            changed += self.state.refresh_device(device)
        if changed:
            self.runs.freed_at = self.clock.now
        return [CapacityChanged(number, 0, 0) for number in dict.fromkeys(changed)]


class ShadowKubernetes(KubernetesPlatform):
    """A cluster that another scheduler manages. Starts and stops are refused, and appear in the record only.

    The queue contains all waiting jobs.
    """

    withholds_infeasible = False

    def commit(self, decisions: Decisions) -> CommitResult:
        """Refuse starts and stops; rejected jobs leave the queue."""
        rest, refused = without_starts(decisions)
        committed = super().commit(Decisions(rest, decisions.next_wakeup)).committed
        return CommitResult(committed, refused, (), self.unplaceable(decisions.starts))

    def resume_start(self, job: PodJob) -> None:
        """Do nothing: the other scheduler completes its own starts."""
