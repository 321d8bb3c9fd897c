"""`explain_wait`: replays a workload up to the start of one job and records why each pass left the job waiting."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.list_scheduling import replay as list_scheduling
from poolwise.engines.simulate import platform_of
from poolwise.errors import InputError, PolicyError
from poolwise.explain.explanation import Explanation, episode_key
from poolwise.explain.places import Holder, holders
from poolwise.explain.replay import Replay
from poolwise.interfaces import BackfillPolicy, Dispatcher, PerformanceModel, Scheduler, SchedulingPass
from poolwise.interfaces.user_class import rule_of
from poolwise.loop import Loop
from poolwise.metrics import Outcomes
from poolwise.metrics.outcomes import Status
from poolwise.model import (
    Changes,
    Decisions,
    Machine,
    Placement,
    Queue,
    Reason,
    Refusal,
    Snapshot,
    Start,
    Wait,
    WaitCause,
    Workload,
)
from poolwise.model.exclusive import exclusive_nodes
from poolwise.model.licenses import LICENSE
from poolwise.performance.ideal import Ideal
from poolwise.platforms.dependent_tasks import DependentTasks
from poolwise.platforms.failures import draw_failures
from poolwise.quantities import format_count
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp

NEAREST = 5
"""Number of ids that the error for an unknown job lists."""


def explain_wait(
    workload: Workload,
    machine: Machine,
    scheduler: Scheduler,
    job: int,
    *,
    model: PerformanceModel | None = None,
    estimate: PerformanceModel | None = None,
    seed: int = 0,
    outcomes: Outcomes | None = None,
) -> Explanation:
    """Explain why a job waited, pass by pass.

    If the compiled engine supports the workload, its schedule is replayed, and the scheduler is queried only while the job
    waits. Otherwise the scheduler decides the whole run again.

    Parameters
    ----------
    workload, machine
        Workload and machine of the run.
    scheduler
        Scheduler of the run; `list_scheduler` makes one from names.
    job
        Id of the job.
    model, estimate, seed
        Performance models and random seed of the run, as in `simulate`; the models default to ideal.
    outcomes
        Recorded outcomes of the run; the replay is compared with them.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        No job has this id, the workload is a closed loop, or the replay differs from the recorded outcomes.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "10 s"], ["1 min", "1 min"], requests={"nodes": [2, 1]})
    >>> explanation = poolwise.explain_wait(workload, poolwise.Machine.flat(2), poolwise.list_scheduler(), job=2)
    >>> explanation.wait // 10**9, [episode.reason.resource for episode in explanation.episodes]
    (50, ['nodes'])
    """
    row = find_job(workload, job)
    if workload.closed_loop:
        raise InputError(
            "waits in a closed loop cannot be explained: submissions follow from the schedule",
            field="closed_loop",
            remedy="explain a run without it",
        )
    model = model if model is not None else Ideal()
    alone, plain = exclusive_nodes(workload, machine), (workload, machine)
    if alone is not None:
        workload, machine = alone.workload, alone.machine
    machine, failing, requeue = draw_failures(workload, machine, seed)
    spec = RunSpec(workload, machine, scheduler, model, estimate if estimate is not None else model, seed, failing, requeue)
    recorded = _RecordedStarts()
    decided, explained = _schedulers(spec, recorded, outcomes)
    for part in (scheduler, model, estimate):
        if part is not None:
            part.check(machine, workload.table)
    recorder = _WaitRecorder(decided, explained, row, recorded)
    simulated = platform_of(workload)(workload, machine, model, estimate, disturbances=failing, requeue=requeue)
    dependent = simulated if isinstance(simulated, DependentTasks) else None
    loop = Loop(simulated, recorder, seed)
    for batch in simulated.events():
        if dependent is not None:
            recorder.job = dependent.row_in_table(row)
        loop.step(batch)
        if recorder.settled:
            break
    for decision, why in loop.result.refused:
        if isinstance(decision, Start) and (decision.job == recorder.job or decided is not scheduler):
            raise PolicyError(f"the machine refused to start the job in row {decision.job}: {why}")
    rejected = "" if recorder.job is None else loop.result.rejected.get(recorder.job, "")
    passes, held, placement = recorder.passes, recorder.holders, recorder.placement
    if dependent is not None:
        passes = _in_workload(passes, dependent, workload, row)
        held = {
            time: tuple(replace(holder, job=dependent.row_in_workload(holder.job)) for holder in several)
            for time, several in held.items()
        }
        if recorder.job is None:
            loop.result.waiting = tuple(loop.queue.jobs.tolist())
            rejected, recorder.until = dependent.unfinished(loop.result)[0].get(row, ""), dependent.now
    if alone is not None:
        (workload, machine), placement = plain, placement if placement is None else alone.placement(placement)
    explanation = Explanation(workload.job(row), machine, tuple(passes), recorder.until, placement, rejected, holders=held)
    if outcomes is not None:
        _check_job(explanation, recorder.began, outcomes, row)
    return explanation


def _schedulers(spec: RunSpec, recorded: _RecordedStarts, outcomes: Outcomes | None) -> tuple[Scheduler, Scheduler]:
    """Return the scheduler that decides the run, and the one that is queried while the job waits.

    If the compiled engine supports the run, the first scheduler replays its schedule. In the second, a backfill that keeps
    state is then replaced by the `recorded` starts, because it has not seen the earlier passes. Raises InputError if `outcomes`
    differ from the schedule.
    """
    rule = rule_of(spec.scheduler)
    if rule is None or list_scheduling.unsupported(spec):
        return spec.scheduler, spec.scheduler
    schedule, _ = list_scheduling.replay(spec)
    if outcomes is not None:
        _check_starts(Outcomes.of(schedule), outcomes)
    replay = Replay(schedule, rule.warm_up)
    if not rule.backfill.keeps_state:
        return replay, spec.scheduler
    recorded.name = type(rule.backfill.open()).__name__
    listed = ListScheduler(rule.order, recorded, rule.placement)
    return replay, WarmUp.before(listed, rule.warm_up) if rule.warm_up else listed


def _in_workload(
    passes: list[tuple[int, Reason]], dependent: DependentTasks, workload: Workload, row: int
) -> list[tuple[int, Reason]]:
    """Return the passes after those in which the job waited for its predecessors; blockers become rows of the workload."""
    blocked = [
        (time, why if why.blocker is None else replace(why, blocker=dependent.row_in_workload(why.blocker)))
        for time, why in passes
    ]
    at, submit = dependent.row_in_table(row), int(workload.submit[row])
    if at is not None and int(dependent.table.submit[at]) == submit:
        return blocked
    assert workload.task_graph is not None
    names = [workload.table.name(before) for before in workload.task_graph.predecessors(row)]
    listed = ", ".join(names) if len(names) <= NEAREST else f"{', '.join(names[:NEAREST])} and {len(names) - NEAREST} more"
    text = f"it waits for {'jobs' if len(names) > 1 else 'job'} {listed} to finish"
    return [(submit, Reason(WaitCause.PREDECESSORS, text)), *blocked]


def find_job(workload: Workload, job: int) -> int:
    """Return the row of the job with this id; if there is none, raise an InputError that lists the nearest ids."""
    rows = np.flatnonzero(workload.id == job)
    if len(rows):
        return int(rows[0])
    if not len(workload):
        raise InputError("the workload has no jobs", field="JOB", remedy="choose another run")
    near = workload.id[np.argsort(np.abs(workload.id - job), kind="stable")[:NEAREST]]
    excluded = f"; {sum(workload.excluded.values()):,} rows of the trace were excluded" if workload.excluded else ""
    raise InputError(
        f"no job {job} among the {format_count(len(workload), 'job')} of this run{excluded}",
        field="JOB",
        remedy=f"nearest: {', '.join(map(str, sorted(near.tolist())))}",
    )


class _RecordedStarts(BackfillPolicy):
    """Starts the recorded jobs, instead of a backfill whose state cannot be rebuilt in the middle of a run."""

    name, starts = "", tuple[Start, ...]()

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Return the recorded starts; jobs that would also fit are recorded as waiting for an unreported cause."""
        starts = [start for start in self.starts if start.job in cycle.queue]
        for job in cycle.to_explain(starts):
            if not isinstance(cycle.place(job, cycle.snapshot.with_starts(starts)), Refusal):
                cycle.record(job, WaitCause.UNREPORTED, f"it fits, and {self.name} gives no reason")
        return starts


@dataclass
class _WaitRecorder(Scheduler, Dispatcher):
    """Delegates decisions to a scheduler, or to the replay of its schedule, and records why the job waits."""

    decided: Scheduler
    explained: Scheduler
    job: int | None  # its row of the job table; None before a job with predecessors arrives
    recorded: _RecordedStarts
    passes: list[tuple[int, Reason]] = field(default_factory=list)
    holders: dict[int, tuple[Holder, ...]] = field(default_factory=dict)  # ns of the first pass of an episode -> holders
    until: int = -1
    began: int = -1  # ns of the first start of any of the job's tasks
    placement: Placement | None = None
    settled: bool = False
    deciding: Dispatcher | None = None
    explaining: Dispatcher | None = None  # `deciding`, or in a replay a dispatcher of the scheduler that made the record

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open the scheduler that decides and the one that explains."""
        self.deciding = self.decided.open(machine, seed)
        self.explaining = self.deciding if self.decided is self.explained else self.explained.open(machine, seed)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Return the decisions of the deciding dispatcher, and record the reason if the job waits."""
        assert self.deciding is not None
        explain = frozenset[int]() if self.job is None else frozenset({self.job})
        decisions = self.deciding.schedule(queue, snapshot, replace(changes, explain=explain))
        if self.job is not None and self.job in queue:
            self.until = snapshot.now
            self._record_reason(queue, snapshot, decisions, self.job)
        return decisions

    def _record_reason(self, queue: Queue, snapshot: Snapshot, decisions: Decisions, job: int) -> None:
        starts = [start for start in decisions.starts if start.job == job]
        if starts and self.placement is None:
            self.began, self.placement = snapshot.now, starts[0].placement
        begun = {task for start in starts for task in start.tasks}
        self.settled = job in decisions.rejected or begun >= set(queue.tasks(job))
        if decisions.entries and not any(isinstance(decision, Start | Wait) for decision in decisions):
            return  # more decisions follow in this pass, or these did not result from a pass
        if not self.settled:
            assert self.explaining is not None
            traced = decisions if self.explaining is self.deciding else self._traced(queue, snapshot, decisions, job)
            reason = traced.reason(job, self.explaining)
            first = not self.passes or episode_key(self.passes[-1][1]) != episode_key(reason)
            short = reason.cause is WaitCause.SHORT and (reason.resource or reason.nodes)
            if first and (short or reason.resource.startswith(LICENSE)):
                self.holders[snapshot.now] = holders(snapshot, job, reason.resource)
            self.passes.append((snapshot.now, reason))

    def _traced(self, queue: Queue, snapshot: Snapshot, decisions: Decisions, job: int) -> Decisions:
        """Return the decisions of the scheduler that made a record, with the reason; raise PolicyError if its starts differ."""
        assert self.explaining is not None
        waiting = queue.only(np.setdiff1d(queue.jobs, decisions.rejected)) if decisions.rejected else queue
        self.recorded.starts = decisions.starts
        traced = self.explaining.schedule(waiting, snapshot, Changes(explain=frozenset({job})))
        if _by_job(traced) != _by_job(decisions):
            raise PolicyError(f"at {snapshot.now} ns, the scheduler starts jobs that differ from its compiled record")
        return traced


def _by_job(decisions: Decisions) -> dict[int, list[tuple[int, int, int, int]]]:
    return {start.job: sorted(start.placement.rows()) for start in decisions.starts}


def _check_starts(replayed: Outcomes, recorded: Outcomes) -> None:
    """Raise InputError unless the starts and statuses of a run match the record."""
    if len(replayed) != len(recorded) or not np.array_equal(replayed.id, recorded.id):
        raise _mismatch(f"the jobs differ ({len(replayed)} in the replay, {len(recorded)} in the record)")
    other = np.flatnonzero((replayed.start != recorded.start) | (replayed.status != recorded.status))
    if len(other):
        starts = f"{format_count(len(other), 'job')} {'starts' if len(other) == 1 else 'start'}"
        raise _mismatch(f"{starts} at a different time; the first is job {int(replayed.id[other[0]])}")


def _check_job(explanation: Explanation, began: int, outcomes: Outcomes, row: int) -> None:
    """Raise InputError unless the job's wait and start match the record."""
    status, start, job = Status(int(outcomes.status[row])), int(outcomes.start[row]), explanation.job.id
    if int(outcomes.id[row]) != job:
        raise _mismatch(f"the record lists jobs that differ from the trace, starting with job {job}")
    if status is Status.FINISHED and began != start:
        raise _mismatch(
            f"job {job} started at {start} ns in the record; in the replay it is {explanation.status} at {began} ns"
        )
    if status in (Status.REJECTED, Status.WAITING) and explanation.status != status.name.lower():
        raise _mismatch(f"job {job} is {status.name.lower()} in the record and {explanation.status} in the replay")


def _mismatch(difference: str) -> InputError:
    return InputError(
        f"the replay differs from the recorded run: {difference}", remedy="run it again with this Poolwise version"
    )
