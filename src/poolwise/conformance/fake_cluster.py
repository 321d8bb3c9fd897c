"""A cluster for tests that behaves as badly as real clusters: late and refused starts, changing owners, repeated events.

It runs jobs as the simulator does, but its job table grows in the order in which arrivals are reported. `problems` checks the
state independently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from poolwise.arrays import IntArray, immutable
from poolwise.conformance.cases import Case
from poolwise.interfaces import Scheduler
from poolwise.loop import Loop, run_loop
from poolwise.model import (
    Arrival,
    CapacityChanged,
    CommitResult,
    Continuation,
    Decision,
    Decisions,
    Ended,
    Event,
    EventBatch,
    JobTable,
    JobWithdrawn,
    Outcome,
    OwnerJoined,
    OwnerLeft,
    Queue,
    Reject,
    Run,
    Snapshot,
    Start,
    Started,
    Wakeup,
    Workload,
)
from poolwise.model.membership import joined, left, parts_of
from poolwise.performance.combined import Combined
from poolwise.performance.ideal import SimpleModel
from poolwise.platforms.simulated import Simulation
from poolwise.quantities import SECOND, UNKNOWN
from poolwise.random import uniform

_KILLED, _REOPENED = 0.05, 0.1  # shares of the instants after which `survive` kills the loop and reopens the dispatcher
RETRY = 5 * SECOND  # delay of the scheduling pass that the cluster requests after a refusal, as a real one does (ns)


@dataclass(frozen=True)
class Fault:
    """Rates of faults: each number is a probability unless stated otherwise; by default no faults occur.

    Attributes
    ----------
    late : starts whose binding takes up to `late_s` seconds
    conflicts : starts that are refused at once, because another client was faster
    refused : starts that are refused late, after some of their tasks were bound
    twice : instants at which an earlier event is repeated
    withdrawn : jobs that their users cancel while they wait
    unknown : jobs without a requested time
    leaving : number of times that a part of the machine leaves, to come back later as new owners
    draining : number of times that a part of the machine is drained for a while; its runs continue
    recycled : number of times that later jobs reuse the rows of jobs that are gone
    shuffled : whether arrivals of one instant are reported in a different order from that of their ids
    """

    late: float = 0.0
    late_s: float = 120.0
    conflicts: float = 0.0
    refused: float = 0.0
    twice: float = 0.0
    withdrawn: float = 0.0
    unknown: float = 0.0
    leaving: int = 0
    draining: int = 0
    recycled: int = 0
    shuffled: bool = False

    @classmethod
    def of_all_kinds(cls) -> Fault:
        """Return frequent faults of every kind."""
        return cls(0.5, 120.0, 0.1, 0.1, 0.3, 0.05, 0.1, 3, 3, 3, True)


class LateStarts(SimpleModel):
    """Performance model whose setup time is the time to bind a start."""

    def __init__(self) -> None:
        self.late: dict[int, int] = {}  # run -> ns

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return the time (ns) until the start is bound."""
        return self.late.get(run.id, 0)

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return 0."""
        return 0.0


class FakeCluster(Simulation):
    """A cluster with the machine, jobs and performance model of a case, whose jobs are not known beforehand.

    Without faults, a run has the same result as in the simulator. The seed determines the faults.
    """

    def __init__(self, case: Case, faults: Fault | None = None, seed: int = 0) -> None:
        self.faults, self.seed = faults if faults is not None else Fault(), seed
        jobs, rows = case.workload, np.arange(len(case.workload))  # in the order in which arrivals are reported
        if self.faults.shuffled:
            rows = np.lexsort((uniform(seed, "told", rows), jobs.submit))
        requested = jobs.requested[rows]
        if self.faults.unknown:
            requested = np.where(uniform(seed, "unknown", rows) < self.faults.unknown, UNKNOWN, requested)
        self._coming = JobTable(  # all jobs, in the order in which they are reported
            jobs.id[rows],
            jobs.submit[rows],
            requested,
            jobs.tasks[rows],
            {name: column[rows] for name, column in jobs.requests.items()},
            {name: column[rows] for name, column in jobs.attributes.items()},
            draw=rows.astype(np.int64),
            name=[f"job-{id:09d}" for id in jobs.id[rows].tolist()],
        )
        self._binding = LateStarts()
        super().__init__(jobs, case.machine, Combined((self._binding, case.model)), case.model)
        self._durations, self._duration = jobs.duration[rows], jobs.duration[:0]
        self._jobs = self.table = self._coming.taken(rows[:0])
        self.started_ids: list[tuple[int, tuple[int, ...], int, tuple[str, ...]]] = []
        self.done: set[tuple[int, int]] = set()  # (id, task)
        self.gone: set[int] = set()  # ids of rejected and withdrawn jobs
        self._task_counts = dict(zip(jobs.id.tolist(), jobs.tasks.tolist(), strict=True))
        self._count = 0
        self._reported: list[Arrival | Ended] = []
        self._away = 0
        self._drained: set[int] = set()
        self._overdrawn: list[str] = []
        self._take_over: tuple[Event, ...] = ()
        self._recycles = False
        self._schedule_faults(jobs)

    def _schedule_faults(self, jobs: Workload) -> None:
        end = int(jobs.submit.max()) + 3600 * SECOND if len(jobs) else SECOND
        draws = uniform(self.seed, "trouble", np.arange(3 * (self.faults.leaving + self.faults.recycled))).tolist()
        for k in range(self.faults.leaving):
            time = int(draws[3 * k] * end)
            self._push(time, 2, partial(self._leave, draws[3 * k + 1]))
            self._away += 1
        for k in range(self.faults.recycled):
            time = int(draws[3 * (self.faults.leaving + k)] * end)
            self._push(time, 2, self._start_recycling)
        for when, which in uniform(self.seed, "drained", np.arange(2 * self.faults.draining)).reshape(-1, 2).tolist():
            self._push(int(when * end), 2, partial(self._drain, which))
            self._away += 1
        lost = uniform(self.seed, "withdrawn", jobs.id) < self.faults.withdrawn
        for id, submit, is_lost in zip(jobs.id.tolist(), jobs.submit.tolist(), lost.tolist(), strict=True):
            if is_lost:
                self._push(submit + 30 * SECOND, 2, partial(self._cancel, id))

    # Platform

    def events(self) -> Iterator[EventBatch]:
        """Yield the events; after a takeover, the arrival of all waiting jobs comes first."""
        for batch in super().events():
            events, self._take_over = (*self._take_over, *batch.events), ()
            self._reported += [event for event in batch.events if isinstance(event, Arrival | Ended)]
            twice, which = self._chance("twice"), self._chance("which")
            if twice < self.faults.twice and self._reported:
                events = (*events, self._reported[int(which * len(self._reported))])
            yield EventBatch(batch.time, events)
            if self._recycles:  # the loop has handled all earlier events
                self._recycle()

    def commit(self, decisions: Decisions) -> CommitResult:
        """Commit the decisions, except for starts that lose to another client."""
        lost: list[tuple[Decision, str]] = []
        carried_out: list[Decision] = []
        for decision in decisions:
            if isinstance(decision, Start) and self._chance("conflict") < self.faults.conflicts:
                lost.append((decision, "another client was faster"))
            else:
                carried_out.append(decision)
        before = len(self.recorder)
        late = [self._late(before + k) for k in range(sum(isinstance(d, Start) for d in carried_out))]
        outcome = super().commit(Decisions(tuple(carried_out), decisions.next_wakeup))
        if self._drained:
            self._overdrawn += [
                f"{lost_start} does not fit: {why}" for lost_start, why in outcome.rejected if isinstance(lost_start, Start)
            ]
        table = self._jobs
        for start, number in outcome.started:
            owners = tuple(self.machine.owners[o] for o in start.placement.owner.tolist())
            self.started_ids.append((int(table.id[start.job]), start.tasks, self.now, owners))
            delay = late[number - before]
            if delay:
                bad = self._chance("refuse") < self.faults.refused
                self._push(self.now + delay, 2, partial(self._refuse if bad else self._bind, number))
        for decision in outcome.committed:
            if isinstance(decision, Reject):
                self.gone.add(int(table.id[decision.job]))
        if lost or outcome.rejected:
            self._push(self.now + RETRY, 3, self._wake)
        return CommitResult(outcome.committed, (*lost, *outcome.rejected), outcome.started)

    def take_over(self) -> None:
        """Let another loop take over; it first gets the arrival of all waiting jobs."""
        arrivals = [Arrival(job, tuple(sorted(tasks))) for job, tasks in sorted(self._waiting.items()) if tasks]
        self._take_over, self._reported = tuple(arrivals), []
        self._push(self.now + 1, 3, self._wake)

    # Faults

    def _may_grow(self) -> bool:
        """Return whether the machine may grow, because parts of it have left or will leave."""
        return self._away > 0

    def _chance(self, what: str) -> float:
        self._count += 1
        return float(uniform(self.seed, what, self._count)[0])

    def _late(self, number: int) -> int:
        if self._chance("late") < self.faults.late:
            self._binding.late[number] = 1 + int(self._chance("delay") * self.faults.late_s * SECOND)
        return self._binding.late.get(number, 0)

    def _apply(self, event: Any) -> Iterable[Event]:
        """Apply an event, or a fault, to the state; return the events to report to the loop."""
        if callable(event):
            reported: Iterable[Event] = event()
            return reported
        match event:
            case Arrival(position):
                row = slice(position, position + 1)
                self._next_arrival()
                return (self._add_job(self._coming.taken(np.arange(len(self._coming))[row]), self._durations[row]),)
            case Ended(number, job, tasks, Outcome.FINISHED, _) if number in self._runs:
                events = list(super()._apply(event))
                if events:
                    self.done |= {(int(self.table.id[job]), task) for task in tasks}
                return events
        return super()._apply(event)

    def _cancel(self, id: int) -> list[Event]:
        job = next((job for job in self._waiting if int(self.table.id[job]) == id), -1)
        if not self._waiting.get(job) or len(self._waiting[job]) < int(self.table.tasks[job]):
            return []
        del self._waiting[job]
        self.gone.add(id)
        return [JobWithdrawn(job)]

    def _start_recycling(self) -> list[Event]:
        """Let later jobs reuse the rows of jobs that are gone, from now on."""
        self._recycles = True
        return []

    def _wake(self) -> list[Event]:
        return [Wakeup()]

    def _bind(self, number: int) -> list[Event]:
        return [Started(number, self._runs[number].job)] if number in self._runs else []

    def _refuse(self, number: int) -> list[Event]:
        if number not in self._runs:
            return []
        touched: set[int] = set()
        ended = self._end(number, Outcome.REFUSED, True, touched)
        self._wait(ended.job, ended.tasks)
        self._adjust(touched)
        self._push(self.now + RETRY, 3, self._wake)
        return [replace(ended, reason="a task could not be bound")]

    def _spare_part(self, draw: float) -> tuple[int, ...] | None:
        """Draw a part of the machine such that an equal part stays; if there is none, return None and count one fault fewer."""
        here = [part for part in parts_of(self.machine) if self._capacity[list(part)].any()]
        kinds = [self.machine.type[part[0]] for part in here]
        spare = [part for part, kind in zip(here, kinds, strict=True) if kinds.count(kind) > 1]
        if not spare:
            self._away -= 1
            return None
        return spare[int(draw * len(spare))]

    def _leave(self, draw: float) -> list[Event]:
        """Let a part leave if an equal part stays; its runs are lost, and it returns an hour later."""
        part = self._spare_part(draw)
        if part is None:
            return []
        owners = list(part)
        capacity_before, events, touched = self._capacity[owners].copy(), [], set(part)
        for number in sorted({n for owner in part for n in self._runs.occupants(owner)}):
            if set(self._runs[number].placement.owners()) & set(part):
                lost = self._end(number, Outcome.LOST, True, touched)
                self._wait(lost.job, lost.tasks)
                events.append(lost)
        capacity = self._capacity.copy()
        capacity[owners] = 0
        self._capacity = immutable(capacity)
        self._free[owners] = 0
        self.machine = left(self.machine, part)
        self._freed_at = self.now
        self._adjust(touched)
        self._push(self.now + 3600 * SECOND, 2, partial(self._return, part, capacity_before))
        return [*events, *(OwnerLeft(owner) for owner in part)]

    def _return(self, like: tuple[int, ...], capacity: IntArray) -> list[Event]:
        """Let the part that left join again, as new owners."""
        n = self.machine.n_owner
        self.machine = joined(self.machine, like, capacity, f"+{n}")
        self._capacity = immutable(np.concatenate([self._capacity, capacity]))
        self._free = np.concatenate([self._free, capacity])
        self._runs.widen(self._capacity.size)
        self._away -= 1
        self._freed_at = self.now
        return [OwnerJoined(owner) for owner in range(n, self.machine.n_owner)]

    def _drain(self, draw: float) -> list[Event]:
        """Drain a part if an equal part stays; it resumes an hour later."""
        part = self._spare_part(draw)
        if part is None:
            return []
        self._drained |= set(part)
        self._push(self.now + 3600 * SECOND, 2, partial(self._resume, part, self._capacity[list(part)].copy()))
        return self._set_capacity(part, np.zeros_like(self._capacity[list(part)]))

    def _resume(self, part: tuple[int, ...], capacity: IntArray) -> list[Event]:
        self._away -= 1
        self._drained -= set(part)
        return self._set_capacity(part, capacity)

    def _set_capacity(self, part: tuple[int, ...], amounts: IntArray) -> list[Event]:
        owners, capacity = list(part), self._capacity.copy()
        self._free[owners] += amounts - capacity[owners]
        capacity[owners] = amounts
        self._capacity = immutable(capacity)
        self._freed_at = self.now
        return [CapacityChanged(owner, 0, 0) for owner in part]

    def _recycle(self) -> None:
        busy = {run.job for run in self._runs} | {job for job, tasks in self._waiting.items() if tasks}
        self._jobs = self.table = self.table.recycled(busy)
        self._duration, self._history = self._duration[: len(self.table)].copy(), None
        self._waiting = {job: tasks for job, tasks in self._waiting.items() if job in busy}
        self._reported = [event for event in self._reported if event.job in busy]
        self._recycles = False

    # Consistency

    def problems(self, queue: Queue) -> list[str]:
        """Return the errors in the state: wrong amounts, and tasks in wrong states."""
        errors: list[str] = []
        held = np.zeros_like(self._capacity)
        running: set[tuple[int, int]] = set()
        table = self.table
        for run in self._runs:
            run.placement.give_to(held)
            for task in run.tasks:
                name = int(table.id[run.job]), task
                if name in running or name in self.done:
                    errors.append(f"task {name[1]} of job {name[0]} runs twice")
                running.add(name)
        here = [owner for owner in range(len(held)) if owner not in self._drained]
        if (held > self._capacity)[here].any():
            errors.append("more is allocated than the capacity")
        errors += self._overdrawn
        if not np.array_equal(self._capacity - held, self._free):
            errors.append("the free amounts differ from the capacity minus the amounts that runs hold")
        waiting = {(int(table.id[job]), task) for job in queue.jobs.tolist() for task in queue.tasks(job)}
        real = {(int(table.id[job]), task) for job, tasks in self._waiting.items() for task in tasks}
        real = {name for name in real if name[0] not in self.gone}
        if waiting != real:
            errors.append(f"the queue has the extra tasks {sorted(waiting - real)[:3]} and lacks {sorted(real - waiting)[:3]}")
        return errors

    def unserved(self) -> list[int]:
        """Return the ids of all jobs of the case that are neither done, nor rejected, nor withdrawn."""
        return [
            id
            for id, tasks in self._task_counts.items()
            if id not in self.gone and any((id, task) not in self.done for task in range(tasks))
        ]


def survive(scheduler: Scheduler, case: Case, faults: Fault, seed: int = 0) -> tuple[int, list[str]]:
    """Run a scheduler on a cluster with faults; return the number of instants, and the first problems, if any.

    After 5 % of the instants, the loop is killed, and another takes over with its saved state. After 10 %, the dispatcher is
    replaced by a new one, unless the scheduler declares that it keeps state.
    """
    cluster, steps = FakeCluster(case, faults, seed), 0
    limit = 1000 + 100 * int(case.workload.tasks.sum())
    loop = Loop(cluster, scheduler, seed)
    for batch in cluster.events():
        loop.step(batch)
        steps += 1
        if steps > limit:
            return steps, [f"the scheduler requested more than {limit} passes, so the run would never end"]
        if problems := cluster.problems(loop.queue):
            return steps, [f"at {cluster.now} ns: {problem}" for problem in problems]
        chance = float(uniform(seed, "killed", steps)[0])
        if chance < _KILLED:
            saved = Continuation.of(loop.queue, seed).to_json()
            cluster.take_over()
            loop = Loop(cluster, scheduler, seed, Continuation.from_json(saved))
        elif chance < _KILLED + _REOPENED and not scheduler.keeps_state:
            loop.open()
    lost = cluster.unserved()
    return steps, [f"{len(lost)} jobs were never served: {', '.join(map(str, lost[:5]))}"] if lost else []


def calm_starts(scheduler: Scheduler, case: Case, seed: int = 0) -> list[tuple[int, tuple[int, ...], int, tuple[str, ...]]]:
    """Run a scheduler on a cluster without faults; return (job id, tasks, ns, owner names) of each start, in order."""
    cluster = FakeCluster(case)
    run_loop(cluster, scheduler, seed)
    return cluster.started_ids
