"""Slurm platform: polls a partition and yields the differences between polls as events; what all modes share."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import immutable
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError, run_client
from poolwise.live.slurm.job_rows import JobRequest, JobRows
from poolwise.live.slurm.machine import GIB, SlurmLayout, changed_cells, free_capacity
from poolwise.live.slurm.parsing import ALLOCATED_STATES, NOTE_SEPARATOR, ClusterListing, SlurmJob, read_cluster, read_racks
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Continuation,
    Ended,
    Event,
    EventBatch,
    JobTable,
    Outcome,
    Placement,
    Plan,
    Run,
    Snapshot,
    Start,
    Wake,
    Withdrawn,
)
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.units import HORIZON, SECOND

HetComponents = tuple[SlurmJob, ...]
IDLE_PASS_INTERVAL = 30 * SECOND
"""Time (ns) after which a pass runs even without events, so that users get current wait reasons."""


class CommittedRun(ABC):
    """A committed run that Slurm does not show as running yet.

    Attributes
    ----------
    placement : the placement that was committed
    """

    placement: Placement

    @abstractmethod
    def resolve(self, name: str, gang: HetComponents | None) -> Event | None:
        """Return the outcome of the run as of this poll, None if it is still open.

        `gang` is None if the job is gone.
        """


@dataclass(frozen=True)
class SlurmSettings:
    """Settings of a platform.

    Attributes
    ----------
    partition : the only partition whose jobs are scheduled
    whole : whether jobs take whole nodes
    unit : MiB that one license of a memory pool represents
    interval : seconds between polls
    """

    partition: str
    whole: bool
    unit: int = GIB
    interval: float = 1.0


class SlurmPlatform(ABC):
    """A partition of a Slurm cluster; modes define which jobs wait and how committed starts are resolved.

    The epoch and the random draws of an earlier run are `continued`. The estimate predicts run times for placements, in
    addition to time limits. Raises SlurmTimeoutError if Slurm does not answer.
    """

    def __init__(
        self, settings: SlurmSettings, continued: Continuation | None = None, estimate: PerformanceModel | None = None
    ) -> None:
        self.settings, self.estimate = settings, estimate if estimate is not None else Ideal()
        self._stopped = threading.Event()
        self.listing = read_cluster(settings.partition)
        self.layout = SlurmLayout.of(
            settings.partition, self.listing, read_racks(self.listing.nodes), settings.whole, settings.unit
        )
        epoch = continued.epoch if continued is not None and continued.epoch else _first_submission(self.listing)
        self.rows = JobRows(("nodes", *(() if settings.whole else ("cores",)), "memory", *self.layout.types), epoch, continued)
        self.now = time.time_ns() - epoch
        self._run_of: dict[str, int] = {}  # name -> run, of running and committed jobs
        self._next_run, self._freed_at = 0, -1
        self._wake_at: int | None = None
        self._machine_error = ""  # why the nodes listed now do not form a machine
        self.invalid_requests: dict[str, InputError] = {}
        self.ignored: set[str] = set()  # jobs that the scheduler rejected or gave back
        self._runs = RunTable(self.layout.machine.capacity.size)
        self._capacity = immutable(self.layout.machine.capacity)
        self._free = self._capacity.copy()
        self.after_poll()
        self._initial_events = self._compare()

    @property
    def table(self) -> JobTable:
        """Jobs that have arrived."""
        return self.rows.table

    @table.setter
    def table(self, table: JobTable) -> None:
        self.rows.table = table

    # Platform

    def events(self) -> Iterator[EventBatch]:
        """Yield the events between polls; the first batch contains the arrivals of all waiting jobs."""
        yield EventBatch(self.now, (*self._initial_events, Wake()))
        last_pass = self.now
        while not self._stopped.is_set():
            self._sleep()
            if self._stopped.is_set():
                return
            try:
                self.listing = read_cluster(self.settings.partition)
                self.after_poll()
                events = self._compare()
            except SlurmTimeoutError as error:
                log_event("controller_unreachable", logging.WARNING, why=str(error))
                continue
            woken = self._wake_at is not None and self.now >= self._wake_at
            if woken or self.now >= last_pass + IDLE_PASS_INTERVAL:
                self._wake_at = None if woken else self._wake_at
                events = (*events, Wake())
            if events:
                last_pass = self.now
                yield EventBatch(self.now, events)

    def snapshot(self) -> Snapshot:
        """Return the state of the last poll, including runs committed since."""
        return Snapshot(
            self.now,
            self.layout.machine,
            self.table,
            self._capacity,
            self._free,
            self._runs,
            self.estimate,
            may_grow=bool((self._capacity < self.layout.machine.capacity).any()),
            freed_at=self._freed_at,
        )

    # LivePlatform

    def stop(self) -> None:
        """End `events`."""
        self._stopped.set()

    def class_of(self, job: int) -> str:
        """Return the partition, which is the only class of jobs."""
        return self.settings.partition

    def report_wait(self, job: int, why: str) -> None:
        """Append the reason for which the job waits to the user's comment (`squeue -o %k`)."""
        name = self.table.name(job)
        gang = self.listing.gangs.get(name)
        if gang is None:
            return
        text = f"{gang[0].comment}{NOTE_SEPARATOR}{why}" if why else gang[0].comment
        try:
            run_client("scontrol", "update", f"JobId={name}", f"Comment={text.strip()}")
        except SlurmTimeoutError as error:
            log_event("wait_reason_write_failed", logging.WARNING, job=name, why=str(error))

    def wake_at(self, time: int | None) -> None:
        """Request a pass at a time (ns) at the latest; None cancels the request."""
        self._wake_at = time

    def _sleep(self) -> None:
        """Wait for the next poll, or less if a pass is requested earlier."""
        wait = self.settings.interval
        if self._wake_at is not None:
            wait = min(wait, max((self._wake_at - self.now) / SECOND, 0.01))
        self._stopped.wait(wait)

    # Defined by modes

    @abstractmethod
    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan."""

    @abstractmethod
    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether a pending job of the partition waits for this scheduler."""

    def committed(self) -> Mapping[str, CommittedRun]:
        """Return the committed runs that do not run yet, by name; empty in modes that start nothing."""
        return {}

    def after_poll(self) -> None:
        """Run the mode's actions after each poll, before the comparison."""
        return

    def after_compare(self) -> list[Event]:
        """Run the mode's actions after each comparison and return the resulting events."""
        return []

    # For modes

    def add_committed_run(self, name: str, start: Start) -> int:
        """Add a committed run and return its number; its resources are occupied from now on."""
        number = self._add_run(name, start.job, start.placement, None)
        start.placement.take_from(self._free)
        return number

    def name_of(self, number: int) -> str | None:
        """Return the job name of a run, None if the run has ended."""
        return self.table.name(self._runs[number].job) if number in self._runs else None

    def tasks_of(self, row: int) -> tuple[int, ...]:
        """Return all tasks of a job."""
        return tuple(range(int(self.table.tasks[row])))

    def request_unchanged(self, name: str, gang: HetComponents) -> bool:
        """Return whether a waiting job still has its known request."""
        return self.in_partition(gang) and self.rows.request(name) == self._request(name, gang)

    def ignore_job(self, name: str) -> int | None:
        """Ignore a job until it has run; returns its row if it was waiting."""
        self.ignored.add(name)
        return self.rows.stop_waiting(name)

    def in_partition(self, gang: HetComponents) -> bool:
        """Return whether a job belongs to the partition, and to no other."""
        return all(job.partition == self.settings.partition for job in gang)

    # Comparison of polls

    def _compare(self) -> tuple[Event, ...]:
        """Update the state to the last poll and return the events."""
        self.rows.recycle([run.job for run in self._runs])  # the loop has handled all earlier events
        self.now = max(time.time_ns() - self.table.epoch, self.now + 1)
        gangs = self.listing.gangs
        events = [*self._machine_changes(), *self._ends(gangs)]
        running = {name: gang for name, gang in gangs.items() if any(job.state in ALLOCATED_STATES for job in gang)}
        placed = self.layout.placements(running)
        events += self._starts(running, placed)
        events += self._arrivals({name: gang for name, gang in gangs.items() if name not in self._run_of})
        events += self._update_runs(running, placed)
        return (*events, *self.after_compare())

    def _machine_changes(self) -> list[Event]:
        """Rebuild the machine if nodes or licenses changed; `_update_runs` then updates the capacity.

        If the nodes no longer form a machine, the old machine is kept without the nodes that changed.
        """
        if self.layout.matches(self.listing):
            return []
        racks = read_racks(self.listing.nodes)
        try:
            layout = SlurmLayout.of(self.settings.partition, self.listing, racks, self.settings.whole, self.settings.unit)
        except InputError as error:  # running jobs, and jobs that fit the unchanged nodes, must not be affected
            if str(error) != self._machine_error:
                log_event("machine_rebuild_failed", logging.ERROR, why=str(error))
            self._machine_error = str(error)
            return []
        self.layout, self._machine_error = layout, ""
        log_event("machine_rebuilt", nodes=len(self.listing.nodes), racks=len(set(racks.values())))
        runs, self._runs = list(self._runs), RunTable(self.layout.machine.capacity.size)
        empty = Placement.of([])
        for run in runs:  # `_update_runs` finds their current placement
            self._runs.add(replace(run, placement=empty), empty.owner, ())
        self._capacity = immutable(self.layout.machine.capacity)
        return [Wake()]

    def _ends(self, gangs: dict[str, HetComponents]) -> list[Event]:
        """Return the ends of runs, including committed runs that did not start."""
        events: list[Event] = []
        for name, number in list(self._run_of.items()):
            gang = gangs.get(name)
            if gang is not None and any(job.state in ALLOCATED_STATES for job in gang):
                continue
            event: Event | None
            if (committed := self.committed().get(name)) is not None:
                event = committed.resolve(name, gang)
            else:
                event = Ended(number, self._runs[number].job, self._runs[number].tasks, Outcome.FINISHED)
            if isinstance(event, Ended):
                self._remove_run(name, number)
                if event.requeue:
                    self.rows.requeue(name, event.job)
                events.append(event)
        return events

    def _remove_run(self, name: str, number: int) -> None:
        """Remove a run."""
        self._runs.remove(number)
        del self._run_of[name]
        self._freed_at = self.now

    def _starts(self, running: dict[str, HetComponents], placed: dict[str, Placement]) -> list[Event]:
        """Add new runs and return starts of committed ones; a waiting job started by others leaves the queue."""
        events: list[Event] = []
        for name in running:
            if name in self._run_of:
                committed = self.committed().get(name)
                if committed is not None and (event := committed.resolve(name, running[name])) is not None:
                    events.append(event)
                continue
            if name not in placed:
                continue  # the job holds nothing of this machine
            row = self.rows.stop_waiting(name)
            if row is None:
                row = self.rows.append(name, self._running_request(name, running[name]))
            else:
                events.append(Withdrawn(row))
            self._add_run(name, row, placed[name], running[name])
        return events

    def _add_run(self, name: str, row: int, placement: Placement, gang: HetComponents | None) -> int:
        """Add a run and return its number."""
        number = self._run_of[name] = self._next_run
        self._next_run += 1
        start = self.now if gang is None or gang[0].start is None else gang[0].start - self.table.epoch
        limit = int(self.table.requested[row]) if gang is None else gang[0].limit
        run = Run(number, row, self.tasks_of(row), placement, start, min(start + limit, HORIZON))
        self._runs.add(run, self._cells(placement), ())
        return number

    def _cells(self, placement: Placement) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return placement.owner * len(self.layout.machine.resources) + placement.resource

    def _arrivals(self, pending: dict[str, HetComponents]) -> list[Event]:
        """Return arrivals and withdrawals; a job whose request changed is withdrawn and arrives as a new job."""
        events: list[Event] = []
        waiting: dict[str, JobRequest] = {}
        for name, gang in pending.items():
            if (
                self.in_partition(gang)
                and name not in self.ignored
                and self.is_schedulable(gang)
                and (request := self._request(name, gang)) is not None
            ):
                waiting[name] = request
        for name, request in self.rows.waiting():
            if waiting.get(name) != request and (row := self.rows.stop_waiting(name)) is not None:
                events.append(Withdrawn(row))
        for name, request in waiting.items():
            if not self.rows.is_waiting(name):
                events.append(Arrival(self.rows.append_waiting(name, request)))
        for name in self.invalid_requests.keys() - pending.keys():
            del self.invalid_requests[name]
        self.ignored &= pending.keys()
        return events

    def _request(self, name: str, gang: HetComponents) -> JobRequest | None:
        """Return the request of a job, None if it is invalid; an invalid request is logged once."""
        try:
            request = JobRequest.of(gang, self.settings.whole, self.settings.unit, self.layout.types)
        except InputError as error:
            if name not in self.invalid_requests:
                log_event("invalid_job_request", logging.WARNING, job=name, why=str(error))
            self.invalid_requests[name] = error
            return None
        self.invalid_requests.pop(name, None)
        return request

    def _running_request(self, name: str, gang: HetComponents) -> JobRequest:
        """Return the request of a running job; if it is invalid, the first component's request without its comment."""
        found = self._request(name, gang)
        if found is not None:
            return found
        bare = (replace(gang[0], comment=""),)
        return JobRequest.of(bare, self.settings.whole, self.settings.unit, self.layout.types)

    def _update_runs(self, running: dict[str, HetComponents], placed: dict[str, Placement]) -> list[Event]:
        """Update placements and expected ends of runs, capacity and free resources; return the capacity changes."""
        for name, number in self._run_of.items():
            run = self._runs[number]
            if name in running:
                placement, first = placed.get(name, Placement.of([])), running[name][0]
                start = run.start if first.start is None else first.start - self.table.epoch
                end = min(start + first.limit, HORIZON)
            else:
                committed = self.committed().get(name)
                placement = run.placement if committed is None else committed.placement
                start, end = run.start, run.expected_end
            if placement != run.placement or start != run.start:
                self._runs.remove(number)
                self._runs.add(replace(run, placement=placement, start=start, expected_end=end), self._cells(placement), ())
            elif end != run.expected_end:
                self._runs.expect(replace(run, expected_end=end))
        busy = {node for gang in running.values() for job in gang for node in job.allocated}
        before, self._capacity = self._capacity, immutable(self.layout.capacity(self.listing, busy))
        self._free = free_capacity(self._capacity, (run.placement for run in self._runs))
        changes = changed_cells(before, self._capacity)
        if any(amount > 0 for _, _, amount in changes):
            self._freed_at = self.now
        return [CapacityChanged(*cell) for cell in changes]


def _first_submission(listing: ClusterListing) -> int:
    """Return the earliest submission time of the listed jobs, now without jobs (ns since 1970)."""
    return min([job.submit for job in listing.jobs], default=time.time_ns())
