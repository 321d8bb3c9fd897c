"""Checks of a scheduler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.conformance.cases import Case, Watched, check_suitable_cases, devices, modules, racks, state, units, walk
from poolwise.conformance.fake_cluster import Fault, survive
from poolwise.conformance.findings import DETERMINISTIC, PICKLES, RUNS, UNCHANGED, Check, Findings
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decisions, Machine, Queue, Schedule, Snapshot
from poolwise.platforms.deferred_arrivals import columns_of

CAPACITY = "respects capacity"
SUBMITTED = "starts only waiting tasks"
RETURNED = "releases all resources"
SERVED = "serves or rejects every job"
WARM = "decides alike before and after it is reopened"
CLUSTER = "stays consistent on a cluster with faults"
BLIND = "depends neither on real durations nor on future jobs"
SCHEDULER_PROMISES = (RUNS, PICKLES, DETERMINISTIC, UNCHANGED, WARM, BLIND, CLUSTER, CAPACITY, SUBMITTED, RETURNED, SERVED)


def check_scheduler(scheduler: Scheduler, case: Case | None = None, seed: int = 0) -> tuple[Check, ...]:
    """Check a scheduler on small overloaded machines, pass by pass.

    Your own `case` replaces the default cases: racks with memory pools, shared nodes with devices, shared nodes with a memory
    pool, and processing units. A scheduler may decline all but one of these with an InputError. Returns one `Check` per
    promise.
    """
    findings = Findings(*SCHEDULER_PROMISES)

    def run_twice(case: Case) -> None:
        first = _run(scheduler, case, seed, findings)
        for other, where in ((scheduler, "a second run of the same seed"), (copy, "a run of its pickled copy")):
            again, _, _ = walk(case, lambda queue, snapshot, changes: None, other, seed=seed)
            findings.require(DETERMINISTIC, _same(first, again), f"{where} gave another schedule")
        _look_ahead(scheduler, case, seed, findings)
        _, problems = survive(scheduler, case, Fault.of_all_kinds(), seed)
        findings.require(CLUSTER, not problems, "; ".join(problems))

    with findings.running():
        copy = findings.pickled(scheduler)
        check_suitable_cases((racks(), devices(), modules(), units()) if case is None else (case,), run_twice)
    return findings.checks()


def _run(scheduler: Scheduler, case: Case, seed: int, findings: Findings) -> Schedule:
    workload, limit = case.workload, 200 + 20 * int(case.workload.tasks.sum())
    passes = 0

    def visit(queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        nonlocal passes
        passes += 1
        if passes > limit:
            findings.demand(SERVED, False, f"it requested more than {limit} passes, so the run would never end")

    warm = _Compared(scheduler, findings)
    schedule, loop, last = walk(case, visit, warm, seed=seed)
    for decision, why in loop.refused:
        promise = SUBMITTED if why == "tasks are not waiting" else CAPACITY
        findings.blame(promise, f"the platform refused {decision}: {why}")
    early = np.flatnonzero(schedule.start < workload.submit[schedule.job])
    findings.require(SUBMITTED, not len(early), f"run {early[:1]} began before its job was submitted")
    _replay(schedule, findings)
    findings.require(RETURNED, bool((last.free == last.capacity).all()), "some capacity is still allocated after the last run")
    names = ", ".join(str(int(workload.id[job])) for job in loop.waiting[:5])
    findings.require(SERVED, not loop.waiting, f"{len(loop.waiting)} jobs never started on an idle machine: {names} ...")
    return schedule


class _Compared(Watched):
    """A scheduler whose decisions are compared with those of a new dispatcher, which gets no changes but explains waits."""

    def __init__(self, scheduler: Scheduler, findings: Findings) -> None:
        self.scheduler, self.findings = scheduler, findings

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run of the scheduler."""
        self.machine, self.seed = machine, seed
        return super().open(machine, seed)

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Decide with both dispatchers, and compare the decisions."""
        before = state(queue, snapshot)
        decisions = self.dispatcher.schedule(queue, snapshot, changes)
        same = state(queue, snapshot) == before
        self.findings.demand(UNCHANGED, same, f"its pass at {snapshot.now} ns changed the queue or the snapshot")
        if not self.scheduler.keeps_state:
            explain = Changes(explain=frozenset(queue.jobs.tolist()))
            other = self.scheduler.open(self.machine, self.seed).schedule(queue, snapshot, explain)
            own, fresh = replace(decisions, reasons={}), replace(other, reasons={})
            problem = (
                f"at {snapshot.now} ns it decided {own}, but a newly opened dispatcher that explains waits decided {fresh}"
            )
            self.findings.require(WARM, own == fresh, problem)
        return decisions


def _look_ahead(scheduler: Scheduler, case: Case, seed: int, findings: Findings) -> None:
    """Change the unknown future, and compare the decisions up to the instant at which the change becomes visible."""
    workload = case.workload
    reference = _PlanLog(scheduler)
    walk(case, reference.record, reference, seed=seed)
    slow = replace(workload, duration=np.where(np.arange(len(workload)) % 2, 2 * workload.duration, workload.duration))
    fewer = replace(workload, **columns_of(workload, np.arange((len(workload) + 1) // 2)))
    for other, what in ((slow, "real durations"), (fewer, "future jobs")):
        log = _PlanLog(scheduler)
        walk(replace(case, workload=other), log.record, log, seed=seed)
        until = reference.parts_from(
            log, int(workload.submit[len(fewer)]) if other is fewer and len(fewer) < len(workload) else None
        )
        mine, others = reference.before(until), log.before(until)
        first = next((time for (time, a), (_, b) in zip(mine, others, strict=False) if a != b), -1)
        same = first < 0 and len(mine) == len(others)
        findings.require(BLIND, same, f"its decisions depend on {what}: they differ from {first} ns on")


class _PlanLog(Watched):
    """A scheduler that records its decisions, and the current runs in each pass."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.recorded: list[tuple[int, Decisions]] = []
        self.running: list[tuple[int, tuple[int, ...]]] = []

    def record(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        """Record the running runs."""
        self.running.append((snapshot.now, tuple(run.id for run in snapshot.runs())))

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Decide, and record the decisions."""
        decisions = self.dispatcher.schedule(queue, snapshot, changes)
        self.recorded.append((snapshot.now, decisions))
        return decisions

    def parts_from(self, other: _PlanLog, at_latest: int | None) -> int:
        """Return the time (ns) of the first pass before which different runs had ended, or `at_latest` if that is earlier."""
        pairs = zip(self.running, other.running, strict=False)
        instants = [min(a[0], b[0]) for a, b in pairs if a != b]
        ends = [time for time in (at_latest, *instants[:1]) if time is not None]
        return min(ends, default=self.running[-1][0] + 1 if self.running else 0)

    def before(self, until: int) -> list[tuple[int, Decisions]]:
        """Return the decisions made before an instant."""
        return [(time, decisions) for time, decisions in self.recorded if time < until]


def _replay(schedule: Schedule, findings: Findings) -> None:
    """Sum the amounts that runs held at every instant."""
    held, rows = np.zeros_like(schedule.machine.capacity), schedule.holdings
    ended = rows.end >= 0
    time = np.concatenate([rows.end[ended], rows.begin])
    cell = np.concatenate([np.flatnonzero(ended), np.arange(len(rows.begin))])
    sign = np.repeat([-1, 1], [int(ended.sum()), len(rows.begin)])
    for k in np.lexsort((sign, time)).tolist():  # releases first
        findings.tested(CAPACITY)
        row = int(cell[k])
        held[rows.owner[row], rows.resource[row]] += int(sign[k]) * int(rows.amount[row])
        if (held > schedule.machine.capacity).any():
            findings.blame(CAPACITY, f"at {time[k]} ns more is allocated than the capacity")
            return


def _same(schedule: Schedule, other: Schedule) -> bool:
    columns = ("job", "start", "end", "offset", "owner", "resource", "amount")
    arrays = all(np.array_equal(getattr(schedule, name), getattr(other, name)) for name in columns)
    return arrays and schedule.rejected == other.rejected and schedule.waiting == other.waiting
