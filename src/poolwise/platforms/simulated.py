"""The reference simulator: a discrete-event platform that supports any scheduler."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poolwise.arrays import IntArray, immutable
from poolwise.errors import InputError, PolicyError
from poolwise.interfaces import PerformanceModel
from poolwise.loop import LoopResult
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Decision,
    Decisions,
    Ended,
    Event,
    EventBatch,
    Initial,
    JobTable,
    Machine,
    MemoryInUse,
    Outcome,
    Placement,
    Reject,
    Resize,
    Run,
    Schedule,
    Snapshot,
    Start,
    Stop,
    Wait,
    Wakeup,
    Workload,
)
from poolwise.model.capacity_check import why_no_resize, why_no_room
from poolwise.model.history import RunHistory
from poolwise.model.run_table import RunTable
from poolwise.model.table_columns import grown
from poolwise.platforms.progress import RemainingPhases, RunPace, RunProgress
from poolwise.platforms.recorder import Recorder
from poolwise.quantities import HORIZON, NEVER

END, MEMORY, ARRIVAL, _CAPACITY, _WAKE = range(5)  # the order of events within an instant


@dataclass(frozen=True, slots=True)
class Disturbance:
    """A change of capacity at a time (ns): a node lost or repaired, a pool that grows."""

    time: int
    owner: int
    resource: int
    amount: int


@dataclass(frozen=True, slots=True)
class _Fetched:
    """Event: a run has fetched its data and begins its work; schedulers are not notified."""

    run: int


def beyond_horizon() -> InputError:
    """Return the error for a run whose clock passes `HORIZON`, the same in every engine."""
    return InputError(
        "the simulation runs beyond 290 years, the range of its clock",
        field="submit",
        remedy="correct the rows with the latest submission or the longest runtime",
    )


def ended_before(workload: Workload, job: int) -> InputError:
    """Return the error for an initial run (job row) that would have ended before the initial time, the same in every engine."""
    problem = f"job {workload.table.name(job)} would have ended before the initial state"
    return InputError(problem, field="duration", remedy="increase its duration, or remove the job")


class Simulation:
    """A simulated machine and the jobs that run on it."""

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        model: PerformanceModel,  # of the true runtimes
        estimate: PerformanceModel | None = None,  # of the scheduler's estimates; `model` if not given
        *,
        disturbances: Sequence[Disturbance] = (),  # changes of capacity
        requeue: bool = True,  # whether jobs that lose their capacity run again from the beginning, or are lost
        pass_per_event: bool = False,  # one pass for each event, not for each instant, as in some published simulators
        initial: Initial | None = None,  # initial runs and the time of this state
    ) -> None:
        self.machine = machine
        self._jobs, self._duration = workload.table, workload.duration
        self.model, self.estimate = model, estimate if estimate is not None else model
        self.requeue, self.pass_per_event = requeue, pass_per_event
        self.recorder = Recorder()
        self.table = self._jobs.first(0)
        self._exact_estimate = self.model is self.estimate and np.array_equal(workload.duration, workload.requested)
        self.now, self._freed_at = 0, -1
        self._capacity, self._free = immutable(machine.capacity), machine.capacity.copy()
        self._runs = RunTable(machine.capacity.size)
        self._history: RunHistory | None = RunHistory()
        self._progress: dict[int, RunProgress] = {}
        self._in_use: MemoryInUse | None = None
        self._waiting: dict[int, set[int]] = {}  # tasks by row; empty before the job arrives
        self._sequence = 0
        self._next_wakeup: int | None = None
        self._heap: list[tuple[int, int, int, Any]] = []
        self._pending_gains = 0  # future changes that add capacity
        running = self._begin(initial, workload) if initial is not None else frozenset()
        rows = ((max(submit, self.now), row) for row, submit in enumerate(workload.submit.tolist()) if row not in running)
        self._arrivals: Iterator[tuple[int, int]] = iter(rows)
        self._next_arrival()
        for change in disturbances:
            self._push(change.time, _CAPACITY, CapacityChanged(change.owner, change.resource, change.amount))
            self._pending_gains += change.amount > 0

    def _begin(self, initial: Initial, workload: Workload) -> frozenset[int]:
        """Start the initial runs, each at its own time; return their jobs. Raise InputError if one of them cannot run."""
        self.table.show(int(np.searchsorted(workload.submit, initial.now, side="right")))
        for run in initial.runs:
            self.now, tasks = run.start, tuple(range(int(workload.tasks[run.job])))
            self._waiting[run.job] = set(tasks)
            start = Start(run.job, tasks, run.placement)
            if why := self._why_not(start):
                raise InputError(f"job {workload.table.name(run.job)} cannot be running: {why}", field="initial")
            self._adjust(set(self._runs.touched(self._start(start))))
        self.now = initial.now
        if self._heap and self._heap[0][0] < self.now:
            raise ended_before(workload, self._heap[0][3].job)
        return frozenset(run.job for run in initial.runs)

    # Platform

    def events(self) -> Iterator[EventBatch]:
        """Yield the events instant by instant: ends, arrivals, changes of capacity, then wake-ups."""
        while self._heap:
            self.now = self._heap[0][0]
            if self.now > HORIZON:
                raise beyond_horizon()
            events: list[Event] = []
            while self._heap and self._heap[0][0] == self.now:
                if events and self.pass_per_event:
                    break
                _, kind, _, event = heapq.heappop(self._heap)
                if kind == ARRIVAL:
                    self._next_arrival()
                events.extend(self._apply(event))
            if events:
                yield EventBatch(self.now, tuple(events))

    def snapshot(self) -> Snapshot:
        """Return the current state as schedulers see it."""
        return Snapshot(
            self.now,
            self.machine,
            self.table,
            self._capacity,
            self._free,
            self._runs,
            self.estimate,
            self._believed_done,
            may_grow=self._may_grow(),
            freed_at=self._freed_at,
            history=self._history,
            in_use=self._in_use,
        )

    def schedule(self, workload: Workload, machine: Machine, loop: LoopResult) -> Schedule:
        """Return the schedule of the run, for the simulated machine and workload."""
        return self.recorder.schedule(workload, machine, loop)

    def _may_grow(self) -> bool:
        return self._pending_gains > 0

    def _true_snapshot(self) -> Snapshot:
        """Return the current state with the true work and performance model."""
        return Snapshot(
            self.now,
            self.machine,
            self._jobs,
            self._capacity,
            self._free,
            self._runs,
            self.model,
            self._work_done,
            work=self._duration,
            in_use=self._in_use,
        )

    def commit(self, decisions: Decisions) -> CommitResult:
        """Carry out decisions in order, then update the pace of all affected runs once."""
        committed: list[Decision] = []
        rejected: list[tuple[Decision, str]] = []
        started: list[tuple[Start, int]] = []
        touched: set[int] = set()
        resized: set[int] = set()
        for decision in decisions:
            match decision:
                case Start():
                    if why := self._why_not(decision):
                        rejected.append((decision, why))
                        continue
                    number = self._start(decision)
                    started.append((decision, number))
                    touched.update(self._runs.touched(number))
                case Stop(number, requeue, _):
                    if number not in self._runs:
                        rejected.append((decision, "the run is over"))
                        continue
                    self._push(self.now, END, self._end(number, Outcome.STOPPED, requeue, touched))
                case Resize(number, placement):
                    over = "" if number in self._runs else "the run is over"
                    if why := over or why_no_resize(self._runs[number], placement, self.machine, self._free):
                        rejected.append((decision, why))
                        continue
                    self._resize(number, placement, touched)
                    resized.add(number)
                case Reject(job):
                    self._waiting.pop(job, None)
                case Wait():
                    pass
            committed.append(decision)
        self._adjust(touched, resized)
        self._next_wakeup = decisions.next_wakeup
        if decisions.next_wakeup is not None:
            if decisions.next_wakeup <= self.now:
                raise PolicyError(
                    f"next_wakeup {decisions.next_wakeup} is not after now ({self.now}): the simulation would not advance"
                )
            self._push(decisions.next_wakeup, _WAKE, Wakeup())
        return CommitResult(tuple(committed), tuple(rejected), tuple(started))

    # Events

    def _add_job(self, job: JobTable, duration: IntArray) -> Arrival:
        """Append a submitted job, given as one row, to a table of only the jobs that have arrived; `duration`, (1,), in ns."""
        (row,) = self._jobs.append(job)
        if row == len(self._duration):
            self._duration = grown(self._duration, row, duration)[: row + 1]
        self._duration[row] = duration[0]
        self._waiting[row] = set(range(int(self._jobs.tasks[row])))
        return Arrival(row)

    def _push(self, time: int, kind: int, event: Any) -> None:
        self._sequence += 1
        heapq.heappush(self._heap, (time, kind, self._sequence, event))

    def _next_arrival(self) -> None:
        for submit, job in self._arrivals:
            self._push(submit, ARRIVAL, Arrival(job))
            return

    def _apply(self, event: Any) -> Iterable[Event]:
        """Apply an event to the state; return the events that the loop receives."""
        match event:
            case _Fetched(number):
                self._fetched(number)
                return ()
            case Ended(number, _, _, Outcome.FINISHED, _):
                progress = self._progress.get(number)
                if progress is None or progress.end != self.now:
                    return ()  # superseded: the run changed pace or is gone
                touched: set[int] = set()
                ended = self._end(number, Outcome.FINISHED, False, touched)
                self._adjust(touched)
                return (ended,)
            case Ended(_, job, tasks, _, True):
                self._wait(job, tasks)  # only now, so that a pass cannot restart a run that it stops
            case Arrival(job):
                self.table.show(job + 1)
                self._waiting[job] = set(range(int(self._jobs.tasks[job])))
            case CapacityChanged():
                return self._change_capacity(event)
            case Wakeup() if self._next_wakeup != self.now:
                return ()  # superseded by a later pass
        return (event,)

    def _change_capacity(self, event: CapacityChanged) -> list[Event]:
        """Change a capacity; if it is overcommitted afterwards, the most recently started runs there are lost."""
        cell = (event.owner, event.resource)
        self._pending_gains -= event.amount > 0
        self._freed_at = self.now
        amount = max(event.amount, -int(self._capacity[cell]))
        capacity = self._capacity.copy()
        capacity[cell] += amount
        self._capacity = immutable(capacity)
        self._free[cell] += amount
        events: list[Event] = [event]
        touched: set[int] = {event.owner}
        while self._free[cell] < 0:
            victims = [n for n in self._runs.occupants(event.owner) if self._holds(n, cell)]
            lost = self._end(victims[-1], Outcome.LOST, self.requeue, touched)
            if self.requeue:
                self._wait(lost.job, lost.tasks)
            events.append(lost)
        self._adjust(touched)
        return events

    def _holds(self, number: int, cell: tuple[int, int]) -> bool:
        placement = self._runs[number].placement
        return bool(((placement.owner == cell[0]) & (placement.resource == cell[1]) & (placement.amount > 0)).any())

    # Runs

    def _wait(self, job: int, tasks: tuple[int, ...]) -> None:
        self._waiting.setdefault(job, set()).update(tasks)

    def _why_not(self, start: Start) -> str:
        """Return why a start cannot be committed, empty if it can."""
        tasks = set(start.tasks)
        if not tasks or len(tasks) < len(start.tasks) or not tasks <= self._waiting.get(start.job, set()):
            return "tasks are not waiting"
        return why_no_room(start.placement, self._free)

    def _start(self, start: Start) -> int:
        placement = start.placement
        placement.take_from(self._free)
        self._waiting[start.job].difference_update(start.tasks)
        number = self.recorder.started(start.job, len(start.tasks), self.now, placement)
        true, seen = self._true_snapshot(), self.snapshot()
        run = Run(number, start.job, start.tasks, placement, self.now, self.now)
        if (fetch := self.model.fetch(run, true)) is not None:
            run = replace(run, fetch=fetch)
        self._runs.add(run, self._cells(placement), self._speed_depends_on(placement, true, seen))
        course = RemainingPhases.begin(self.model, run, true)
        self._progress[number] = RunProgress(
            course, course.copy() if self._exact_estimate else RemainingPhases.begin(self.estimate, run, seen)
        )
        self._pace(run, true, seen)
        return number

    def _resize(self, number: int, placement: Placement, touched: set[int]) -> None:
        touched.update(self._runs.touched(number))
        run = replace(self._runs[number], placement=placement)
        self._runs[number].placement.give_to(self._free)
        placement.take_from(self._free)
        self._runs.move(run, self._cells(placement), self._speed_depends_on(placement, self._true_snapshot(), self.snapshot()))
        touched.update(self._runs.touched(number))
        self.recorder.resized(number, self.now, placement)
        self._freed_at = self.now

    def _cells(self, placement: Placement) -> IntArray:
        return placement.owner * len(self.machine.resources) + placement.resource

    def _speed_depends_on(self, placement: Placement, true: Snapshot, seen: Snapshot) -> tuple[int, ...]:
        """Return the owners whose occupancy affects the pace of a run, true or estimated."""
        sensitive = self.model.touches(placement, true)
        return sensitive if self.estimate is self.model else (*sensitive, *self.estimate.touches(placement, seen))

    def _fetched(self, number: int) -> None:
        """Begin the work of a run if it has fetched its data; other runs get its share of the links from now on."""
        progress = self._progress.get(number)
        if progress is None or progress.end != self.now or self._runs[number].fetch is None:
            return  # superseded: the fetching changed pace, or the run is gone
        touched = set(self._runs.touched(number))
        run = self._runs.fetched(number)
        progress.fetched(self.now)
        self._pace(run, self._true_snapshot(), self.snapshot())
        self._adjust(touched)

    def _end(self, number: int, outcome: Outcome, requeue: bool, touched: set[int]) -> Ended:
        touched.update(self._runs.touched(number))
        run = self._runs.remove(number)
        del self._progress[number]
        run.placement.give_to(self._free)
        self.recorder.ended(number, self.now, outcome)
        if self._history is not None and outcome is not Outcome.REFUSED:
            self._history.add(run.job, run.start, self.now)
        self._freed_at = self.now
        return Ended(number, run.job, run.tasks, outcome, requeue)

    # Pace

    def _adjust(self, touched: set[int], resized: Set[int] = frozenset()) -> None:
        """Update the pace of all runs that depend on the touched owners, and of runs whose placement changed."""
        here = {n for n in resized if n in self._runs}
        numbers = sorted(here.union(n for owner in touched for n in self._runs.sensitive(owner)))
        if not numbers:
            return
        true, seen = self._true_snapshot(), self.snapshot()
        for number in numbers:
            self._pace(self._runs[number], true, seen)

    def _pace(self, run: Run, true: Snapshot, seen: Snapshot) -> None:
        """Update the pace of a run, and its end if it moved; the estimated progress advances at the estimated pace."""
        progress = self._progress[run.id]
        if progress.end == self.now:
            return  # it ends at this instant: rounding after a change of pace must not move the end
        pace, believed = self._paces(run, true, seen)
        moved = progress.true.set_pace(self.now, pace)
        if not (progress.believed.set_pace(self.now, believed) or moved or progress.end < 0):
            return
        expected = min(progress.believed.end, HORIZON)
        if expected != run.expected_end:
            self._runs.expect(Run(run.id, run.job, run.tasks, run.placement, run.start, expected, run.fetch))
        end = progress.true.phase_end
        if end != progress.end:
            progress.end = end
            if end == NEVER:
                return
            over = Ended(run.id, run.job, run.tasks, Outcome.FINISHED) if run.fetch is None else _Fetched(run.id)
            self._push(end, END, over)

    def _paces(self, run: Run, true: Snapshot, seen: Snapshot) -> tuple[RunPace, RunPace]:
        pace = RunPace.of(self.model, run, true)
        return pace, pace if self._exact_estimate else RunPace.of(self.estimate, run, seen)

    def _work_done(self, number: int, now: int) -> float:
        """Return the work that a run has done by `now`, in reference ns."""
        return self._progress[number].true.done(int(self._duration[self._runs[number].job]), now)

    def _believed_done(self, number: int, now: int) -> float:
        """Return the work that a run is estimated to have done by `now`, in reference ns."""
        return self._progress[number].believed.done(int(self._jobs.requested[self._runs[number].job]), now)
