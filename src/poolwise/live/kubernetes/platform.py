"""A Kubernetes cluster as a platform: pods arrive, start and end; what is committed is assumed at once and written behind."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from dataclasses import dataclass

from poolwise.errors import InputError, PoolwiseError
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.live.kubernetes.bind import Bound, NotBound
from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.link import ClusterLink, Stopped, Told
from poolwise.live.kubernetes.mirror import Mirror
from poolwise.live.kubernetes.place import Placed, place, resume, undo
from poolwise.live.kubernetes.recovery import GangWatch, GivenBack, Resumed, begun, doubles
from poolwise.live.kubernetes.shape import ClusterLayout
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.kubernetes.units import PodJob, PodUnits, Settled, instant
from poolwise.live.kubernetes.writes import Writes
from poolwise.live.logs import say
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Continuation,
    Decision,
    Ended,
    Event,
    EventBatch,
    JobTable,
    Outcome,
    Placement,
    Plan,
    Reject,
    Renumbered,
    Resize,
    Run,
    Snapshot,
    Start,
    Started,
    Stop,
    Wait,
    Wake,
    Withdrawn,
)
from poolwise.performance.ideal import Ideal
from poolwise.units import SECOND

GATHER = 0.002
"""Seconds for which news is gathered before it is told."""
RETRY, LONGEST_RETRY = SECOND, 60 * SECOND
"""Ns after which a start that failed is tried again, doubled each time up to the longest."""
SPARE_ROWS = 2000
"""So many rows of jobs that are over the table may have before it is made anew."""


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


class KubernetesPlatform:
    """A cluster that is there.

    Parameters
    ----------
    link
        The connection, open.
    name
        Pods with this scheduler name are ours.
    scheduler
        For which the cluster is seen (`ClusterState`).
    estimate
        What is believed of how long runs take.
    writes
        What decisions write; a shadow writes nothing.
    gang_limit
        Seconds for which only a part of a gang may have nodes.
    """

    def __init__(
        self,
        link: ClusterLink,
        name: str,
        scheduler: Scheduler,
        writes: Writes,
        layout: ClusterLayout | None = None,
        *,
        estimate: PerformanceModel | None = None,
        continued: Continuation | None = None,
        gang_limit: float = 60.0,
    ) -> None:
        self.link, self.writes = link, writes
        self.estimate = estimate if estimate is not None else Ideal()
        self.continued = continued if continued is not None else Continuation()
        self.mirror = Mirror(name)
        self.units = PodUnits(self.mirror)
        epoch = self.continued.epoch or time.time_ns()
        self.state = ClusterState(self.mirror, scheduler, layout if layout is not None else ClusterLayout(), epoch)
        self.active: dict[int, Active] = {}
        self.now = 0
        self._next_run = 0
        self._next_draw = self.continued.next_draw
        self._freed_at = -1
        self._wake_at: int | None = None
        self._retry_at: int | None = None
        self._stopped: Stopped | None = None
        self._stop_asked = False
        self._ended_rows = 0
        self._pending: list[Event] = []
        self._by_row: dict[int, PodJob] = {}
        self.gangs = GangWatch(gang_limit)
        self._sync()

    # Platform

    @property
    def table(self) -> JobTable:
        """The jobs that have arrived."""
        return self.state.table

    @table.setter
    def table(self, table: JobTable) -> None:
        raise AttributeError("the table follows the cluster")

    def events(self) -> Iterator[EventBatch]:
        """Yield what happens until the run is stopped; the first batch tells all that waits."""
        self._tick()
        first = [Arrival(job.row) for job in self._in_order() if job.run is None]
        pending, self._pending = self._pending, []
        yield EventBatch(self.now, (*(e for e in pending if not isinstance(e, Arrival | Renumbered)), *first))
        while not self._stop_asked:
            told = self._gather()
            if self._stopped is not None:
                if self._stopped.reason:
                    raise PoolwiseError(self._stopped.reason)
                return
            events = self._absorb(told)
            if events and self.state.shape.nodes:
                yield EventBatch(self.now, tuple(events))
            elif events:
                self._pending += events

    def snapshot(self) -> Snapshot:
        """Show the state now."""
        state = self.state
        return Snapshot(
            self.now,
            state.shape.machine,
            state.table,
            state.capacity.copy(),
            state.free,
            state.runs,
            self.estimate,
            self._done,
            may_grow=True,
            freed_at=self._freed_at,
        )

    def commit(self, plan: Plan) -> CommitResult:
        """Assume what is decided, and have it written."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        started: list[tuple[Start, int]] = []
        for decision in plan.decisions:
            match decision:
                case Start():
                    found = self._start(decision)
                    if isinstance(found, str):
                        rejected.append((decision, found))
                        continue
                    started.append((decision, found))
                case Stop(number, _, reason):
                    if number not in self.active:
                        rejected.append((decision, "the run is over"))
                        continue
                    self.writes.stop(
                        [self.mirror.pods[k] for k in self.active[number].job.pods if k in self.mirror.pods], reason
                    )
                case Resize():
                    rejected.append((decision, "what a running pod holds is not changed"))
                    continue
                case Reject(job, reason):
                    self._reject(job, reason)
                case Wait():
                    pass
            committed.append(decision)
        self._wake_at = plan.wake_at
        if rejected:
            self._retry_at = min(self._retry_at or 2**63, self.now + RETRY)
        return CommitResult(tuple(committed), tuple(rejected), tuple(started))

    # LivePlatform

    def stop(self) -> None:
        """End `events`."""
        self._stop_asked = True
        self.link.told.put(Stopped())

    def class_of(self, job: int) -> str:
        """Priority class."""
        return self._by_row[job].class_name if job in self._by_row else "none"

    def tell(self, job: int, why: str) -> None:
        """Write a condition to all pods of a job, and an event."""
        found = self._by_row.get(job)
        for key in found.pods if found is not None else ():
            if (pod := self.mirror.waits(key)) is not None:
                self.writes.say(pod, why)

    # Events

    def _sync(self) -> None:
        """Take in everything that is there."""
        while self.mirror.unsynced:
            told = self.link.told.get()
            if isinstance(told, Stopped):
                raise PoolwiseError(told.reason or "stopped before the cluster was seen")
            if not isinstance(told, Bound | NotBound):
                self.mirror.apply(told)
        self._pending += self._absorb([])

    def _gather(self) -> list[Told]:
        """Wait for news, or for the time at which a pass is due, and take all that is there."""
        due = min((at for at in (self._wake_at, self._retry_at) if at is not None), default=None)
        self._tick()
        told: list[Told] = []
        try:
            wait = None if due is None else max(0.0, (due - self.now) / SECOND)
            told.append(self.link.told.get(timeout=wait))
            until = time.monotonic() + GATHER
            while (left := until - time.monotonic()) > 0:
                told.append(self.link.told.get(timeout=left))
        except queue.Empty:
            pass
        self._tick()
        return told

    def _tick(self) -> None:
        self.now = max(self.now, time.time_ns() - self.state.epoch)

    def _absorb(self, told: list[Told]) -> list[Event]:
        """Apply news; returns the events that the loop must be told, those of old rows first."""
        events: list[Event] = []
        for what in told:
            match what:
                case Bound(run):
                    events += self._bound(run)
                case NotBound():
                    events += self._not_bound(what)
                case Stopped():
                    self._stopped = what
                case _:
                    self.mirror.apply(what)
        news = self.mirror.take_news()
        settled = [self.units.settle(news.pods), self.units.settle_claims(news.claims)]
        if news.shape:
            settled.append(self.units.settle_noted())
        for key in sorted(news.pods):
            events += self._pod_over(key)
        events += self._settle(settled, self._adopted(news.pods), news.shape)
        self._recover(news.devices)
        events += self._look(news.nodes | self.mirror.news.nodes, news.devices | self.mirror.news.devices)
        for at in (self._wake_at, self._retry_at):
            if at is not None and at <= self.now:
                events.append(Wake())
        self._wake_at = None if self._wake_at is not None and self._wake_at <= self.now else self._wake_at
        self._retry_at = None if self._retry_at is not None and self._retry_at <= self.now else self._retry_at
        self.writes.note(self.mirror, self.units.notes)
        return events

    def _adopted(self, pods: set[str]) -> list[PodJob]:
        """Jobs of pods of ours that have a node, and were not put there by a run that is known."""
        found = []
        for key in sorted(pods):
            pod = self.mirror.pods.get(key)
            if pod is None or not self.mirror.ours(pod) or not pod.spec.node_name or pod.over or key in self.state.ours:
                continue
            try:
                found.append(self.units.adopt(pod))
            except InputError as problem:  # it takes what its node counts; nothing more is known of it
                say("not counted as a run", pod=key, error=problem.message)
        return found

    def _settle(self, settled: list[Settled], adopted: list[PodJob], shape: bool) -> list[Event]:
        """Add and remove jobs; where the machine changes, everything is built anew and jobs are renumbered."""
        arrived = [job for part in settled for job in part.arrived if self.units.of_pod.get(job.pods[0]) is job]
        withdrawn = [job for part in settled for job in part.withdrawn]
        events: list[Event] = [Withdrawn(job.row) for job in withdrawn if job.row >= 0]
        self._ended_rows += len(withdrawn)
        new = sorted((*arrived, *adopted), key=lambda job: (job.submitted, job.name))
        for job in new:
            known = self.continued.draw(job.name)
            job.draw = self._next_draw if known is None else known
            self._next_draw += known is None
        crowded = self._ended_rows >= SPARE_ROWS + len(self.units.of_pod)
        if shape or crowded or (new and not self.state.add_jobs(new)):
            rows = self.state.reshape(self._in_order())
            self._by_row = {job.row: job for job in self._in_order()}
            self._ended_rows, self._freed_at = 0, self.now
            events += [Renumbered(rows), Wake()]
        self._by_row.update((job.row, job) for job in new)
        for job in adopted:
            self._adopt(job)
        for job in arrived:
            self._resume(job)
        return events + [Arrival(job.row) for job in new if job.run is None]

    def _adopt(self, job: PodJob) -> None:
        """Count a pod that has a node as a run."""
        pod = self.mirror.pods[job.pods[0]]
        node = pod.spec.node_name
        if node not in self.state.shape.node_owner:
            return  # it is looked at again when its node is there
        uids = [self.mirror.claims[key].metadata.uid for key in job.claims[0]]
        parts = [part for uid in uids for part in self.mirror.usage.claims.get(uid, ())]
        rows = self.state.rows_of(0, node, job.demand.amounts, parts)
        began = instant(pod.status.start_time or pod.metadata.creation_timestamp) - self.state.epoch
        number = self._begin(job, Placed((), (node,), Placement.of(rows), ()), min(began, self.now))
        self.active[number].real = True

    def _resume(self, job: PodJob) -> None:
        """Go on with a start that another process has begun, or undo it."""
        found = begun(job, self.mirror)
        if isinstance(found, Resumed):
            placed = resume(found, job, self.mirror, self.state)
            if isinstance(placed, Placed):
                number = self._begin(job, placed, self.now)
                self.writes.start(number, placed.pods)
                return
        if found is not None:
            self._give_back(found)

    def _give_back(self, found: Resumed | GivenBack) -> None:
        """Take back the reservations of a start that is not gone on with."""
        if isinstance(found, Resumed):
            found = GivenBack(tuple((w.claim, p.pod.metadata.uid) for p in found.pods for w in p.claims))
        for claim, uid in found.claims:
            self.writes.give_back(claim, uid)

    def _recover(self, devices: set[DeviceId]) -> None:
        """Look after gangs in part, devices in two claims, and devices that were left alone for long enough."""
        late, again = self.gangs.late(self.units)
        if late:
            self.writes.stop([self.mirror.pods[key] for key in late], "its gang could not be completed in time")
        if again is not None:
            self._retry_at = min(self._retry_at or 2**63, self.now + max(int(again * SECOND), SECOND // 10))
        busy = {key for active in self.active.values() if not active.real for key in active.job.pods}
        given_back, evicted = doubles(devices, self.mirror, busy)
        for claim, uid in given_back:
            self.writes.give_back(claim, uid)
        self.writes.stop(evicted, "a device is in two claims")
        clock = time.monotonic_ns()
        for device in [device for device, until in self.state.avoided.items() if until <= clock]:
            del self.state.avoided[device]
            self.mirror.news.devices.add(device)
        if self.state.avoided:
            left = min(self.state.avoided.values()) - clock
            self._retry_at = min(self._retry_at or 2**63, self.now + left)

    def _in_order(self) -> list[PodJob]:
        return sorted(self.units.jobs() | {a.job for a in self.active.values()}, key=lambda job: (job.submitted, job.name))

    def _look(self, nodes: set[str], devices: set[DeviceId]) -> list[Event]:
        """Count anew what others take; returns what has changed."""
        owner = self.state.shape.node_owner
        events: list[Event] = [CapacityChanged(owner[node], 0, 0) for node in sorted(nodes) if self.state.look_at(node)]
        for device in devices:
            self.state.look_at_device(device)
        if events or devices:
            self._freed_at = self.now
        return events

    def _pod_over(self, key: str) -> list[Event]:
        """End the run of a pod, where it was the last."""
        job = self.state.ours.get(key)
        if job is None or job.run is None or not all(self._over(k, uid) for k, uid in zip(job.pods, job.uids, strict=True)):
            return []
        if not self.active[job.run].real:
            return []  # the binder will say
        number, active = job.run, self.active[job.run]
        outcome = Outcome.STOPPED if active.stopped else Outcome.FINISHED
        if any(node not in self.mirror.nodes for node in active.nodes):
            outcome = Outcome.LOST
        self._end(number)
        self.units.end(job)
        self._ended_rows += 1
        return [Ended(number, job.row, tuple(range(len(job.pods))), outcome)]

    def _over(self, key: str, uid: str) -> bool:
        pod = self.mirror.pods.get(key)
        return pod is None or pod.metadata.uid != uid or pod.over

    # Runs

    def _start(self, start: Start) -> int | str:
        """Assume a start; returns the number of its run, or why it cannot be."""
        job = self._by_row.get(start.job)
        if job is None or job.run is not None:
            return "tasks are not waiting"
        if self.state.shape.view == "shared" and len(start.tasks) < len(job.pods):
            return "the pods of a group start together"
        if (wait := job.not_before - time.monotonic_ns()) > 0:
            return f"tried again in {wait / SECOND:.1f} s"
        if (left := begun(job, self.mirror)) is not None:
            self._give_back(left)
            return "devices of an earlier attempt are given back first"
        placed = place(start, job, self.mirror, self.state)
        if isinstance(placed, str):
            return placed
        number = self._begin(job, placed, self.now)
        self.writes.start(number, placed.pods)
        return number

    def _stop(self, active: Active, reason: str) -> None:
        """Have the pods of a run evicted, once."""
        if not active.stopped:
            active.stopped = True
            self.writes.stop([self.mirror.pods[key] for key in active.job.pods if key in self.mirror.pods], reason)

    def _begin(self, job: PodJob, placed: Placed, began: int) -> int:
        number = self._next_run
        self._next_run += 1
        tasks = tuple(range(int(self.table.tasks[job.row])))
        end = self.snapshot().expected_end(job.row, placed.placement) - self.now + began
        self.state.add(Run(number, job.row, tasks, placed.placement, began, end))
        for key, node in zip(job.pods, placed.nodes, strict=True):
            self.state.ours[key] = job
            self.state.busy.setdefault(node, {})[key] = job
        job.run = number
        self.active[number] = Active(job, placed.nodes, placed.held)
        return number

    def _end(self, number: int) -> Active:
        active = self.active.pop(number)
        run = self.state.remove(number)
        for key, node in zip(active.job.pods, active.nodes, strict=True):
            self.state.ours.pop(key, None)
            self.state.busy[node].pop(key, None)
            if not self.state.busy[node]:
                del self.state.busy[node]
        active.job.run = None
        self._freed_at = self.now
        for owner in run.placement.owners():
            if (device := self.state.shape.devices.get(owner)) is not None:
                self.mirror.news.devices.add(device)
        self.mirror.news.nodes.update(active.nodes)
        return active

    def _bound(self, number: int) -> list[Event]:
        active = self.active.get(number)
        if active is None:
            return []
        active.real = True
        active.job.failures = 0
        self.mirror.news.pods.update(active.job.pods)  # they may be over already
        return [Started(number, active.job.row)]

    def _not_bound(self, failed: NotBound) -> list[Event]:
        """Undo a start: its job waits again, or is made anew of what is left of it."""
        active = self._end(failed.run)
        job = active.job
        undo(active.held, self.mirror)
        for device in failed.failed:
            self.state.avoided[device] = time.monotonic_ns() + LONGEST_RETRY
            self.mirror.news.devices.add(device)
        job.failures += 1
        job.not_before = time.monotonic_ns() + min(LONGEST_RETRY, RETRY << min(job.failures, 6))
        retry = self.now + min(LONGEST_RETRY, RETRY << min(job.failures, 6))
        self._retry_at = min(self._retry_at or 2**63, retry)
        for key in job.pods:
            if (pod := self.mirror.waits(key)) is not None:
                self.writes.say(pod, failed.reason)
        whole = not failed.bound and all(self.mirror.waits(key) is not None for key in job.pods)
        if not whole:
            self.units.end(job)
            self.mirror.news.pods.update(job.pods)
            self._ended_rows += 1
        tasks = tuple(range(int(self.table.tasks[job.row])))
        return [Ended(failed.run, job.row, tasks, Outcome.REFUSED, whole, failed.reason)]

    def _reject(self, row: int, reason: str) -> None:
        job = self._by_row[row]
        for key in job.pods:
            self.units.notes[key] = reason
        self.units.end(job)

    def _done(self, number: int, now: int) -> float:
        """Reference ns of work that is believed done."""
        return float(now - self.state.runs[number].start)
