"""EASY backfilling with every resource counted, not nodes alone.

Source: Lifka 1995; the definition that is tested is that of the specs of the memory pools, "Backfilling".
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
"""Amounts of a machine from which on states are not looked at many at once."""


@register("backfills", "easy")
@dataclass(frozen=True)
class Easy(BackfillPolicy):
    """Start jobs in priority order until one does not fit (the head); then any that does not delay the head's reservation.

    The shadow time is the earliest expected end at which the head can be placed, expected releases applied in order, with
    nodes and pool memory. A later job may start now if it fits now and its expected end is not after the shadow time, or
    (`extra`) the head can still be placed at the shadow time beside this job's allocation, which is then kept for the next
    candidates.

    Parameters
    ----------
    extra
        Whether the second condition counts.
    order
        The order in which jobs are tried beside the head; the queue's if not given.
    """

    extra: bool = True
    order: QueuePolicy | None = None

    @property
    def own_order(self) -> QueuePolicy | None:
        """The order given."""
        return self.order

    def open(self) -> BackfillPolicy:
        """Begin a run of the order given."""
        return self if self.order is None else replace(self, order=opened(self.order))

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Choose the starts."""
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
        tried = priority if self.order is None else self.order.priority(queue, snapshot)
        candidates = able[np.argsort(-tried[able], kind="stable")]
        starts.extend(self._backfill(queue, int(jobs[head]), jobs[candidates], state, placement))
        return starts

    def _backfill(
        self, queue: Queue, head: int, candidates: IntArray, state: Snapshot, placement: PlacementPolicy
    ) -> Iterable[Start]:
        reserved = queue.job(head)
        then = reservation(reserved, self.reserving(state), placement)
        shadow = then.now
        for job in candidates.tolist():
            found = placement.place(queue.job(job), state)
            if isinstance(found, Refusal):
                continue
            end = state.expected_end(job, found)
            if end > shadow:
                if not self.extra:
                    continue
                kept = then.with_started(job, found, end=end)
                if isinstance(placement.place(reserved, kept), Refusal):
                    continue
                then = kept
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
        """Say which of the two conditions a job that fits does not meet."""
        if self.order is not None:
            priority = _as_tried(queue, priority, self.order.priority(queue, snapshot), starts)
        passed = PassedOver.of(job, queue, priority, snapshot, placement, starts)
        if (short := passed.short()) is not None:
            return short
        if not passed.ahead:
            raise passed.contradiction()
        head = passed.ahead[0]
        state = snapshot.with_starts(passed.between(0, passed.rank[head]))
        then = reservation(queue.job(head), self.reserving(state), placement)
        shadow = then.now
        for start in passed.between(passed.rank[head], passed.rank[job]):
            end = state.expected_end(start.job, start.placement)
            if end > shadow:
                then = then.with_started(start.job, start.placement, end=end)
            state = state.with_started(start.job, start.placement, end=end)
        found = placement.place(queue.job(job), state)
        if isinstance(found, Refusal):
            return Reason.of(Rule.SHORT, found.reason, found)
        end = state.expected_end(job, found)
        if end <= shadow:
            raise passed.contradiction()
        if not self.extra:
            text = "it fits, but would end after the head's reservation begins"
            return Reason.of(Rule.RESERVATION, text, blocker=head, reserved=shadow)
        lack = passed.lack(head, then.with_started(job, found, end=end))
        if lack is None:
            raise passed.contradiction()
        text = f"it fits, but beside it the head would have {lack.reason} when its reservation begins"
        return Reason.of(Rule.RESERVATION, text, lack, blocker=head, reserved=shadow)

    def reserving(self, state: Snapshot) -> Snapshot:
        """State on which the head's reservation is made: the true one."""
        return state

    def rule(self) -> BackfillRule:
        """EASY, with or without the second condition."""
        return BackfillRule("head", self.extra)


def _as_tried(queue: Queue, priority: FloatArray, tried: FloatArray, starts: Sequence[Start]) -> FloatArray:
    """(n_queued,) priorities that follow both orders: by the queue's up to the head, by `tried` behind it."""
    ranked = np.argsort(-priority, kind="stable")
    waits = ~np.isin(queue.jobs[ranked], [start.job for start in starts])
    behind = int(np.argmax(waits)) + 1
    ranked[behind:] = np.sort(ranked[behind:])
    ranked[behind:] = ranked[behind:][np.argsort(-tried[ranked[behind:]], kind="stable")]
    found = np.empty(len(priority))
    found[ranked] = -np.arange(len(priority))
    return found


@register("backfills", "easy_no_extra")
@dataclass(frozen=True)
class EasyNoExtra(Easy):
    """EASY with the first condition only: backfilled jobs end before the head's reservation begins."""

    extra: bool = False

    def rule(self) -> BackfillRule:
        """EASY without the second condition, unless that was asked for."""
        return BackfillRule("head", self.extra)


def reservation(head: Job, state: Snapshot, placement: PlacementPolicy) -> Snapshot:
    """Find the state at the head's shadow time; the state after the last release if the head fits at none."""
    row = np.array([head.index], dtype=np.int64)
    if state.free.size >= WIDE:
        return _reservation_on_a_wide_machine(head, row, state, placement)
    last = state.now
    for ends, free in state.futures():
        last = int(ends[-1])
        for k in np.flatnonzero(placement.screen(row, free, state)).tolist():
            then = state.at(int(ends[k]))
            if not isinstance(placement.place(head, then), Refusal):
                return then
    return state.at(last)


def _reservation_on_a_wide_machine(head: Job, row: IntArray, state: Snapshot, placement: PlacementPolicy) -> Snapshot:
    """Find the same by bisection of the ends at which the head may fit: more free is never screened out where less is not.

    States of which each is as large as the machine are looked at one by one, not a thousand of them.
    """
    ends = state.ends()

    def may_fit(end: int) -> bool:
        return bool(placement.screen(row, state.at(end).free[None], state)[0])

    for end in ends[bisect_left(range(len(ends)), True, key=lambda k: may_fit(int(ends[k]))) :].tolist():
        then = state.at(end)
        if placement.screen(row, then.free[None], state)[0] and not isinstance(placement.place(head, then), Refusal):
            return then
    return state.at(int(ends[-1])) if len(ends) else state.at(state.now)
