"""The only scheduling loop: take the events of an instant, ask the dispatcher, commit its decisions."""

from __future__ import annotations

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
    Ended,
    EventBatch,
    Joined,
    Left,
    Machine,
    Outcome,
    Plan,
    Queue,
    Reject,
    Renumbered,
    Resize,
    Stalled,
    Start,
    Started,
    Wake,
    Withdrawn,
)

Observer = Callable[[EventBatch, CommitResult, Queue], None]
ROUNDS = 16
"""So often a dispatcher is asked in one pass, each time without the jobs that the platform has set aside by then."""


@dataclass
class LoopResult:
    """What the loop itself has recorded.

    Attributes
    ----------
    passes : scheduling passes
    opened : number of times that a dispatcher was opened: once, and again whenever the machine or the numbering of jobs changed
    rejected : row of the job table -> reason
    refused : commits that the platform refused (a simulated platform refuses only a policy's mistake)
    waiting : rows that were still waiting when the events ended
    """

    passes: int = 0
    opened: int = 0
    rejected: dict[int, str] = field(default_factory=dict)
    refused: list[tuple[Decision, str]] = field(default_factory=list)
    waiting: tuple[int, ...] = ()


def run_loop(
    platform: Platform,
    scheduler: Scheduler,
    seed: int = 0,
    *,
    observer: Observer | None = None,
    continued: Continuation | None = None,
) -> LoopResult:
    """Drive a platform with a scheduler until its events end.

    The scheduler is opened on the platform's machine, and opened anew whenever that machine changes (an owner
    joined or left) or the rows of the job table were renumbered.

    Parameters
    ----------
    observer
        Called after each instant (progress, explanations); it must not change what it is shown.
    continued
        What an earlier run left for this one: the jobs' waiting counts go on.
    """
    loop = Loop(platform, scheduler, seed, continued)
    for batch in platform.events():
        outcome = loop.apply_events(batch)
        if observer is not None:
            observer(batch, outcome, loop.queue)
    loop.result.waiting = tuple(loop.queue.jobs.tolist())
    return loop.result


class Loop:
    """A loop between two instants: the queue, the open dispatcher, and what it is to be told.

    Attributes
    ----------
    queue : the jobs that wait
    aside : row -> why, of those that the platform set aside in the last pass (`CommitResult.aside`)
    dispatcher : the one that is open; None before the first pass
    result : what has been seen so far
    """

    def __init__(self, platform: Platform, scheduler: Scheduler, seed: int = 0, continued: Continuation | None = None) -> None:
        self.platform, self.scheduler, self.seed = platform, scheduler, seed
        self.continued = continued
        self.queue, self.result = Queue(platform.table), LoopResult()
        self.aside: dict[int, str] = {}
        self.dispatcher: Dispatcher | None = None
        self._opened_on: tuple[Machine, int] | None = None
        self._told: set[int] = set()  # jobs whose arrival was reported, so that a second report changes nothing
        self._runs: dict[int, Start | None] = {run.id: None for run in platform.snapshot().runs()}
        self._started: list[tuple[Start, int]] = []  # since the dispatcher was last asked
        self._refused: list[tuple[Start, str]] = []
        self._resized: list[int] = []

    def apply_events(self, batch: EventBatch) -> CommitResult:
        """Apply the events of an instant to the queue, and schedule.

        Starts that became real are no reason for a pass. A plan that does nothing but reject or resize is followed by another
        pass, unless nothing else had happened than the arrival of what was rejected: jobs rejected on arrival are no reason
        for one.
        """
        if batch.events and all(isinstance(event, Started) for event in batch.events):
            return CommitResult()
        changes = self._absorb(batch)
        self.aside = {}
        outcome = self._schedule(changes)
        rejected = frozenset(d.job for d in outcome.committed if isinstance(d, Reject))
        if outcome.committed and all(isinstance(d, Reject | Resize) for d in outcome.committed) and not outcome.rejected:
            rest = replace(changes.beside(rejected), resized=tuple(self._resized))
            self._resized = []
            if rest != Changes():
                outcome = outcome.then(self._schedule(rest))
        self.queue.count_pass()
        self.result.passes += 1
        return outcome

    @property
    def considered(self) -> Queue:
        """The jobs that wait and are not set aside."""
        return self.queue.only(np.setdiff1d(self.queue.jobs, list(self.aside))) if self.aside else self.queue

    def open(self) -> Dispatcher:
        """Discard the dispatcher, if there is one, and open another on the machine as it is now."""
        snapshot = self.platform.snapshot()
        self.dispatcher = self.scheduler.open(snapshot.machine, self.seed)
        self._opened_on = snapshot.machine, snapshot.table.edition
        self.result.opened += 1
        return self.dispatcher

    def _schedule(self, changes: Changes) -> CommitResult:
        """Ask the dispatcher and commit what it says; where that sets jobs aside, ask again, so that they hold up nobody."""
        outcome = after = self._ask(changes)
        for _ in range(ROUNDS - 1):
            if not after.aside or self.aside.keys() >= set(self.queue.jobs.tolist()):
                break
            rest = Changes(started=tuple(self._started), refused=tuple(self._refused))
            self._started, self._refused = [], []
            after = self._ask(rest)
            outcome = outcome.then(after)
        return outcome

    def _ask(self, changes: Changes) -> CommitResult:
        """Ask the dispatcher about the jobs that are not set aside, and commit what it says."""
        snapshot = self.platform.snapshot()
        dispatcher = self.dispatcher
        known = self._opened_on
        if dispatcher is None or known is None or known[0] is not snapshot.machine or known[1] != snapshot.table.edition:
            dispatcher = self.open()
        plan = dispatcher.schedule(self.considered, snapshot, changes)
        self._check(plan)
        outcome = self.platform.commit(plan)
        for decision in outcome.committed:
            if isinstance(decision, Start):
                self.queue.remove_tasks(decision.job, decision.tasks)
            elif isinstance(decision, Reject):
                self.queue.remove_tasks(decision.job)
                self.result.rejected[decision.job] = decision.reason
            elif isinstance(decision, Resize):
                self._resized.append(decision.run)
        self._runs.update((number, start) for start, number in outcome.started)
        self._started.extend(outcome.started)
        self._refused.extend((d, why) for d, why in outcome.rejected if isinstance(d, Start))
        self.result.refused.extend(outcome.rejected)
        self.aside.update(outcome.aside)
        return outcome

    def _check(self, plan: Plan) -> None:
        """Raise PolicyError where a plan rejects what does not wait, or no longer would by then."""
        if not any(isinstance(decision, Reject) for decision in plan.decisions):
            return
        settled: set[int] = set()
        for decision in plan.decisions:
            if isinstance(decision, Reject) and (decision.job not in self.queue or decision.job in settled):
                raise PolicyError(f"rejected job in row {decision.job}, which is not waiting")
            if isinstance(decision, Reject) or (
                isinstance(decision, Start)
                and decision.job in self.queue
                and set(decision.tasks) >= set(self.queue.tasks(decision.job))
            ):
                settled.add(decision.job)

    def _absorb(self, batch: EventBatch) -> Changes:
        """Apply the events of a batch to the queue, and summarize them for the dispatcher."""
        arrived: list[int] = []
        requeued: list[int] = []
        ended: list[int] = []
        capacity: list[int] = []
        joined: list[int] = []
        left: list[int] = []
        woke = False
        for event in batch.events:
            match event:
                case Arrival(job, tasks):
                    if job not in self._told:
                        self._told.add(job)
                        self.queue.add(job, tasks, self._passes(job))
                        arrived.append(job)
                case Ended(number, job, tasks, outcome, requeue, reason):
                    if number not in self._runs:
                        continue  # told before
                    start = self._runs.pop(number)
                    ended.append(number)
                    if outcome is Outcome.REFUSED and start is not None:
                        self._refused.append((start, reason))
                        self.result.refused.append((start, reason))
                    if requeue:
                        self.queue.add(job, tasks)
                        requeued.append(job)
                case Withdrawn(job):
                    if job in self.queue:
                        self.queue.remove_tasks(job)
                case CapacityChanged(owner, _, _):
                    capacity.append(owner)
                case Joined(owner):
                    joined.append(owner)
                case Left(owner):
                    left.append(owner)
                case Renumbered(rows):
                    self.queue.renumber(rows)
                    self.queue.table = self.platform.table
                    self._told = {rows[job] for job in self._told if job in rows}
                case Wake():
                    woke = True
                case Stalled():
                    pass  # a snapshot shows who stands still
                case Started():
                    pass  # what it takes is held since its commit; nothing waits for it
                case _:
                    raise PolicyError(f"the loop does not know the event {event!r}")
        started, refused, resized = tuple(self._started), tuple(self._refused), tuple(self._resized)
        self._started, self._refused, self._resized = [], [], []
        return Changes(
            tuple(arrived),
            tuple(requeued),
            tuple(ended),
            started,
            refused,
            tuple(capacity),
            tuple(joined),
            tuple(left),
            woke,
            resized,
        )

    def _passes(self, job: int) -> int:
        """Passes that a job has waited in the run that this one continues."""
        return 0 if self.continued is None else self.continued.passes.get(self.queue.table.name(job), 0)
