"""The scheduling loop of all platforms: collect the events of an instant, call the dispatcher, commit its decisions."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.errors import PolicyError
from poolwise.interfaces import Dispatcher, Platform, Scheduler
from poolwise.model import (
    Arrival,
    CapacityChanged,
    Changes,
    CommitResult,
    Continuation,
    Decision,
    Decisions,
    Ended,
    Event,
    EventBatch,
    JobTable,
    JobWithdrawn,
    Machine,
    Outcome,
    OwnerJoined,
    OwnerLeft,
    Queue,
    Reject,
    Resize,
    RunStalled,
    Start,
    Started,
    Stop,
    Wakeup,
)

Observer = Callable[[EventBatch, CommitResult, Queue], None]
ROUNDS = 16
"""Maximum number of dispatcher calls per pass; each omits the jobs that the platform has set aside so far in the pass."""


@dataclass
class LoopResult:
    """Record of the loop itself.

    Attributes
    ----------
    passes : scheduling passes
    opened : number of times that a dispatcher was opened: at the start, and whenever the machine or job table was replaced
    rejected : row of the job table -> reason
    refused : decisions that the platform refused (a simulated platform refuses only a policy's mistake)
    waiting : rows of the jobs that were still waiting when the events ended
    stops : the stops that the platform committed, in order
    """

    passes: int = 0
    opened: int = 0
    rejected: dict[int, str] = field(default_factory=dict)
    refused: list[tuple[Decision, str]] = field(default_factory=list)
    waiting: tuple[int, ...] = ()
    stops: list[Stop] = field(default_factory=list)


def run_loop(
    platform: Platform,
    scheduler: Scheduler,
    seed: int = 0,
    *,
    observer: Observer | None = None,
) -> LoopResult:
    """Drive a platform with a scheduler until its events end.

    The scheduler is opened on the platform's machine, and again whenever the machine changes (an owner joined or left) or the
    platform replaces its job table.

    Parameters
    ----------
    platform : the simulated or real machine
    scheduler : the scheduler whose decisions are committed
    seed : random seed of the scheduler
    observer : called after each instant (progress, explanations); it must not modify its arguments

    Returns
    -------
    LoopResult
        Passes, rejected and waiting jobs, and refused decisions.

    Raises
    ------
    PolicyError
        If the scheduler makes an invalid decision.
    """
    loop = Loop(platform, scheduler, seed)
    for batch in platform.events():
        outcome = loop.step(batch)
        if observer is not None:
            observer(batch, outcome, loop.queue)
    loop.result.waiting = tuple(loop.queue.jobs.tolist())
    return loop.result


@dataclass
class _Unreported:
    """Changes since the last call of the dispatcher, collected in fields with the names of those of `Changes`."""

    arrived: list[int] = field(default_factory=list)
    requeued: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    started: list[tuple[Start, int]] = field(default_factory=list)
    refused: list[tuple[Start, str]] = field(default_factory=list)
    capacity: list[int] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    woke: bool = False
    resized: list[int] = field(default_factory=list)

    def changes(self) -> Changes:
        """Return the changes as the dispatcher receives them."""
        return Changes(
            tuple(self.arrived),
            tuple(self.requeued),
            tuple(self.ended),
            tuple(self.started),
            tuple(self.refused),
            tuple(self.capacity),
            tuple(self.joined),
            tuple(self.left),
            self.woke,
            tuple(self.resized),
        )


class Loop:
    """State of the loop between two instants: the queue, the open dispatcher, and the changes to report to it.

    Attributes
    ----------
    queue : the waiting jobs
    aside : row -> reason, for jobs that the platform set aside in the last pass (`CommitResult.aside`)
    dispatcher : the open dispatcher; None before the first pass
    result : the record so far
    commit_seconds : duration of all commits; callers may reset it
    """

    def __init__(self, platform: Platform, scheduler: Scheduler, seed: int = 0, continued: Continuation | None = None) -> None:
        self.platform, self.scheduler, self.seed = platform, scheduler, seed
        self.continued = continued
        self.queue, self.result = Queue(platform.table), LoopResult()
        self.aside: dict[int, str] = {}
        self.dispatcher: Dispatcher | None = None
        self.commit_seconds = 0.0
        self._opened_on: tuple[Machine | None, JobTable | None] = None, None
        self._known: set[int] = set()  # jobs whose arrival was reported; further reports are ignored
        self._runs: dict[int, Start | None] = {run.id: None for run in platform.snapshot().runs()}
        self._unreported = _Unreported()

    def step(self, batch: EventBatch) -> CommitResult:
        """Run the scheduling pass of an instant: apply its events, call the dispatcher, and commit its decisions.

        A batch of `Started` events triggers no pass. A pass that only rejects or resizes is followed by another, unless the
        instant contained nothing but the arrivals of the rejected jobs.
        """
        if batch.events and all(isinstance(event, Started) for event in batch.events):
            return CommitResult()
        changes = self._absorb(batch)
        self.aside = {}
        outcome = self._decide(changes)
        rest = self._undecided(changes, outcome)
        if rest != Changes():
            outcome = outcome.then(self._decide(rest))
        self.queue.count_pass()
        self.result.passes += 1
        return outcome

    @property
    def considered(self) -> Queue:
        """Waiting jobs that are not set aside."""
        return self.queue.only(np.setdiff1d(self.queue.jobs, list(self.aside))) if self.aside else self.queue

    def open(self) -> Dispatcher:
        """Discard the dispatcher, if there is one, and open another on the current machine."""
        snapshot = self.platform.snapshot()
        self.dispatcher = self.scheduler.open(snapshot.machine, self.seed)
        self._opened_on = snapshot.machine, snapshot.table
        self.result.opened += 1
        return self.dispatcher

    def _absorb(self, batch: EventBatch) -> Changes:
        """Apply the events of a batch to the queue, and return the changes for the dispatcher."""
        if self.queue.table is not self.platform.table:
            self.queue.table = self.platform.table
            self._known = {*self.queue.jobs.tolist(), *(start.job for start in self._runs.values() if start is not None)}
        for event in batch.events:
            self._apply(event)
        return self._report()

    def _decide(self, changes: Changes) -> CommitResult:
        """Call the dispatcher and commit its decisions; repeat without the jobs that the platform sets aside."""
        outcome = committed = self._commit(self._ask(changes))
        for _ in range(ROUNDS - 1):
            if not committed.aside or self.aside.keys() >= set(self.queue.jobs.tolist()):
                break
            committed = self._commit(self._ask(self._report()))
            outcome = outcome.then(committed)
        return outcome

    def _undecided(self, changes: Changes, outcome: CommitResult) -> Changes:
        """Return the changes for another call of the dispatcher, if the last call only rejected or resized; else no changes."""
        if not outcome.committed or outcome.rejected or not all(isinstance(d, Reject | Resize) for d in outcome.committed):
            return Changes()
        rejected = frozenset(d.job for d in outcome.committed if isinstance(d, Reject))
        return replace(changes.without_arrivals(rejected), resized=self._report().resized)

    def _ask(self, changes: Changes) -> Decisions:
        """Call the dispatcher, opened on the current machine, with the jobs that are not set aside."""
        snapshot = self.platform.snapshot()
        dispatcher = self.dispatcher
        machine, table = self._opened_on
        if dispatcher is None or machine is not snapshot.machine or table is not snapshot.table:
            dispatcher = self.open()
        return dispatcher.schedule(self.considered, snapshot, changes)

    def _commit(self, decisions: Decisions) -> CommitResult:
        """Commit decisions on the platform, and apply those that took effect to the queue."""
        self._check(decisions)
        began = time.monotonic()
        outcome = self.platform.commit(decisions)
        self.commit_seconds += time.monotonic() - began
        for decision in outcome.committed:
            if isinstance(decision, Start):
                self.queue.remove_tasks(decision.job, decision.tasks)
            elif isinstance(decision, Reject):
                self.queue.remove_tasks(decision.job)
                self.result.rejected[decision.job] = decision.reason
            elif isinstance(decision, Stop):
                self.result.stops.append(decision)
            elif isinstance(decision, Resize):
                self._unreported.resized.append(decision.run)
        self._runs.update((number, start) for start, number in outcome.started)
        self._unreported.started.extend(outcome.started)
        self._unreported.refused.extend((d, why) for d, why in outcome.rejected if isinstance(d, Start))
        self.result.refused.extend(outcome.rejected)
        self.aside.update(outcome.aside)
        return outcome

    def _report(self) -> Changes:
        """Return the changes since the last report to the dispatcher, and begin a new report."""
        changes = self._unreported.changes()
        self._unreported = _Unreported()
        return changes

    def _check(self, decisions: Decisions) -> None:
        """Raise PolicyError if a decision rejects a job that does not wait, or that an earlier decision started or rejected."""
        if not decisions.rejected:
            return
        settled: set[int] = set()
        for decision in decisions:
            if isinstance(decision, Reject) and (decision.job not in self.queue or decision.job in settled):
                raise PolicyError(f"rejected job in row {decision.job}, which is not waiting")
            if isinstance(decision, Reject) or (
                isinstance(decision, Start)
                and decision.job in self.queue
                and set(decision.tasks) >= set(self.queue.tasks(decision.job))
            ):
                settled.add(decision.job)

    def _apply(self, event: Event) -> None:
        """Apply an event to the queue, and record it for the dispatcher."""
        news = self._unreported
        match event:
            case Arrival(job, tasks):
                if job not in self._known:
                    self._known.add(job)
                    self.queue.add(job, tasks, self._passes(job))
                    news.arrived.append(job)
            case Ended():
                self._apply_end(event)
            case JobWithdrawn(job):
                if job in self.queue:
                    self.queue.remove_tasks(job)
            case CapacityChanged(owner, _, _):
                news.capacity.append(owner)
            case OwnerJoined(owner):
                news.joined.append(owner)
            case OwnerLeft(owner):
                news.left.append(owner)
            case Wakeup():
                news.woke = True
            case RunStalled() | Started():
                pass  # a snapshot lists stalled runs; a run has held its resources since its commit
            case _:
                raise PolicyError(f"the loop does not support the event {event!r}")

    def _apply_end(self, end: Ended) -> None:
        """Apply the end of a run; requeue its tasks if the event requests it."""
        if end.run not in self._runs:
            return  # reported before
        start = self._runs.pop(end.run)
        self._unreported.ended.append(end.run)
        if end.outcome is Outcome.REFUSED and start is not None:
            self._unreported.refused.append((start, end.reason))
            self.result.refused.append((start, end.reason))
        if end.requeue:
            self.queue.add(end.job, end.tasks)
            self._unreported.requeued.append(end.job)

    def _passes(self, job: int) -> int:
        """Return the number of passes that a job had waited in the run that this run continues."""
        return 0 if self.continued is None else self.continued.passes.get(self.queue.table.name(job), 0)
