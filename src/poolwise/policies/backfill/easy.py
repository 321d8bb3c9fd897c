"""EASY backfilling that counts every resource, not only nodes.

Source: Lifka 1995; the tests follow the definition in the memory-pool spec, "Backfilling".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, QueuePolicy, opened
from poolwise.model import Job, Queue, Reason, Refusal, Rule, Snapshot, Start
from poolwise.model.rules import BackfillRule
from poolwise.policies.backfill.none import start_in_order
from poolwise.policies.backfill.passed_over import PassedOver
from poolwise.registry import register

WIDE = 8192
"""Number of amounts (owners times resources) from which states are evaluated one by one instead of in batches."""


@register("backfills", "easy")
@dataclass(frozen=True)
class Easy(BackfillPolicy):
    """Start jobs in priority order up to the first that does not fit (the head); backfill jobs that do not delay the head.

    The shadow time is the earliest expected end at which the head can be placed, counting nodes and pool memory, with the
    expected releases applied in order. A later job may start now if it fits now and its expected end is not after the shadow
    time, or (`extra`) if the head can still be placed at the shadow time along with this job. The job's allocation is then
    part of the state at the shadow time for the next candidates.

    Parameters
    ----------
    extra
        Apply the second condition.
    order
        Order in which candidates behind the head are tried; by default that of the queue.
    """

    extra: bool = True
    order: QueuePolicy | None = None

    @property
    def own_order(self) -> QueuePolicy | None:
        """Order of the backfill candidates."""
        return self.order

    def open(self) -> BackfillPolicy:
        """Return the policy of one run, with its order opened."""
        return self if self.order is None else replace(self, order=opened(self.order))

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Select the starts."""
        jobs = queue.jobs
        starts, head, state = start_in_order(queue, priority, snapshot, placement)
        if head < 0:
            return starts
        started = np.isin(jobs, [start.job for start in starts]) if starts else np.zeros(len(jobs), dtype=np.bool_)
        started[head] = True
        able = np.flatnonzero(~started)
        able = able[placement.screen(jobs[able], state.free[None], state)]
        if not len(able):
            return starts
        backfill_priority = priority if self.order is None else self.order.priority(queue, snapshot)
        candidates = able[np.argsort(-backfill_priority[able], kind="stable")]
        starts.extend(self._backfill(queue, int(jobs[head]), jobs[candidates], state, placement))
        return starts

    def _backfill(
        self, queue: Queue, head: int, candidates: IntArray, state: Snapshot, placement: PlacementPolicy
    ) -> Iterable[Start]:
        reserved = queue.job(head)
        then = reservation(reserved, self.reservation_state(state), placement)
        shadow = then.now
        for job in candidates.tolist():
            found = placement.place(queue.job(job), state)
            if isinstance(found, Refusal):
                continue
            end = state.expected_end(job, found)
            if end > shadow:
                if not self.extra:
                    continue
                delayed = then.with_started(job, found, end=end)
                if isinstance(placement.place(reserved, delayed), Refusal):
                    continue
                then = delayed
            yield Start(job, queue.tasks(job), found)
            state = state.with_started(job, found, end=end)

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Name the condition that a job that fits does not meet."""
        if self.order is not None:
            priority = _combined_priority(queue, priority, self.order.priority(queue, snapshot), starts)
        passed = PassedOver.of(job, queue, priority, snapshot, placement, starts)
        if (short := passed.shortage()) is not None:
            return short
        if not passed.ahead:
            raise passed.inconsistency()
        head = passed.ahead[0]
        state = snapshot.with_starts(passed.starts_between(0, passed.rank[head]))
        then = reservation(queue.job(head), self.reservation_state(state), placement)
        shadow = then.now
        for start in passed.starts_between(passed.rank[head], passed.rank[job]):
            end = state.expected_end(start.job, start.placement)
            if end > shadow:
                then = then.with_started(start.job, start.placement, end=end)
            state = state.with_started(start.job, start.placement, end=end)
        found = placement.place(queue.job(job), state)
        if isinstance(found, Refusal):
            return Reason.of(Rule.SHORT, found.reason, found)
        end = state.expected_end(job, found)
        if end <= shadow:
            raise passed.inconsistency()
        if not self.extra:
            text = "it fits, but would end after the shadow time, when the head job's reservation begins"
            return Reason.of(Rule.RESERVATION, text, blocker=head, reserved=shadow)
        lack = passed.refusal(head, then.with_started(job, found, end=end))
        if lack is None:
            raise passed.inconsistency()
        text = f"it fits, but would delay the head job's reservation: {lack.reason}"
        return Reason.of(Rule.RESERVATION, text, lack, blocker=head, reserved=shadow)

    def reservation_state(self, state: Snapshot) -> Snapshot:
        """Return the state on which the head's reservation is computed; here the true one."""
        return state

    def rule(self) -> BackfillRule:
        """Return the rule: EASY, with or without the second condition."""
        return BackfillRule("head", self.extra)


def _combined_priority(
    queue: Queue, priority: FloatArray, backfill_priority: FloatArray, starts: Sequence[Start]
) -> FloatArray:
    """Return (n_queued,) priorities that rank by the queue's order up to the head and by the backfill order behind it."""
    ranked = np.argsort(-priority, kind="stable")
    waits = ~np.isin(queue.jobs[ranked], [start.job for start in starts])
    behind = int(np.argmax(waits)) + 1
    ranked[behind:] = np.sort(ranked[behind:])
    ranked[behind:] = ranked[behind:][np.argsort(-backfill_priority[ranked[behind:]], kind="stable")]
    found = np.empty(len(priority))
    found[ranked] = -np.arange(len(priority))
    return found


@register("backfills", "easy_no_extra")
@dataclass(frozen=True)
class EasyNoExtra(Easy):
    """EASY with the first condition only: backfilled jobs end by the shadow time, when the head's reservation begins."""

    extra: bool = False

    def rule(self) -> BackfillRule:
        """Return the rule: EASY without the second condition, unless `extra` is set."""
        return BackfillRule("head", self.extra)


def reservation(head: Job, state: Snapshot, placement: PlacementPolicy) -> Snapshot:
    """Return the state at the head's shadow time, or after the last release if the head fits at no time."""
    row = np.array([head.index], dtype=np.int64)
    if state.free.size >= WIDE:
        return _reservation_by_bisection(head, row, state, placement)
    last = state.now
    for ends, free in state.futures():
        last = int(ends[-1])
        for k in np.flatnonzero(placement.screen(row, free, state)).tolist():
            then = state.at(int(ends[k]))
            if not isinstance(placement.place(head, then), Refusal):
                return then
    return state.at(last)


def _reservation_by_bisection(head: Job, row: IntArray, state: Snapshot, placement: PlacementPolicy) -> Snapshot:
    """Return the same for a wide machine, by bisection of the expected ends: `screen` is monotone in the free amounts.

    Each state is as large as the machine, so states are evaluated one at a time.
    """
    ends = state.ends()

    def may_fit(end: int) -> bool:
        return bool(placement.screen(row, state.at(end).free[None], state)[0])

    for end in ends[bisect_left(range(len(ends)), True, key=lambda k: may_fit(int(ends[k]))) :].tolist():
        then = state.at(end)
        if placement.screen(row, then.free[None], state)[0] and not isinstance(placement.place(head, then), Refusal):
            return then
    return state.at(int(ends[-1])) if len(ends) else state.at(state.now)
