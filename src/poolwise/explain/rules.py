"""Which rule held a waiting job back in a pass.

The decisions of the pass are known (decided now, or recorded), so nothing is decided anew: the state in which the job was
considered is the snapshot with the starts that came before it, and the head is the first that did not start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import PolicyError
from poolwise.explain import shared_nodes, units
from poolwise.explain.seen import Pass, started
from poolwise.interfaces import PlacementPolicy, QueuePolicy, Scheduler
from poolwise.model import Refusal, Reject, Snapshot, Start, Wait
from poolwise.model.reason import Reason, Rule
from poolwise.policies.backfill.conservative import AvailabilityProfile, Conservative
from poolwise.policies.backfill.easy import Easy, reservation
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.schedulers.batch import BatchScheduler
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.flow.scheduler import FlowScheduler
from poolwise.schedulers.greedy import LeastAllocated, LocalFirstRandom
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.list_flow import ListFlow
from poolwise.schedulers.warm_up import WarmUp


def reason(scheduler: Scheduler, job: int, seen: Pass) -> Reason | None:
    """Say what held back a waiting job that a pass did not start; None if the scheduler made no pass of it.

    Raises PolicyError if by the scheduler's own rule the job should have started.
    """
    if seen.rejected and all(isinstance(decision, Reject) for decision in seen.plan.decisions):
        return None  # a plan that only rejects is asked again, or was no pass at all
    return _reason(scheduler, job, seen)


def _reason(scheduler: Scheduler, job: int, seen: Pass) -> Reason:
    """Ask the rules of the scheduler's kind."""
    if type(scheduler) is WarmUp:
        return _warming(scheduler, job, seen)
    if type(scheduler) is ListScheduler:
        return _listed(scheduler, job, seen)
    if type(scheduler) is CompositionScheduler:
        return _listed(ListScheduler(scheduler.order, Skip(), scheduler.placement), job, seen)
    if type(scheduler) is ListFlow:
        return _listed_by_flow(scheduler, job, seen)
    if isinstance(scheduler, FlowScheduler):
        return shared_nodes.flow(scheduler, job, seen)
    if isinstance(scheduler, LeastAllocated | LocalFirstRandom):
        return shared_nodes.greedy(job, seen, pooled=isinstance(scheduler, LocalFirstRandom))
    if isinstance(scheduler, BatchScheduler):
        return shared_nodes.batch(scheduler, job, seen)
    if isinstance(scheduler, Dispatch):
        return units.dispatched(scheduler, job, seen)
    return _own(scheduler, job, seen)


def _own(scheduler: Scheduler, job: int, seen: Pass) -> Reason:
    """Quote a scheduler of your own, or ask its placement policy what is short after the pass."""
    for decision in seen.plan.decisions:
        if isinstance(decision, Wait) and decision.job == job:
            rule = Rule.SHORT if decision.refusal.resource else Rule.UNSAID
            return Reason.of(rule, decision.refusal.reason, decision.refusal)
    placement = getattr(scheduler, "placement", None)
    if placement is not None and hasattr(placement, "place"):
        state = started(seen.snapshot, seen.starts)
        found = placement.place(state.table.job(job), state)
        if isinstance(found, Refusal):
            return Reason.of(Rule.SHORT, found.reason, found)
    return Reason(Rule.UNSAID, f"{type(scheduler).__name__} gives no reason")


def _listed_by_flow(scheduler: ListFlow, job: int, seen: Pass) -> Reason:
    """Find the starts again as they were before the flow moved them: those decided who else might start."""
    whole = ListScheduler(scheduler.order, scheduler.backfill, scheduler.placement)
    dispatcher = whole.open(seen.snapshot.machine, 0)
    return _reason(whole, job, replace(seen, plan=dispatcher.schedule(seen.queue, seen.snapshot, seen.changes)))


def _warming(scheduler: WarmUp, job: int, seen: Pass) -> Reason:
    queue, arrived = seen.queue, seen.changes.arrived
    warm = queue.only(queue.jobs[queue.jobs < scheduler.jobs])
    first = seen.only(warm, (j for j in arrived if j < scheduler.jobs))
    if job < scheduler.jobs:
        return _reason(scheduler.first, job, first)
    rest = len(warm) - len(first.starts) - len(first.rejected)
    if rest:  # all of them have arrived: they are submitted before this job
        return Reason(Rule.WARM_UP, "jobs of the warm-up have yet to start", ahead=rest)
    later = queue.only(queue.jobs[queue.jobs >= scheduler.jobs])
    after = seen.only(later, later.jobs.tolist() if len(warm) else arrived)  # at the handover all are new to `then`
    return _reason(scheduler.then, job, replace(after, snapshot=started(seen.snapshot, first.starts)))


@dataclass(frozen=True)
class _Turn:
    """The turn of a job in the pass of a list scheduler.

    Attributes
    ----------
    job : row
    ranked : (n_queued,) rows in the order of priority
    rank : row -> position in it
    starts : in the order of their decision
    snapshot : before the pass
    ahead : rows of higher priority that were left waiting, in the order of priority
    """

    job: int
    ranked: IntArray
    rank: dict[int, int]
    starts: list[Start]
    snapshot: Snapshot
    ahead: list[int]

    @classmethod
    def of(cls, order: QueuePolicy, job: int, seen: Pass) -> _Turn:
        queue = seen.queue.only(np.setdiff1d(seen.queue.jobs, seen.rejected)) if seen.rejected else seen.queue
        ranked = queue.jobs[np.argsort(-order.priority(queue, seen.snapshot), kind="stable")]
        rank = {row: k for k, row in enumerate(ranked.tolist())}
        started = {start.job for start in seen.starts}
        ahead = [row for row in ranked[: rank[job]].tolist() if row not in started]
        return cls(job, ranked, rank, seen.starts, seen.snapshot, ahead)

    def between(self, first: int, end: int) -> list[Start]:
        """Starts of the jobs at positions first <= rank < end."""
        return [start for start in self.starts if first <= self.rank[start.job] < end]

    def short(self, refusal: Refusal) -> Reason:
        """Nothing but what is free held the job back."""
        return Reason.of(Rule.SHORT, refusal.reason, refusal, ahead=len(self.ahead))

    def contradiction(self) -> PolicyError:
        """Error for a job that should have started."""
        job, now = int(self.snapshot.table.id[self.job]), self.snapshot.now
        return PolicyError(f"job {job} was left waiting at {now} ns, although by the scheduler's rule it starts there")


def _listed(scheduler: ListScheduler, job: int, seen: Pass) -> Reason:
    turn = _Turn.of(scheduler.order, job, seen)
    backfill, placement = scheduler.backfill, scheduler.placement
    known = type(backfill) in (NoBackfill, Skip) or _is_easy(backfill) or _is_conservative(backfill)
    before = turn.between(0, turn.rank[job] if known else len(turn.ranked))
    found = placement.place(seen.snapshot.table.job(job), started(seen.snapshot, before))
    if isinstance(found, Refusal):
        return turn.short(found)
    if not known:
        return Reason(Rule.UNSAID, f"it fits, and {type(backfill).__name__} gives no reason", ahead=len(turn.ahead))
    if not turn.ahead or type(backfill) is Skip:
        raise turn.contradiction()
    if isinstance(backfill, Easy):
        return _easy(backfill, turn, placement)
    return _conservative(turn, placement) if _is_conservative(backfill) else _in_order(turn, placement)


def _is_easy(backfill: object) -> bool:
    """EASY and what only changes its reservation; a subclass that selects in another way has rules of its own."""
    return isinstance(backfill, Easy) and type(backfill).select is Easy.select and type(backfill)._backfill is Easy._backfill


def _is_conservative(backfill: object) -> bool:
    """Conservative backfilling that makes all reservations anew at each pass."""
    return type(backfill) is Conservative and not backfill.keep_reservations


def _in_order(turn: _Turn, placement: PlacementPolicy) -> Reason:
    head = turn.ahead[0]
    state = started(turn.snapshot, turn.starts)
    lack = placement.place(state.table.job(head), state)
    if not isinstance(lack, Refusal):
        raise turn.contradiction()
    text = f"it fits, but nothing is backfilled, and the head of the queue has {lack.reason}"
    return Reason.of(Rule.ORDER, text, lack, blocker=head, ahead=len(turn.ahead))


def _easy(backfill: Easy, turn: _Turn, placement: PlacementPolicy) -> Reason:
    """Which of the two conditions of EASY a job that fits does not meet (see `Easy`)."""
    job, head, workload = turn.job, turn.ahead[0], turn.snapshot.table
    state = started(turn.snapshot, turn.between(0, turn.rank[head]))
    then = reservation(workload.job(head), backfill.reserving(state), placement)
    shadow = then.now
    for start in turn.between(turn.rank[head], turn.rank[job]):
        end = state.expected_end(start.job, start.placement)
        if end > shadow:
            then = then.with_started(start.job, start.placement, end=end)
        state = state.with_started(start.job, start.placement, end=end)
    found = placement.place(workload.job(job), state)
    if isinstance(found, Refusal):
        return turn.short(found)
    end = state.expected_end(job, found)
    if end <= shadow:
        raise turn.contradiction()
    if not backfill.extra:
        text = "it fits, but would end after the head's reservation begins"
        return Reason.of(Rule.RESERVATION, text, blocker=head, reserved=shadow, ahead=len(turn.ahead))
    kept = then.with_started(job, found, end=end)
    lack = placement.place(workload.job(head), kept)
    if not isinstance(lack, Refusal):
        raise turn.contradiction()
    text = f"it fits, but beside it the head would have {lack.reason} when its reservation begins"
    return Reason.of(Rule.RESERVATION, text, lack, blocker=head, reserved=shadow, ahead=len(turn.ahead))


def _conservative(turn: _Turn, placement: PlacementPolicy) -> Reason:
    """Name the first reservation in the order of priority with which a job that fits now no longer fits throughout."""
    view, job = turn.snapshot, turn.job
    profile = AvailabilityProfile(view)
    for row in turn.ranked[: turn.rank[job]].tolist():
        reserved = profile.reserve(view.table.job(row), placement)
        if profile.fit(view.table.job(job), 0, placement)[0] is None:
            begins = None if reserved is None else reserved[0]
            text = "it fits, but would run into a job of higher priority when that job's reservation begins"
            if begins == view.now:
                text = "it fits, but would run into reservations with the start of a job of higher priority"
            return Reason.of(
                Rule.RESERVATION,
                text,
                _narrow(profile, job, placement),
                blocker=row,
                reserved=begins,
                ahead=len(turn.ahead),
            )
    raise turn.contradiction()


def _narrow(profile: AvailabilityProfile, job: int, placement: PlacementPolicy) -> Refusal:
    """What a job that would start now lacks at the first instant from which on it no longer fits."""
    view = profile.snapshot
    least = np.minimum.accumulate(profile.free)
    for state in least:
        found = placement.place(view.table.job(job), view.imagined(view.now, state))
        if isinstance(found, Refusal):
            return found
    raise PolicyError(f"job in row {job} fits at every instant and yet not throughout: its placement policy is not monotone")
