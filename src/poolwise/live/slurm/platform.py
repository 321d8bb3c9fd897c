"""Slurm platform: polls a partition and yields the differences between polls as events. All modes share it."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.arrays import immutable
from poolwise.errors import InputError
from poolwise.live.logs import log_event
from poolwise.live.slurm.client_calls import SlurmTimeoutError, logged_timeouts, run_client
from poolwise.live.slurm.job_rows import JobRequest, JobRows
from poolwise.live.slurm.machine import GIB, SlurmLayout, changed_cells, free_capacity
from poolwise.live.slurm.parsing import ALLOCATED_STATES, NOTE_SEPARATOR, SlurmJob, read_cluster, read_racks
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Continuation,
    Decisions,
    Ended,
    Event,
    EventBatch,
    JobTable,
    JobWithdrawn,
    Outcome,
    Placement,
    Run,
    Snapshot,
    Start,
    Wakeup,
)
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.quantities import HORIZON, SECOND

HetComponents = tuple[SlurmJob, ...]
IDLE_PASS_INTERVAL = 30 * SECOND
"""Time (ns) after which a pass runs even without events, so that users get current wait reasons."""


@dataclass
class PendingStart:
    """The start of a released job that does not run yet."""

    run: int
    row: int
    placement: Placement
    nodes: frozenset[str]  # names of the assigned nodes
    since: float = field(default_factory=time.monotonic)  # time of the release (monotonic s)
    withdrawn: bool = False  # whether the job was held again since


@dataclass(frozen=True)
class SlurmSettings:
    """Settings of a platform."""

    partition: str  # the only one whose jobs are scheduled
    whole: bool  # whether jobs take whole nodes
    unit: int = GIB  # MiB that one license of a memory pool represents
    interval: float = 1.0  # seconds between polls


class SlurmPlatform(ABC):
    """A partition of a Slurm cluster; modes define which jobs wait and how committed starts are resolved.

    The epoch and the random draws of an earlier run are `continued`. Raises SlurmTimeoutError if Slurm does not answer.
    """

    def __init__(self, settings: SlurmSettings, continued: Continuation | None = None) -> None:
        self.settings = settings
        self._stopped = threading.Event()
        self.listing = read_cluster(settings.partition)
        self.layout = SlurmLayout.of(
            settings.partition, self.listing, read_racks(self.listing.nodes), settings.whole, settings.unit
        )
        first = min([job.submit for job in self.listing.jobs], default=time.time_ns())
        epoch = continued.epoch if continued is not None and continued.epoch else first
        self.rows = JobRows(("nodes", *(() if settings.whole else ("cores",)), "memory", *self.layout.types), epoch, continued)
        self.now = time.time_ns() - epoch
        self._run_of: dict[str, int] = {}  # name -> run, of running and committed jobs
        self._next_run, self._freed_at = 0, -1
        self.next_wakeup: int | None = None  # time (ns) at which the scheduler requests a pass
        self._machine_error = ""  # why the nodes listed now do not form a machine
        self.invalid_requests: dict[str, InputError] = {}
        self.ignored: set[str] = set()  # jobs that the scheduler rejected or gave back
        self.released: dict[str, PendingStart] = {}  # by name; empty in modes that start nothing
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
        yield EventBatch(self.now, (*self._initial_events, Wakeup()))
        last_pass = self.now
        while not self._stopped.is_set():
            left = float("inf") if self.next_wakeup is None else max((self.next_wakeup - self.now) / SECOND, 0.01)
            if self._stopped.wait(min(self.settings.interval, left)):
                return
            events: tuple[Event, ...] | None = None
            with logged_timeouts():
                self.listing = read_cluster(self.settings.partition)
                self.after_poll()
                events = self._compare()
            if events is None:
                continue
            woken = self.next_wakeup is not None and self.now >= self.next_wakeup
            if woken or self.now >= last_pass + IDLE_PASS_INTERVAL:
                self.next_wakeup = None if woken else self.next_wakeup
                events = (*events, Wakeup())
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
            Ideal(),
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

    # Defined by modes

    @abstractmethod
    def commit(self, decisions: Decisions) -> CommitResult:
        """Carry out decisions."""

    def is_schedulable(self, gang: HetComponents) -> bool:
        """Return whether a pending job of the partition waits: by default, if Slurm could start it with free resources."""
        return self.may_start(gang) and not any(job.held for job in gang)

    def resolve_start(self, name: str, gang: HetComponents | None) -> Event | None:
        """Return the outcome of a released job as of this poll, None if it is still open; `gang` is None if it is gone."""
        return None

    def after_poll(self) -> None:
        """Run the mode's actions after each poll, before the comparison."""
        return

    def after_compare(self, events: list[Event]) -> None:
        """Run the mode's actions after each comparison, and append each resulting event at once."""
        return

    # For modes

    def add_committed_run(self, name: str, start: Start) -> int:
        """Add a committed run and return its number; its resources are occupied from now on."""
        number = self._add_run(name, start.job, start.placement, None)
        start.placement.take_from(self._free)
        return number

    def may_start(self, gang: HetComponents) -> bool:
        """Return whether a job is pending, has no unsatisfied dependency, and may begin by now."""
        latest = self.table.epoch + self.now + SECOND
        pending = all(job.state == "PENDING" and not job.dependent for job in gang)
        return pending and not any(job.reason == "BeginTime" or (job.held and (job.start or 0) > latest) for job in gang)

    def tasks_of(self, row: int) -> tuple[int, ...]:
        """Return all tasks of a job."""
        return tuple(range(int(self.table.tasks[row])))

    def ignore_job(self, name: str) -> None:
        """Ignore a job until it has run."""
        self.ignored.add(name)
        self.rows.waiting.pop(name, None)

    def in_partition(self, gang: HetComponents) -> bool:
        """Return whether a job belongs to the partition, and to no other."""
        return all(job.partition == self.settings.partition for job in gang)

    # Comparison of polls

    def _compare(self) -> tuple[Event, ...]:
        self.rows.recycle([run.job for run in self._runs])  # the loop has handled all earlier events
        self.now = max(time.time_ns() - self.table.epoch, self.now + 1)
        gangs = self.listing.gangs
        events = [*self._machine_changes(), *self._ends(gangs)]
        running = {name: gang for name, gang in gangs.items() if any(job.state in ALLOCATED_STATES for job in gang)}
        placed = self.layout.placements(running)
        events += self._starts(running, placed)
        events += self._arrivals({name: gang for name, gang in gangs.items() if name not in self._run_of})
        events += self._update_runs(running, placed)
        with logged_timeouts():  # the state has changed already: the loop must receive the events
            self.after_compare(events)
        return tuple(events)

    def _machine_changes(self) -> list[Event]:
        """Rebuild the machine if nodes or licenses changed; if that fails, keep the old machine without the changed nodes."""
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
        return [Wakeup()]

    def _ends(self, gangs: dict[str, HetComponents]) -> list[Event]:
        """Return the ends of runs, including committed runs that did not start."""
        events: list[Event] = []
        for name, number in list(self._run_of.items()):
            gang = gangs.get(name)
            if gang is not None and any(job.state in ALLOCATED_STATES for job in gang):
                continue
            event: Event | None
            if name in self.released:
                event = self.resolve_start(name, gang)
            else:
                event = Ended(number, self._runs[number].job, self._runs[number].tasks, Outcome.FINISHED)
            if isinstance(event, Ended):
                self._runs.remove(number)
                del self._run_of[name]
                self._freed_at = self.now
                if event.requeue:
                    self.rows.waiting[name] = event.job
                events.append(event)
        return events

    def _starts(self, running: dict[str, HetComponents], placed: dict[str, Placement]) -> list[Event]:
        """Add new runs and return starts of committed ones; a waiting job started by others leaves the queue."""
        events: list[Event] = []
        for name in running:
            if name in self._run_of:
                if name in self.released and (event := self.resolve_start(name, running[name])) is not None:
                    events.append(event)
                continue
            if name not in placed:
                continue  # the job holds nothing of this machine
            row = self.rows.waiting.pop(name, None)
            if row is None:
                row = self.rows.append(name, self._running_request(name, running[name]))
            else:
                events.append(JobWithdrawn(row))
            self._add_run(name, row, placed[name], running[name])
        return events

    def _add_run(self, name: str, row: int, placement: Placement, gang: HetComponents | None) -> int:
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
        changed = [name for name in self.rows.waiting if waiting.get(name) != self.rows.request(name)]
        events += [JobWithdrawn(self.rows.waiting.pop(name)) for name in changed]
        for name, request in waiting.items():
            if name not in self.rows.waiting:
                self.rows.waiting[name] = row = self.rows.append(name, request)
                events.append(Arrival(row))
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
        request = self._request(name, gang)
        if request is not None:
            return request
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
                placement = self.released[name].placement if name in self.released else run.placement
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
