"""The only scheduling loop: take the events of an instant, ask the dispatcher, commit its decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from poolwise.errors import PolicyError
from poolwise.interfaces import Dispatcher, Platform
from poolwise.model import Arrival, CapacityChanged, Changes, Ended, EventBatch, Queue, Reject, Start, Wake
from poolwise.model.decision import CommitResult, Decision

Observer = Callable[[EventBatch, CommitResult, Queue], None]


@dataclass
class LoopResult:
    """What the loop itself has seen.

    Attributes
    ----------
    passes : scheduling passes
    rejected : row of the workload -> reason
    refused : commits that the platform refused (a simulated platform refuses only a policy's mistake)
    waiting : rows that were still waiting when the events ended
    """

    passes: int = 0
    rejected: dict[int, str] = field(default_factory=dict)
    refused: list[tuple[Decision, str]] = field(default_factory=list)
    waiting: tuple[int, ...] = ()


def run_loop(platform: Platform, dispatcher: Dispatcher, observer: Observer | None = None) -> LoopResult:
    """Drive a platform with a dispatcher until its events end.

    `observer` is called after each pass (progress, explanations); it must not change what it is shown.
    """
    queue, result = Queue(platform.workload), LoopResult()
    for batch in platform.events():
        changes = _absorb(batch, queue)
        plan = dispatcher.schedule(queue, platform.snapshot(), changes)
        outcome = platform.commit(plan)
        for decision in outcome.committed:
            if isinstance(decision, Start):
                queue.take(decision.job, decision.tasks)
            elif isinstance(decision, Reject):
                _check_waiting(decision, queue)
                queue.take(decision.job)
                result.rejected[decision.job] = decision.reason
        result.refused.extend(outcome.rejected)
        queue.count_pass()
        result.passes += 1
        if observer is not None:
            observer(batch, outcome, queue)
    result.waiting = tuple(queue.jobs.tolist())
    return result


def _absorb(batch: EventBatch, queue: Queue) -> Changes:
    """Let the events of a batch change the queue, and sum them up for the dispatcher."""
    arrived: list[int] = []
    requeued: list[int] = []
    ended: list[int] = []
    capacity: list[int] = []
    woke = False
    for event in batch.events:
        match event:
            case Arrival(job):
                queue.add(job)
                arrived.append(job)
            case Ended(number, job, tasks, _, requeue):
                ended.append(number)
                if requeue:
                    queue.add(job, tasks)
                    requeued.append(job)
            case CapacityChanged(owner, _, _):
                capacity.append(owner)
            case Wake():
                woke = True
    return Changes(tuple(arrived), tuple(requeued), tuple(ended), tuple(capacity), woke)


def _check_waiting(decision: Reject, queue: Queue) -> None:
    if decision.job not in queue:
        raise PolicyError(f"rejected job in row {decision.job}, which is not waiting")
