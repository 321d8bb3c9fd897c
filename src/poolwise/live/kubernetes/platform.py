"""A Kubernetes cluster as a platform: pods arrive, start and end; what is committed is assumed at once and written behind."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterable, Iterator, Sequence

from poolwise.errors import InputError, PoolwiseError
from poolwise.interfaces import PerformanceModel, Scheduler
from poolwise.live.kubernetes.actions import Actions
from poolwise.live.kubernetes.cache import ClusterCache
from poolwise.live.kubernetes.clock import LiveClock
from poolwise.live.kubernetes.devices import DeviceId
from poolwise.live.kubernetes.machine import ClusterLayout, usable
from poolwise.live.kubernetes.placement import PlacementFailures, Refused, alike
from poolwise.live.kubernetes.pod_jobs import PodJob, PodJobs, Settled, instant
from poolwise.live.kubernetes.pod_runs import LONGEST_RETRY, PodRuns
from poolwise.live.kubernetes.reconciler import Reconciler
from poolwise.live.kubernetes.renumbering import renumbered_once
from poolwise.live.kubernetes.starts import Bound, NotBound
from poolwise.live.kubernetes.state import ClusterState
from poolwise.live.kubernetes.watch_client import ClusterEvents, Stopped, Told
from poolwise.live.logs import say
from poolwise.live.wait_reasons import INTERVAL
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Continuation,
    Decision,
    Event,
    EventBatch,
    JobTable,
    Plan,
    Reject,
    Renumbered,
    Resize,
    Snapshot,
    Start,
    Stop,
    Wait,
    Wake,
    Withdrawn,
)
from poolwise.performance.ideal import Ideal
from poolwise.units import SECOND

GATHER = 0.002
"""Seconds for which news is gathered before it is told."""
REST = 3.0
"""So many times as long as the machine took to be built anew, news is gathered that may change it again.

Nodes become ready one by one, and each of them is another machine: building it takes a quarter of the time at most.
"""
SPARE_ROWS = 2000
"""So many rows of jobs that are over the table may have before it is made anew."""


class KubernetesPlatform:
    """A cluster that is there.

    Parameters
    ----------
    link
        Where it hears of the cluster: a connection that is open.
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
        link: ClusterEvents,
        name: str,
        scheduler: Scheduler,
        writes: Actions,
        layout: ClusterLayout | None = None,
        *,
        estimate: PerformanceModel | None = None,
        continued: Continuation | None = None,
        gang_limit: float = 60.0,
    ) -> None:
        self.link, self.writes = link, writes
        self.continued = continued if continued is not None else Continuation()
        self.mirror = ClusterCache(name)
        self._sync()
        self.clock = LiveClock(self.continued.epoch or self._first())
        self.units = PodJobs(self.mirror, self.clock)
        self.state = ClusterState(self.mirror, scheduler, layout if layout is not None else ClusterLayout(), self.clock.epoch)
        believed = estimate if estimate is not None else Ideal()
        self.runs = PodRuns(self.mirror, self.units, self.state, writes, self.clock, believed)
        self._next_draw = self.continued.next_draw
        self._stopped: Stopped | None = None
        self._stop_asked = self._refused = False
        self._pending: list[Event] = []
        self._rest_until = 0.0  # of the monotonic clock
        self._news_until = 0
        self._by_row: dict[int, PodJob] = {}
        self._vain = PlacementFailures()  # since something was told last
        self._upkeep = Reconciler(self.mirror, self.units, self.state, self.runs, writes, self.clock, gang_limit)
        self.clock.tick()
        self._pending += self._absorb([])

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
        self.clock.tick()
        if not self.has_nodes:
            say("no nodes yet", waiting=len(self.units.waiting()))
            for told in self._news():
                self._pending += self._absorb(told)
                if self.has_nodes:
                    break
            else:
                return
        first = [Arrival(job.row) for job in self._in_order() if job.run is None]
        pending, self._pending = self._pending, []
        yield EventBatch(self.clock.now, (*(e for e in pending if not isinstance(e, Arrival | Renumbered)), *first))
        for told in self._news():
            if (batch := self.batch(told)) is not None:
                self._go_on_telling(batch)
                yield batch

    @property
    def has_nodes(self) -> bool:
        """Whether there is a node that jobs could run on."""
        return bool(self.state.shape.nodes)

    def batch(self, told: Sequence[Told]) -> EventBatch | None:
        """Take in news; returns what the loop must be told, None where that is nothing, or there is no machine yet."""
        self.clock.tick()
        self._pending += self._absorb(told)
        if not self._pending or not self.has_nodes:
            return None
        pending, self._pending = renumbered_once(self._pending), []
        return EventBatch(self.clock.now, tuple(pending))

    def snapshot(self) -> Snapshot:
        """Show the state now."""
        return self.runs.snapshot()

    def commit(self, plan: Plan) -> CommitResult:
        """Assume what is decided, and have it written."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        started: list[tuple[Start, int]] = []
        before, aside = self.runs.snapshot(), dict[int, str]()
        for decision in plan.decisions:
            match decision:
                case Start(job):
                    found = self.runs.start(decision, self._by_row.get(job), before, self._vain)
                    if isinstance(found, Refused):
                        rejected.append((decision, found.why))
                        if found.lasting:
                            aside[job] = found.why
                        continue
                    started.append((decision, found))
                case Stop(number, _, reason):
                    if refused := self.runs.stop(number, reason):
                        rejected.append((decision, refused))
                        continue
                case Resize():
                    rejected.append((decision, "what a running pod holds is not changed"))
                    continue
                case Reject(job, reason):
                    self._reject(job, reason)
                case Wait():
                    pass
            committed.append(decision)
        self.clock.wake_at = plan.wake_at
        if rejected:  # by what no policy sees, such as devices of a kind that it does not know
            self._refused = True
            self.clock.retry(LONGEST_RETRY)
        if aside:
            aside |= alike(self.units.waiting(), self.mirror, self._vain)
        return CommitResult(tuple(committed), tuple(rejected), tuple(started), aside)

    def lacking(self, starts: Iterable[Start]) -> dict[int, str]:
        """Row -> why, of the jobs that a commit of some starts would set aside."""
        known = ((start, self._by_row[start.job]) for start in starts if start.job in self._by_row)
        return self.runs.lacking((start, job) for start, job in known if any(job.claims))

    # LivePlatform

    def stop(self) -> None:
        """End `events`."""
        self._stop_asked = True
        self.link.told.put(Stopped())

    def class_of(self, job: int) -> str:
        """Priority class."""
        return self._by_row[job].class_name if job in self._by_row else "none"

    def report_wait(self, job: int, why: str) -> None:
        """Write a condition to all pods of a job, and an event."""
        found = self._by_row.get(job)
        for key in found.pods if found is not None else ():
            if (pod := self.mirror.pending_pod(key)) is not None:
                self.writes.say(pod, why)

    # Events

    def go_on(self, job: PodJob) -> None:
        """Finish what another process has begun of a job that waits."""
        self.runs.resume(job)

    def _sync(self) -> None:
        """Take in everything that is there."""
        while self.mirror.unsynced:
            told = self.link.told.get()
            if isinstance(told, Stopped):
                raise PoolwiseError(told.reason or "stopped before the cluster was seen")
            if not isinstance(told, Bound | NotBound):
                self.mirror.apply_event(told)

    def _first(self) -> int:
        """The earliest instant (ns since 1970) of which the cluster tells, so that no time is negative."""
        created = (instant(pod.metadata.creation_timestamp) for pod in self.mirror.pods.values() if self.mirror.is_managed(pod))
        return min((time.time_ns(), *created))

    def _go_on_telling(self, batch: EventBatch) -> None:
        """Want more passes for a while after something has happened: whoever waits is told why in passes, at intervals."""
        now = self.clock.now
        if any(not isinstance(event, Wake) for event in batch.events):
            self._news_until = now + int(1.1 * INTERVAL * SECOND)
        if any(isinstance(event, Arrival) for event in batch.events):
            self.clock.retry(int(0.11 * INTERVAL * SECOND))
        elif now < self._news_until:
            self.clock.retry(self._news_until - now)

    def _news(self) -> Iterator[list[Told]]:
        """Yield what is told, until the run is stopped; raises PoolwiseError where that has a reason."""
        while not self._stop_asked:
            if self._stopped is not None:
                if self._stopped.reason:
                    raise PoolwiseError(self._stopped.reason)
                return
            yield self._gather()

    def _gather(self) -> list[Told]:
        """Wait for news, or for the time at which a pass is due, and take all that is there."""
        self.clock.tick()
        told: list[Told] = []
        try:
            told.append(self.link.told.get(timeout=self.clock.left))
            until = max(time.monotonic() + GATHER, self._rest_until)
            while (left := until - time.monotonic()) > 0:
                told.append(self.link.told.get(timeout=left))
        except queue.Empty:
            pass
        return told

    def _absorb(self, told: Sequence[Told]) -> list[Event]:
        """Apply news; returns the events that the loop must be told, those of old rows first."""
        rang = self.clock.ring()  # before anything wants a pass later
        self._vain = PlacementFailures()
        events: list[Event] = []
        for what in told:
            match what:
                case Bound(run):
                    events += self.runs.bound(run)
                case NotBound():
                    events += self.runs.not_bound(what)
                case Stopped():
                    self._stopped = what
                case _:
                    self.mirror.apply_event(what)
        news = self.mirror.pop_changes()
        settled = [self.units.settle(news.pods), self.units.settle_claims(news.claims)]
        if news.shape:
            settled.append(self.units.settle_noted())
        for key in sorted(news.pods | self.runs.leaving(news.claims)):
            events += self.runs.pod_over(key)
        looked_at = self.mirror.pods if news.shape else news.pods  # with a node come the pods that it had
        events += self._settle(settled, self._adopted(looked_at), news.shape)
        self._upkeep.look(news.devices)
        events += self._look(news.nodes | self.mirror.changes.nodes, news.devices | self.mirror.changes.devices)
        if news.links:
            self.state.look_at_links()
        freed = self._refused and bool(news.devices or news.nodes or news.claims)
        if rang or news.links or freed:
            self._refused = False
            events.append(Wake())
        for claim in self.units.take_lacking():
            self.writes.make(claim)
        if notes := self.units.notes.pop_due():
            self.writes.note(self.mirror, notes)
        return events

    def _adopted(self, pods: Iterable[str]) -> list[PodJob]:
        """Jobs of pods of ours that are on a node, and were not put there by a run that is known."""
        found = []
        for key in sorted(pods):
            pod = self.mirror.pods.get(key)
            node = self.mirror.nodes.get(pod.spec.node_name) if pod is not None else None
            if pod is None or node is None or not usable(node):
                continue
            if not self.mirror.is_managed(pod) or pod.over or key in self.state.ours:
                continue
            try:
                found.append(self.units.adopt(pod))
            except InputError as problem:  # it takes what its node counts; nothing more is known of it
                say("not counted as a run", pod=key, error=problem.message)
        return found

    def _settle(self, settled: list[Settled], adopted: list[PodJob], shape: bool) -> list[Event]:
        """Add and remove jobs; where the machine changes, everything is built anew and jobs are renumbered."""
        arrived = [job for part in settled for job in part.arrived if self.units.of_pod.get(job.pods[0]) is job]
        altered = [now for part in settled for _, now in part.altered if self.units.of_pod.get(now.pods[0]) is now]
        withdrawn = [job for part in settled for job in (*part.withdrawn, *(before for before, _ in part.altered))]
        events: list[Event] = [Withdrawn(job.row) for job in withdrawn if job.row >= 0]
        self.runs.over_rows += len(withdrawn)
        for job in (*arrived, *adopted):
            known = self.continued.draw(job.name)
            job.submitted = min(job.submitted, self.clock.epoch + self.clock.now)  # where the server's clock is ahead
            job.draw = self._next_draw if known is None else known
            self._next_draw += known is None
        new = sorted((*arrived, *adopted, *altered), key=lambda job: (job.submitted, job.name))
        crowded = self.runs.over_rows >= SPARE_ROWS + len(self.units.of_pod)
        if shape or crowded or (new and not self.state.add_jobs(new)):
            begun = time.monotonic()
            rows = self.state.reshape(self._in_order())
            self._rest_until = time.monotonic() + REST * (time.monotonic() - begun)
            self._by_row = {job.row: job for job in self._in_order()}
            self.runs.over_rows, self.runs.freed_at = 0, self.clock.now
            events += [Renumbered(rows), Wake()]
        self._by_row.update((job.row, job) for job in new)
        for job in adopted:
            self.runs.adopt(job)
        for job in arrived:
            self.go_on(job)
        return events + [Arrival(job.row) for job in new if job.run is None]

    def _in_order(self) -> list[PodJob]:
        return sorted(self.units.jobs() | {a.job for a in self.runs.active.values()}, key=lambda job: (job.submitted, job.name))

    def _look(self, nodes: set[str], devices: set[DeviceId]) -> list[Event]:
        """Count anew what others take; returns what has changed."""
        owner = self.state.shape.node_owner
        changed = [owner[node] for node in sorted(nodes) if self.state.look_at(node)]
        for device in sorted(devices):
            changed += self.state.look_at_device(device)
        if changed:
            self.runs.freed_at = self.clock.now
        return [CapacityChanged(number, 0, 0) for number in dict.fromkeys(changed)]

    def _reject(self, row: int, reason: str) -> None:
        job = self._by_row[row]
        self.units.notes.leave(job.pods, reason)
        self.units.end(job)
