"""Explanation of a wait: a replay up to the start of one job that examines each pass in which it keeps waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.simulate import platform_of
from poolwise.errors import InputError, PolicyError
from poolwise.explain.explanation import Explanation
from poolwise.explain.replay import Replay
from poolwise.interfaces import Dispatcher, PerformanceModel, Platform, Scheduler, reason_of, rule_of
from poolwise.loop import run_loop
from poolwise.metrics import Outcomes
from poolwise.metrics.outcomes import Status
from poolwise.model import (
    Changes,
    CommitResult,
    EventBatch,
    Machine,
    Placement,
    Plan,
    Queue,
    Reason,
    Reject,
    Resize,
    Snapshot,
    Start,
    Stop,
    Workload,
)
from poolwise.model.argument_order import check_workload_and_machine
from poolwise.performance.ideal import Ideal
from poolwise.platforms.failures import draw_failures
from poolwise.platforms.simulated import Simulation

NEAREST = 5
"""Number of nearby ids that the error for an unknown job names."""


def explain_wait(
    workload: Workload,
    machine: Machine,
    scheduler: Scheduler,
    job: int,
    *,
    truth: PerformanceModel | None = None,
    estimate: PerformanceModel | None = None,
    seed: int = 0,
    outcomes: Outcomes | None = None,
) -> Explanation:
    """Explain why a job waited, pass by pass.

    Where the compiled engine can run the workload, its schedule is replayed and the scheduler is asked only in the passes of
    the wait. Otherwise the scheduler decides the whole run again.

    Parameters
    ----------
    workload, machine
        Workload and machine of the run.
    scheduler
        Scheduler of the run; `list_scheduler` makes one from names.
    job
        Id of the job.
    truth, estimate, seed
        Performance models and random seed of the run, as in `simulate`; the models are ideal if not given.
    outcomes
        Recorded outcomes of the run that is explained; the replay is compared with them.

    Returns
    -------
    Explanation

    Raises
    ------
    TypeError
        Workload and machine are swapped, or of another type.
    InputError
        No job has this id, the workload is a closed loop, or the replay differs from the recorded outcomes.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "10 s"], ["1 min", "1 min"], requests={"nodes": [2, 1]})
    >>> found = poolwise.explain_wait(workload, poolwise.Machine.flat(2), poolwise.list_scheduler(), job=2)
    >>> found.wait // 10**9, [episode.reason.resource for episode in found.episodes]
    (50, ['nodes'])
    """
    check_workload_and_machine("explain_wait", workload, machine)
    row = find_job(workload, job)
    if workload.closed_loop:
        raise InputError(
            "waits in a closed loop cannot be explained: submissions follow from the schedule",
            field="closed_loop",
            remedy="explain a run without it",
        )
    truth = truth if truth is not None else Ideal()
    machine, failing, requeue = draw_failures(machine, workload, seed)
    decided: Scheduler = scheduler
    parts = RunSpec(machine, workload, scheduler, truth, estimate if estimate is not None else truth, seed, failing, requeue)
    rule = rule_of(scheduler)
    warm_up = 0 if rule is None else rule.warm_up
    if not list_scheduling.unsupported(parts):
        schedule, _ = list_scheduling.replay(parts)
        if outcomes is not None:
            _check_starts(Outcomes.of(schedule), outcomes)
        decided = Replay(schedule, warm_up)
    for part in (scheduler, truth, estimate):
        if part is not None:
            part.check(machine, workload.table)
    witness = _Witness(decided, scheduler, row)
    simulated = platform_of(workload)(machine, workload, truth, estimate, disturbances=failing, requeue=requeue)
    loop = run_loop(_Excerpt(simulated, witness), witness, seed)
    for decision, why in loop.refused:
        if isinstance(decision, Start) and (decision.job == row or decided is not scheduler):
            raise PolicyError(f"the machine refused to start the job in row {decision.job}: {why}")
    found = Explanation(
        workload.job(row), machine, tuple(witness.passes), witness.until, witness.placement, loop.rejected.get(row, "")
    )
    if outcomes is not None:
        _check(found, witness.began, outcomes, row)
    return found


def find_job(workload: Workload, job: int) -> int:
    """Return the row of a job by its id; raise InputError that names the nearest ids."""
    rows = np.flatnonzero(workload.id == job)
    if len(rows):
        return int(rows[0])
    if not len(workload):
        raise InputError("the workload has no jobs", field="JOB", remedy="choose another run")
    near = workload.id[np.argsort(np.abs(workload.id - job), kind="stable")[:NEAREST]]
    excluded = f"; {sum(workload.excluded.values()):,} rows of the trace were excluded" if workload.excluded else ""
    raise InputError(
        f"there is no job {job} among the {len(workload):,} of this run{excluded}",
        field="JOB",
        remedy=f"nearest: {', '.join(map(str, sorted(near.tolist())))}",
    )


@dataclass
class _Witness(Scheduler, Dispatcher):
    """Decides with a scheduler or a record of its decisions, and asks the scheduler's dispatcher why the job waits."""

    decided: Scheduler
    scheduler: Scheduler
    job: int
    passes: list[tuple[int, Reason]] = field(default_factory=list)
    until: int = -1
    began: int = -1  # ns of the first start of any of its tasks
    placement: Placement | None = None
    settled: bool = False
    deciding: Dispatcher | None = None
    asked: Dispatcher | None = None  # the deciding dispatcher, or one of the recording scheduler if a record decides

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open the deciding scheduler and the one to ask."""
        self.deciding = self.decided.open(machine, seed)
        self.asked = self.deciding if self.decided is self.scheduler else self.scheduler.open(machine, seed)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Return the decisions of the deciding dispatcher."""
        assert self.deciding is not None
        plan = self.deciding.schedule(queue, snapshot, changes)
        if self.job in queue:
            self.until = snapshot.now
            self._look(queue, snapshot, plan)
        return plan

    def _look(self, queue: Queue, snapshot: Snapshot, plan: Plan) -> None:
        starts = [start for start in plan.starts if start.job == self.job]
        if starts and self.placement is None:
            self.began, self.placement = snapshot.now, starts[0].placement
        begun = {task for start in starts for task in start.tasks}
        self.settled = self.job in plan.rejected or begun >= set(queue.tasks(self.job))
        if plan.decisions and all(isinstance(d, Reject | Resize | Stop) for d in plan.decisions):
            return  # such a plan is followed by another, or the event caused no pass
        if not self.settled:
            assert self.asked is not None
            self.passes.append((snapshot.now, reason_of(self.asked, self.job, queue, snapshot, plan)))


class _Excerpt(Platform):
    """A simulation that ends once the wait is explained."""

    def __init__(self, whole: Simulation, witness: _Witness) -> None:
        self._whole, self._witness, self.table = whole, witness, whole.table

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        return self._whole.snapshot()

    def commit(self, plan: Plan) -> CommitResult:
        """Commit a plan."""
        return self._whole.commit(plan)

    def events(self) -> Iterator[EventBatch]:
        """Yield the events up to the pass that settles the job."""
        for batch in self._whole.events():
            yield batch
            if self._witness.settled:
                return


def _check_starts(now: Outcomes, then: Outcomes) -> None:
    """Raise InputError unless a run matches its record."""
    if len(now) != len(then) or not np.array_equal(now.id, then.id):
        raise _changed(f"{len(now)} jobs ran, but {len(then)} are recorded, or other ones")
    other = np.flatnonzero((now.start != then.start) | (now.status != then.status))
    if len(other):
        raise _changed(f"{len(other)} jobs do not start as recorded, the first of them job {int(now.id[other[0]])}")


def _check(found: Explanation, began: int, outcomes: Outcomes, row: int) -> None:
    """Raise InputError unless a job waited and started as recorded."""
    status, start, job = Status(int(outcomes.status[row])), int(outcomes.start[row]), found.job.id
    if int(outcomes.id[row]) != job:
        raise _changed(f"the recorded jobs differ from those of the trace, from job {job} on")
    if status is Status.FINISHED and began != start:
        raise _changed(f"job {job} is recorded to start at {start} ns, but in the replay: {found.status} at {began} ns")
    if status in (Status.REJECTED, Status.WAITING) and found.status != status.name.lower():
        raise _changed(f"job {job} is recorded as {status.name.lower()}, but in the replay: {found.status}")


def _changed(what: str) -> InputError:
    return InputError(f"the run does not match its record: {what}", remedy="run it again with this version of Poolwise")
