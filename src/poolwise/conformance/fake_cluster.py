"""A cluster for tests, with all that reality brings: late and refused starts, owners that come and go, repeated events.

It runs jobs as the simulator does, but behind a table of jobs that grows in the order in which arrivals are told, and it
keeps accounts of its own: `problems` says what is wrong with the state, looked at from outside.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from poolwise.arrays import IntArray, immutable
from poolwise.conformance.cases import Case
from poolwise.conformance.faults import (
    Fault,
    LateStarts,
    PartDrains,
    PartLeaves,
    PartResumes,
    PartReturns,
    PassIsDue,
    StartFails,
    StartIsReal,
    TableShrinks,
    renumbered_event,
    told_order,
)
from poolwise.interfaces import Scheduler
from poolwise.loop import Loop, run_loop
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
    Joined,
    Left,
    Outcome,
    Plan,
    Queue,
    Reject,
    Renumbered,
    Start,
    Started,
    Wake,
    Withdrawn,
)
from poolwise.model.membership import joined, left, parts_of
from poolwise.platforms.simulated import Simulation
from poolwise.random import uniform
from poolwise.units import SECOND, UNKNOWN

RETRY = 5 * SECOND
"""After a refusal the cluster asks for another pass this much later, as a live one does."""


class FakeCluster(Simulation):
    """A cluster whose jobs nobody knows beforehand.

    Parameters
    ----------
    case
        Machine, jobs and how long they take.
    trouble
        What goes wrong, and how often. Without trouble a run has the same result as in the simulator.
    seed
        Seed of the random draws of what goes wrong.
    """

    def __init__(self, case: Case, trouble: Fault | None = None, seed: int = 0) -> None:
        self.trouble, self.seed = trouble if trouble is not None else Fault(), seed
        rows = told_order(case, self.trouble, seed)
        jobs = case.workload
        requested = jobs.requested[rows]
        if self.trouble.unknown:
            requested = np.where(uniform(seed, "unknown", rows) < self.trouble.unknown, UNKNOWN, requested)
        table = JobTable(
            jobs.id[rows],
            jobs.submit[rows],
            requested,
            jobs.tasks[rows],
            {name: column[rows] for name, column in jobs.requests.items()},
            {name: column[rows] for name, column in jobs.attributes.items()},
            draw=rows.astype(np.int64),
            name=[f"job-{id:09d}" for id in jobs.id[rows].tolist()],
        )
        self._binding = LateStarts(case.truth)
        super().__init__(case.machine, jobs, self._binding, case.truth)
        self._jobs, self._duration = table, jobs.duration[rows]  # in rows of their own
        self.table = table.first(0)
        self.started_ids: list[tuple[int, tuple[int, ...], int, tuple[str, ...]]] = []
        self.done: set[tuple[int, int]] = set()  # (id, task)
        self.gone: set[int] = set()  # ids of jobs that were rejected or withdrawn
        self._everyone = dict(zip(jobs.id.tolist(), jobs.tasks.tolist(), strict=True))  # id -> tasks, whatever is renumbered
        self._count = 0
        self._told_before: list[Event] = []
        self._away = 0
        self._drained: set[int] = set()
        self._overdrawn: list[str] = []
        self._take_over: tuple[Event, ...] | None = None
        self._plan_trouble(jobs)

    def _plan_trouble(self, jobs: Any) -> None:
        """Schedule the events of what will go wrong."""
        end = int(jobs.submit.max()) + 3600 * SECOND if len(jobs) else SECOND
        draws = uniform(self.seed, "trouble", np.arange(3 * (self.trouble.leaving + self.trouble.renumbered))).tolist()
        for k in range(self.trouble.leaving):
            time = int(draws[3 * k] * end)
            self._push(time, 2, PartLeaves(draws[3 * k + 1]))
            self._away += 1
        for k in range(self.trouble.renumbered):
            time = int(draws[3 * (self.trouble.leaving + k)] * end)
            self._push(time, 2, TableShrinks())
        for when, which in uniform(self.seed, "drained", np.arange(2 * self.trouble.draining)).reshape(-1, 2).tolist():
            self._push(int(when * end), 2, PartDrains(which))
            self._away += 1
        lost = uniform(self.seed, "withdrawn", jobs.id) < self.trouble.withdrawn
        for row, (id, submit) in enumerate(zip(self._jobs.id.tolist(), self._jobs.submit.tolist(), strict=True)):
            if lost[int(np.flatnonzero(jobs.id == id)[0])]:
                self._push(submit + 30 * SECOND, 2, Withdrawn(row))

    # Platform

    def events(self) -> Iterator[EventBatch]:
        """Yield what happens; a loop that takes over is first told of all that waits."""
        for batch in super().events():
            if self._take_over is not None:
                told, self._take_over = self._take_over, None
                yield EventBatch(batch.time, (*told, *batch.events))
                continue
            events = batch.events
            self._told_before += [event for event in events if isinstance(event, Arrival | Ended)]
            if self._chance("twice") < self.trouble.twice and self._told_before:
                events = (*events, self._told_before[int(self._chance("which") * len(self._told_before))])
            yield EventBatch(batch.time, events)

    def commit(self, plan: Plan) -> CommitResult:
        """Carry out a plan, except for starts in which somebody else is faster."""
        lost: list[tuple[Decision, str]] = []
        kept: list[Decision] = []
        for decision in plan.decisions:
            if isinstance(decision, Start) and self._chance("conflict") < self.trouble.conflicts:
                lost.append((decision, "somebody else was faster"))
            else:
                kept.append(decision)
        before = len(self.recorder)
        late = [self._late(before + k) for k in range(sum(isinstance(d, Start) for d in kept))]
        outcome = super().commit(Plan(tuple(kept), plan.wake_at))
        if self._drained:
            self._overdrawn += [f"{one} does not fit: {why}" for one, why in outcome.rejected if isinstance(one, Start)]
        table = self._jobs
        for start, number in outcome.started:
            owners = tuple(self.machine.owners[o] for o in start.placement.owner.tolist())
            self.started_ids.append((int(table.id[start.job]), start.tasks, self.now, owners))
            delay = late[number - before]
            if delay:
                bad = self._chance("refuse") < self.trouble.refused
                self._push(self.now + delay, 2, StartFails(number) if bad else StartIsReal(number))
        for decision in outcome.committed:
            if isinstance(decision, Reject):
                self.gone.add(int(table.id[decision.job]))
        if lost or outcome.rejected:
            self._push(self.now + RETRY, 3, PassIsDue())
        return CommitResult(outcome.committed, (*lost, *outcome.rejected), outcome.started)

    def take_over(self) -> None:
        """Let another loop take over: it is first told of all that waits."""
        told = [Arrival(job, tuple(sorted(tasks))) for job, tasks in sorted(self._waiting.items()) if tasks]
        self._take_over, self._told_before = tuple(told), []
        self._push(self.now + 1, 3, PassIsDue())

    # Fault

    def _may_grow(self) -> bool:
        """While parts of the machine are away, or will be, the rest may grow."""
        return self._away > 0

    def _chance(self, what: str) -> float:
        """Next random number in [0, 1)."""
        self._count += 1
        return float(uniform(self.seed, what, self._count)[0])

    def _late(self, number: int) -> int:
        """Ns that a start takes to become real."""
        if self._chance("late") < self.trouble.late:
            self._binding.late[number] = 1 + int(self._chance("delay") * self.trouble.late_s * SECOND)
        return self._binding.late.get(number, 0)

    def _apply(self, event: Event) -> Iterable[Event]:
        """Apply an event to the state; returns the events that the loop must be told."""
        match event:
            case Withdrawn(job):
                if not self._waiting.get(job) or len(self._waiting[job]) < int(self.table.tasks[job]):
                    return ()  # it is at work, or partly so
                del self._waiting[job]
                self.gone.add(int(self.table.id[job]))
                return (event,)
            case StartIsReal(number):
                return (Started(number, self._runs[number].job),) if number in self._runs else ()
            case StartFails(number):
                return self._refuse(number)
            case PartLeaves(draw):
                return self._leave(draw)
            case PartReturns():
                return self._return(event)
            case PartDrains(draw):
                return self._drain(draw)
            case PartResumes(owners, capacity):
                return self._resume(owners, capacity)
            case TableShrinks():
                return self._compact()
            case PassIsDue():
                return (Wake(),)
            case Ended(number, job, tasks, Outcome.FINISHED, _) if number in self._runs:
                told = list(super()._apply(event))
                if told:
                    self.done |= {(int(self.table.id[job]), task) for task in tasks}
                return told
        return super()._apply(event)

    def _refuse(self, number: int) -> list[Event]:
        """Undo a start, all of it."""
        if number not in self._runs:
            return []
        touched: set[int] = set()
        ended = self._end(number, Outcome.REFUSED, True, touched)
        self._wait(ended.job, ended.tasks)
        self._adjust(touched)
        self._push(self.now + RETRY, 3, PassIsDue())
        return [replace(ended, reason="a task could not be bound")]

    def _leave(self, draw: float) -> list[Event]:
        """Let a part leave if another like it stays; its runs are lost, and it comes back an hour later."""
        here = [part for part in parts_of(self.machine) if self._capacity[list(part)].any()]
        kinds = [self.machine.type[part[0]] for part in here]
        free_to_go = [part for part, kind in zip(here, kinds, strict=True) if kinds.count(kind) > 1]
        if not free_to_go:
            self._away -= 1
            return []
        part = free_to_go[int(draw * len(free_to_go))]
        owners = list(part)
        had, events, touched = self._capacity[owners].copy(), [], set(part)
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
        self._push(self.now + 3600 * SECOND, 2, PartReturns(part, had))
        return [*events, *(Left(owner) for owner in part)]

    def _return(self, what: PartReturns) -> list[Event]:
        """Let what left join again, behind the others."""
        n = self.machine.n_owner
        self.machine = joined(self.machine, what.like, what.capacity, f"+{n}")
        self._capacity = immutable(np.concatenate([self._capacity, what.capacity]))
        self._free = np.concatenate([self._free, what.capacity])
        self._runs.widen(self._capacity.size)
        self._away -= 1
        self._freed_at = self.now
        return [Joined(owner) for owner in range(n, self.machine.n_owner)]

    def _drain(self, draw: float) -> list[Event]:
        """Let a part take no more work if another like it does; an hour later it does again."""
        here = [part for part in parts_of(self.machine) if self._capacity[list(part)].any()]
        kinds = [self.machine.type[part[0]] for part in here]
        others = [part for part, kind in zip(here, kinds, strict=True) if kinds.count(kind) > 1]
        if not others:
            self._away -= 1
            return []
        part = others[int(draw * len(others))]
        self._drained |= set(part)
        self._push(self.now + 3600 * SECOND, 2, PartResumes(part, self._capacity[list(part)].copy()))
        return self._set_capacity(part, np.zeros_like(self._capacity[list(part)]))

    def _resume(self, part: tuple[int, ...], capacity: IntArray) -> list[Event]:
        """Let a part take work again."""
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

    def _compact(self) -> list[Event]:
        """Renumber the jobs, without those that are over."""
        shown = len(self.table)
        busy = {run.job for run in self._runs} | {job for job, tasks in self._waiting.items() if tasks}
        coming = range(shown, len(self._jobs))
        rows = np.array([*sorted(busy), *coming], dtype=np.int64)
        number = {old: new for new, old in enumerate(rows.tolist())}
        whole = self._jobs.taken(rows)
        self._jobs, self._duration = whole, self._duration[rows]
        self.table = whole.first(len(busy))
        self._waiting = {number[job]: tasks for job, tasks in self._waiting.items() if job in number}
        for run in list(self._runs):
            self._runs.expect(replace(run, job=number[run.job]))
        self._heap = [(t, kind, k, renumbered_event(event, number)) for t, kind, k, event in self._heap]
        self._heap = [entry for entry in self._heap if entry[3] is not None]
        heapq.heapify(self._heap)
        self._arrivals = iter([(int(whole.submit[row]), row) for row in range(len(busy), len(whole))][1:])
        self._told_before = []
        return [Renumbered({old: new for old, new in number.items() if old < shown})]

    # Accounts

    def problems(self, queue: Queue) -> list[str]:
        """Say what is wrong with the state, looked at from outside: amounts, and where each task is."""
        found: list[str] = []
        held = np.zeros_like(self._capacity)
        at_work: set[tuple[int, int]] = set()
        table = self.table
        for run in self._runs:
            run.placement.give_to(held)
            for task in run.tasks:
                name = int(table.id[run.job]), task
                if name in at_work or name in self.done:
                    found.append(f"task {name[1]} of job {name[0]} is at work twice")
                at_work.add(name)
        here = [owner for owner in range(len(held)) if owner not in self._drained]
        if (held > self._capacity)[here].any():
            found.append("more is given away than there is")
        found += self._overdrawn
        if not np.array_equal(self._capacity - held, self._free):
            found.append("what is free is not what the runs leave")
        waiting = {(int(table.id[job]), task) for job in queue.jobs.tolist() for task in queue.tasks(job)}
        real = {(int(table.id[job]), task) for job, tasks in self._waiting.items() for task in tasks}
        real = {name for name in real if name[0] not in self.gone}
        if waiting != real:
            found.append(f"the queue has {sorted(waiting - real)[:3]} too many and {sorted(real - waiting)[:3]} too few")
        return found

    def unserved(self) -> list[int]:
        """Ids of all jobs of the case that are neither done, nor rejected, nor withdrawn."""
        return [
            id
            for id, tasks in self._everyone.items()
            if id not in self.gone and any((id, task) not in self.done for task in range(tasks))
        ]


def survive(
    scheduler: Scheduler, case: Case, trouble: Fault, seed: int = 0, *, killed: float = 0.05, reopened: float = 0.1
) -> tuple[int, list[str]]:
    """Run a scheduler on a cluster in trouble, and look at its accounts after every instant.

    Parameters
    ----------
    killed
        Share of the instants after which the loop is killed and another takes over, with what the first had persisted.
    reopened
        Share of the instants after which the dispatcher is thrown away, if the scheduler does not declare that it remembers.

    Returns
    -------
    steps
        Instants that the loop was told of.
    problems
        What was wrong the first time that anything was, or at the end; empty if nothing was.
    """
    cluster, steps = FakeCluster(case, trouble, seed), 0
    limit = 1000 + 100 * int(case.workload.tasks.sum())
    loop = Loop(cluster, scheduler, seed)
    for batch in cluster.events():
        loop.apply_events(batch)
        steps += 1
        if steps > limit:
            return steps, [f"it asked for more than {limit} passes, so the run would never end"]
        if problems := cluster.problems(loop.queue):
            return steps, [f"at {cluster.now} ns: {problem}" for problem in problems]
        chance = float(uniform(seed, "killed", steps)[0])
        if chance < killed:
            kept = Continuation.of(loop.queue, seed).to_json()
            cluster.take_over()
            loop = Loop(cluster, scheduler, seed, Continuation.from_json(kept))
        elif chance < killed + reopened and not scheduler.remembers:
            loop.open()
    lost = cluster.unserved()
    return steps, [f"{len(lost)} jobs were never served: {', '.join(map(str, lost[:5]))}"] if lost else []


def calm_starts(scheduler: Scheduler, case: Case, seed: int = 0) -> list[tuple[int, tuple[int, ...], int, tuple[str, ...]]]:
    """Run a scheduler on a cluster without trouble: (job id, tasks, start in ns, owners' names) of every start, in order."""
    cluster = FakeCluster(case)
    run_loop(cluster, scheduler, seed)
    return cluster.started_ids
