"""Slurm, followed: each reading is compared with what was known, and what differs has happened.

What is common to all modes stands here and in `platform`.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import kept
from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.live.logs import log_event
from poolwise.live.slurm.job_request import JobRequest
from poolwise.live.slurm.job_rows import JobRows
from poolwise.live.slurm.machine import GIB, SlurmLayout, changed_cells, spare
from poolwise.live.slurm.parsing import AT_WORK, ClusterListing, SlurmJob, read_cluster, read_racks
from poolwise.model import (
    Arrival,
    CapacityChanged,
    Continuation,
    Ended,
    Event,
    JobTable,
    Outcome,
    Placement,
    Run,
    Start,
    Wake,
    Withdrawn,
)
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.units import HORIZON

GANG = tuple[SlurmJob, ...]


class CommittedRun(ABC):
    """A run that was committed and is not real yet.

    Attributes
    ----------
    placement : where it is expected
    """

    placement: Placement

    @abstractmethod
    def settle(self, name: str, gang: GANG | None) -> Event | None:
        """Say what became of it, in the light of a reading; None while that is open.

        The job's components are None where it is gone.
        """


@dataclass(frozen=True)
class SlurmSettings:
    """What a platform is told.

    Attributes
    ----------
    partition : the one partition whose jobs it looks at
    whole : whether jobs take whole nodes
    unit : MiB that a licence of a memory pool stands for
    interval : seconds between readings
    """

    partition: str
    whole: bool
    unit: int = GIB
    interval: float = 1.0


class SlurmPoller(ABC):
    """What is known of a partition, brought up to each reading; the modes say what waits, and what became of starts.

    Parameters
    ----------
    continued
        What an earlier run left: its time 0 and draws go on.
    estimate
        How long runs are believed to take where they are placed, beside their time limits.

    Raises SlurmTimeoutError where Slurm does not answer.
    """

    def __init__(
        self, settings: SlurmSettings, continued: Continuation | None = None, estimate: PerformanceModel | None = None
    ) -> None:
        self.settings, self.estimate = settings, estimate if estimate is not None else Ideal()
        self._stopped = threading.Event()
        self.reading = read_cluster(settings.partition)
        self.layout = SlurmLayout.of(
            settings.partition, self.reading, read_racks(self.reading.nodes), settings.whole, settings.unit
        )
        epoch = continued.epoch if continued is not None and continued.epoch else _first_submission(self.reading)
        self.rows = JobRows(("nodes", *(() if settings.whole else ("cores",)), "memory", *self.layout.types), epoch, continued)
        self.now = time.time_ns() - epoch
        self._run_of: dict[str, int] = {}  # name -> run, of jobs that are at work or were committed
        self._count, self._freed_at = 0, -1
        self._wake_at: int | None = None
        self._no_machine = ""  # why what is there now makes no machine
        self.unreadable: dict[str, InputError] = {}
        self.aside: set[str] = set()  # jobs that the scheduler has rejected, or that were given back
        self._runs = RunTable(self.layout.machine.capacity.size)
        self._capacity = kept(self.layout.machine.capacity)
        self._free = self._capacity.copy()
        self.look_around()
        self._first = self._compare()

    @property
    def table(self) -> JobTable:
        """The jobs that have arrived."""
        return self.rows.table

    @table.setter
    def table(self, table: JobTable) -> None:
        self.rows.table = table

    # What a mode says

    @abstractmethod
    def waits(self, gang: GANG) -> bool:
        """Whether a pending job of the partition waits for this scheduler."""

    def committed(self) -> Mapping[str, CommittedRun]:
        """Runs that were committed and are not real yet, by name: none in modes that start nothing."""
        return {}

    def look_around(self) -> None:
        """Do what the mode has to do after each reading, before anything is compared."""
        return

    def finish_reading(self) -> list[Event]:
        """Do what the mode has to do after each comparison; returns what has happened by it."""
        return []

    # For modes

    def begin_run(self, name: str, start: Start) -> int:
        """Add a run that was committed; returns its number. What it takes is held from now on."""
        number = self._begin(name, start.job, start.placement, None)
        start.placement.take_from(self._free)
        return number

    def name_of(self, number: int) -> str | None:
        """Name of a run's job, None where it is over."""
        return self.table.name(self._runs[number].job) if number in self._runs else None

    def tasks_of(self, row: int) -> tuple[int, ...]:
        """All tasks of a job."""
        return tuple(range(int(self.table.tasks[row])))

    def unchanged(self, name: str, gang: GANG) -> bool:
        """Whether a waiting job asks for what it was known to ask for."""
        return self.is_mine(gang) and self.rows.request(name) == self._request(name, gang)

    def set_aside(self, name: str) -> int | None:
        """Leave a job to others until it has run; returns its row where it waited."""
        self.aside.add(name)
        return self.rows.stop_waiting(name)

    def is_mine(self, gang: GANG) -> bool:
        """Whether a job is of the partition, and of no other."""
        return all(job.partition == self.settings.partition for job in gang)

    # Comparing

    def _compare(self) -> tuple[Event, ...]:
        """Bring the state up to the reading; returns what has happened."""
        self.now = max(time.time_ns() - self.table.epoch, self.now + 1)
        gangs = self.reading.gangs
        events = [*self._machine_changes(), *self._ends(gangs)]
        at_work = {name: gang for name, gang in gangs.items() if any(job.state in AT_WORK for job in gang)}
        placed = self.layout.placements(at_work)
        events += self._starts(at_work, placed)
        events += self._arrivals({name: gang for name, gang in gangs.items() if name not in self._run_of})
        events += self._account(at_work, placed)
        if (renumbered := self.rows.compact({run.job for run in self._runs})) is not None:
            for run in list(self._runs):
                self._runs.expect(replace(run, job=renumbered.rows[run.job]))
            events.append(renumbered)
        return (*events, *self.finish_reading())

    def _machine_changes(self) -> list[Event]:
        """Make the machine anew if it is another one; what is there now follows in `_account`.

        Where what is there makes no machine, the old one is kept without the nodes that have changed.
        """
        if self.layout.fits(self.reading):
            return []
        racks = read_racks(self.reading.nodes)
        try:
            layout = SlurmLayout.of(self.settings.partition, self.reading, racks, self.settings.whole, self.settings.unit)
        except InputError as error:  # jobs at work and those that fit what is left must not suffer from it
            if str(error) != self._no_machine:
                log_event("machine kept as it was", logging.ERROR, why=str(error))
            self._no_machine = str(error)
            return []
        self.layout, self._no_machine = layout, ""
        log_event("machine", nodes=len(self.reading.nodes), racks=len(set(racks.values())))
        runs, self._runs = list(self._runs), RunTable(self.layout.machine.capacity.size)
        empty = Placement.of([])
        for run in runs:  # where they are now is found below
            self._runs.add(replace(run, placement=empty), empty.owner, ())
        self._capacity = kept(self.layout.machine.capacity)
        return [Wake()]

    def _ends(self, gangs: dict[str, GANG]) -> list[Event]:
        """Runs that are over, and committed ones that did not become real."""
        events: list[Event] = []
        for name, number in list(self._run_of.items()):
            gang = gangs.get(name)
            if gang is not None and any(job.state in AT_WORK for job in gang):
                continue
            event: Event | None
            if (committed := self.committed().get(name)) is not None:
                event = committed.settle(name, gang)
            else:
                event = Ended(number, self._runs[number].job, self._runs[number].tasks, Outcome.FINISHED)
            if isinstance(event, Ended):
                self._end(name, number)
                if event.requeue:
                    self.rows.wait_again(name, event.job)
                events.append(event)
        return events

    def _end(self, name: str, number: int) -> None:
        """Forget a run."""
        self._runs.remove(number)
        del self._run_of[name]
        self._freed_at = self.now

    def _starts(self, at_work: dict[str, GANG], placed: dict[str, Placement]) -> list[Event]:
        """Runs that are new or became real; a waiting job that somebody else started is taken back from the queue."""
        events: list[Event] = []
        for name in at_work:
            if name in self._run_of:
                committed = self.committed().get(name)
                if committed is not None and (event := committed.settle(name, at_work[name])) is not None:
                    events.append(event)
                continue
            if name not in placed:
                continue  # it has nothing of this machine
            row = self.rows.stop_waiting(name)
            if row is None:
                row = self.rows.append(name, self._request_at_work(name, at_work[name]))
            else:
                events.append(Withdrawn(row))
            self._begin(name, row, placed[name], at_work[name])
        return events

    def _begin(self, name: str, row: int, placement: Placement, gang: GANG | None) -> int:
        """Add a run; returns its number."""
        number = self._run_of[name] = self._count
        self._count += 1
        start = self.now if gang is None or gang[0].start is None else gang[0].start - self.table.epoch
        limit = int(self.table.requested[row]) if gang is None else gang[0].limit
        run = Run(number, row, self.tasks_of(row), placement, start, min(start + limit, HORIZON))
        self._runs.add(run, self._cells(placement), ())
        return number

    def _cells(self, placement: Placement) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        return placement.owner * len(self.layout.machine.resources) + placement.resource

    def _arrivals(self, pending: dict[str, GANG]) -> list[Event]:
        """Jobs that wait and did not, and those that no longer do. A job whose request was changed is another job."""
        events: list[Event] = []
        waiting: dict[str, JobRequest] = {}
        for name, gang in pending.items():
            if (
                self.is_mine(gang)
                and name not in self.aside
                and self.waits(gang)
                and (request := self._request(name, gang)) is not None
            ):
                waiting[name] = request
        for name, request in self.rows.waiting():
            if waiting.get(name) != request and (row := self.rows.stop_waiting(name)) is not None:
                events.append(Withdrawn(row))
        for name, request in waiting.items():
            if not self.rows.is_waiting(name):
                events.append(Arrival(self.rows.arrive(name, request)))
        for name in self.unreadable.keys() - pending.keys():
            del self.unreadable[name]
        self.aside &= pending.keys()
        return events

    def _request(self, name: str, gang: GANG) -> JobRequest | None:
        """What a job asks for; None, said once, where that cannot be read."""
        try:
            request = JobRequest.of(gang, self.settings.whole, self.settings.unit, self.layout.types)
        except InputError as error:
            if name not in self.unreadable:
                log_event("unreadable", logging.WARNING, job=name, why=str(error))
            self.unreadable[name] = error
            return None
        self.unreadable.pop(name, None)
        return request

    def _request_at_work(self, name: str, gang: GANG) -> JobRequest:
        """What a job at work asks for; of one that cannot be read, what Slurm alone knows of its first component."""
        found = self._request(name, gang)
        if found is not None:
            return found
        bare = (replace(gang[0], comment=""),)
        return JobRequest.of(bare, self.settings.whole, self.settings.unit, self.layout.types)

    def _account(self, at_work: dict[str, GANG], placed: dict[str, Placement]) -> list[Event]:
        """Move runs to where they are and to when they are expected to end, and count what is there and what is free."""
        for name, number in self._run_of.items():
            run = self._runs[number]
            if name in at_work:
                placement, first = placed.get(name, Placement.of([])), at_work[name][0]
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
        busy = {node for gang in at_work.values() for job in gang for node in job.allocated}
        before, self._capacity = self._capacity, kept(self.layout.capacity(self.reading, busy))
        self._free = spare(self._capacity, (run.placement for run in self._runs))
        changes = changed_cells(before, self._capacity)
        if any(amount > 0 for _, _, amount in changes):
            self._freed_at = self.now
        return [CapacityChanged(*cell) for cell in changes]


def _first_submission(reading: ClusterListing) -> int:
    """When the first of the jobs that are there was submitted, now where there is none (ns since 1970)."""
    return min([job.submit for job in reading.jobs], default=time.time_ns())
