"""The promises of a scheduler."""

from __future__ import annotations

import numpy as np

from poolwise.conformance.cases import Case, devices, modules, on_those_that_suit, racks, state, units, walk
from poolwise.conformance.findings import DETERMINISTIC, PICKLES, RUNS, UNCHANGED, Broken, Check, Findings
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Machine, Plan, Queue, Schedule, Snapshot, Workload

CAPACITY = "respects capacity"
SUBMITTED = "starts only what waits"
RETURNED = "gives everything back"
SERVED = "serves or rejects every job"
WARM = "decides alike warm and freshly opened"


def check_scheduler(scheduler: Scheduler, case: Case | None = None, seed: int = 0) -> tuple[Check, ...]:
    """Run a scheduler on small overloaded machines and look at every pass.

    Parameters
    ----------
    case
        Machine and workload of your own. By default racks with memory pools, shared nodes with devices, shared nodes
        beside a memory pool, and processing units, of which a scheduler may decline all but one with an InputError.
    """
    findings = Findings(RUNS, PICKLES, DETERMINISTIC, UNCHANGED, WARM, CAPACITY, SUBMITTED, RETURNED, SERVED)

    def run_twice(case: Case) -> None:
        first = _run(scheduler, case, seed, findings)
        for other, where in ((scheduler, "a second run of the same seed"), (copy, "a run of its pickled copy")):
            again, _, _ = walk(case, lambda queue, snapshot, changes: None, other, seed=seed)
            findings.require(DETERMINISTIC, _same(first, again), f"{where} gave another schedule")

    with findings.running():
        copy = findings.pickled(scheduler)
        on_those_that_suit((racks(), devices(), modules(), units()) if case is None else (case,), run_twice)
    return findings.checks()


def _run(scheduler: Scheduler, case: Case, seed: int, findings: Findings) -> Schedule:
    """Run once under watch."""
    workload, limit = case.workload, 200 + 20 * int(case.workload.tasks.sum())
    passes = 0

    def visit(queue: Queue, snapshot: Snapshot, changes: Changes) -> None:
        nonlocal passes
        passes += 1
        if passes > limit:
            findings.blame(SERVED, f"it asked for more than {limit} passes, so the run would never end")
            raise Broken

    warm = _Compared(scheduler, case, seed, findings)
    schedule, loop, last = walk(case, visit, warm, seed=seed)
    for decision, why in loop.refused:
        promise = SUBMITTED if why == "tasks are not waiting" else CAPACITY
        findings.blame(promise, f"{decision} was refused: {why}")
    early = np.flatnonzero(schedule.start < workload.submit[schedule.job])
    findings.require(SUBMITTED, not len(early), f"run {early[:1]} began before its job was submitted")
    _replay(schedule, findings)
    findings.require(RETURNED, bool((last.free == last.capacity).all()), "not all capacity is free when the last run has ended")
    names = ", ".join(str(int(workload.id[job])) for job in loop.waiting[:5])
    findings.require(SERVED, not loop.waiting, f"{len(loop.waiting)} jobs never started on an idle machine: {names} ...")
    return schedule


class _Compared(Scheduler, Dispatcher):
    """A scheduler whose every decision is compared with that of a freshly opened one."""

    def __init__(self, scheduler: Scheduler, case: Case, seed: int, findings: Findings) -> None:
        self.scheduler, self.case, self.seed, self.findings = scheduler, case, seed, findings

    def open(self, machine: Machine, workload: Workload, seed: int) -> Dispatcher:
        """Begin the run that is watched."""
        self.warm = self._fresh()
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Ask both, and look at what they leave behind."""
        before = state(queue, snapshot)
        plan = self.warm.schedule(queue, snapshot, changes)
        if state(queue, snapshot) != before:
            self.findings.blame(UNCHANGED, f"its plan at {snapshot.now} ns changed the queue or the snapshot")
            raise Broken
        other = self._fresh().schedule(queue, snapshot, changes)
        self.findings.require(
            WARM, plan == other, f"at {snapshot.now} ns the warm one decided {plan}, a freshly opened one {other}"
        )
        return plan

    def _fresh(self) -> Dispatcher:
        return self.scheduler.open(self.case.machine, self.case.workload, self.seed)


def _replay(schedule: Schedule, findings: Findings) -> None:
    """Add up what the runs held at every instant."""
    held = np.zeros_like(schedule.machine.capacity)
    events = sorted(
        [(int(end), 0, k) for k, end in enumerate(schedule.end.tolist()) if end >= 0]
        + [(int(start), 1, k) for k, start in enumerate(schedule.start.tolist())]
    )
    for time, starts, k in events:
        for owner, resource, amount in schedule.placement_of(k):
            held[owner, resource] += amount if starts else -amount
        if (held > schedule.machine.capacity).any():
            findings.blame(CAPACITY, f"more was given away than there is at {time} ns")
            return


def _same(one: Schedule, other: Schedule) -> bool:
    columns = ("job", "start", "end", "offset", "owner", "resource", "amount")
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)
    return arrays and one.rejected == other.rejected and one.waiting == other.waiting
