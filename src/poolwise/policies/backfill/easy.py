"""EASY backfilling that counts every resource, not only nodes.

Source: Lifka 1995; the tests follow the definition in the memory-pool spec, "Backfilling".
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import IntArray
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, QueuePolicy, SchedulingPass
from poolwise.interfaces.order import opened
from poolwise.model import Job, Kind, Machine, Refusal, Snapshot, Start, WaitCause
from poolwise.model.rules import BackfillRule, HeadScope
from poolwise.policies.backfill.none import competes, start_in_order
from poolwise.registry import register

WIDE = 8192
"""Minimum number of amounts (owners times resources) for evaluating states one by one instead of in batches."""


@register("backfills", "easy")
@dataclass(frozen=True)
class Easy(BackfillPolicy):
    """Start jobs in priority order up to the first that does not fit (the head); backfill jobs that do not delay the head.

    The shadow time is the earliest expected end at which the head can be placed, counting nodes and pool memory, with the
    expected releases applied in order. A later job may start now if it fits now and its expected end is not after the shadow
    time, or (`extra`) if the head can still be placed at the shadow time while this job runs. The job's allocation is then part
    of the state at the shadow time for the next candidates.

    On a machine with partitions, each head blocks only jobs that compete for the nodes of its partitions (`start_in_order`), so
    that there may be several heads. Each has a shadow time, computed as if it were the only head: the reservations of two heads
    may overlap. A candidate must fulfill one of the two conditions for each head with which it competes. Of the jobs that block
    others, only those that do not fit on the whole machine are heads; a job that fits on blocked nodes is a candidate.

    Parameters
    ----------
    extra
        Apply the second condition.
    order
        Order in which candidates behind the head are tried; by default, the order of the queue. Subclasses may override
        `backfill_order` instead.
    heads
        Jobs that a head blocks: those that compete for the nodes of its partitions ("partition"), or all ("machine"). Without
        partitions, both have the same effect.
    """

    extra: bool = True
    order: QueuePolicy | None = None
    heads: HeadScope = "partition"

    @property
    def backfill_order(self) -> QueuePolicy | None:
        """Order of the backfill candidates."""
        return self.order

    def open(self) -> BackfillPolicy:
        """Return the policy of one run, with its order opened."""
        own = self.backfill_order
        if own is None:
            return self
        policy = copy(self)
        object.__setattr__(policy, "_opened", opened(own))
        return policy

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Select the starts."""
        jobs = cycle.queue.jobs
        starts, heads, state = start_in_order(cycle, self.heads)
        if len(heads) > 1:  # the first does not fit
            heads = [*heads[:1], *(head for head in heads[1:] if isinstance(cycle.place(head, state), Refusal))]
        if not heads:
            return starts
        able = np.flatnonzero(~np.isin(jobs, [*(start.job for start in starts), *heads]))
        able = able[cycle.prefilter(jobs[able], state)]
        if not len(able):
            return starts
        own = self.backfill_order
        order = own if own is None or "_opened" not in vars(self) else vars(self)["_opened"]
        priority = cycle.priority if order is None else order.priority(cycle.queue, cycle.snapshot)
        candidates = able[np.argsort(-priority[able], kind="stable")]
        starts.extend(self._backfill(cycle, heads, jobs[candidates], state))
        return starts

    def _backfill(self, cycle: SchedulingPass, heads: list[int], candidates: IntArray, snapshot: Snapshot) -> Iterable[Start]:
        placement, begun = cycle.placement, self.reservation_state(snapshot)
        then = {head: reservation(cycle.queue.job(head), begun, placement) for head in heads}
        shadow = {head: state.now for head, state in then.items()}
        for job in candidates.tolist():
            place = cycle.place(job, snapshot)
            if isinstance(place, Refusal):
                continue
            end = snapshot.expected_end(job, place)
            delayed, delays = dict[int, Snapshot](), False
            for head in heads:
                if end <= shadow[head] or not competes(job, head, cycle, self.heads):
                    continue
                if not self.extra:
                    text = "it fits, but would end after the shadow time, when the head job's reservation begins"
                    cycle.record(job, WaitCause.RESERVATION, text, blocker=head, reserved=shadow[head])
                    delays = True
                    break
                delayed[head] = then[head].with_started(job, place, end=end)
                lack = placement.place(cycle.queue.job(head), delayed[head])
                if isinstance(lack, Refusal):
                    text = f"it fits, but would delay the head job's reservation: {lack.reason}"
                    cycle.record(
                        job, WaitCause.RESERVATION, text, lack, blocker=head, reserved=shadow[head], blocker_needs=True
                    )
                    delays = True
                    break
            if delays:
                continue
            then.update(delayed)
            yield Start(job, cycle.queue.tasks(job), place)
            snapshot = snapshot.with_started(job, place, end=end)

    def reservation_state(self, snapshot: Snapshot) -> Snapshot:
        """Return the state on which the head's reservation is computed; here, the true state."""
        return snapshot

    def rule(self) -> BackfillRule:
        """Return the rule: EASY, with or without the second condition."""
        return BackfillRule("head", self.extra, heads=self.heads)


@register("backfills", "easy_no_extra")
@dataclass(frozen=True)
class EasyNoExtra(Easy):
    """EASY with the first condition only: backfilled jobs end by the shadow time, when the head's reservation begins."""

    extra: bool = False


def reservation(head: Job, snapshot: Snapshot, placement: PlacementPolicy) -> Snapshot:
    """Return the state at the head's shadow time, or after the last release if the head fits at no time."""
    row = np.array([head.index], dtype=np.int64)
    if snapshot.free.size >= WIDE:
        return _reservation_by_bisection(head, row, snapshot, placement)
    last = snapshot.now
    for ends, free in snapshot.futures():
        last = int(ends[-1])
        for k in np.flatnonzero(placement.prefilter(row, free, snapshot)).tolist():
            then = snapshot.at(int(ends[k]))
            if not isinstance(placement.place(head, then), Refusal):
                return then
    return snapshot.at(last)


def _reservation_by_bisection(head: Job, row: IntArray, snapshot: Snapshot, placement: PlacementPolicy) -> Snapshot:
    """Compute `reservation` for a wide machine, by bisection of the expected ends: `prefilter` is monotone in the free amounts.

    Each state is as large as the machine, so states are evaluated one at a time.
    """
    ends = snapshot.ends()

    def fits_at(end: int) -> bool:
        return bool(placement.prefilter(row, snapshot.at(end).free[None], snapshot)[0])

    for end in ends[bisect_left(range(len(ends)), True, key=lambda k: fits_at(int(ends[k]))) :].tolist():
        then = snapshot.at(end)
        if placement.prefilter(row, then.free[None], snapshot)[0] and not isinstance(placement.place(head, then), Refusal):
            return then
    return snapshot.at(int(ends[-1])) if len(ends) else snapshot.at(snapshot.now)


@register("backfills", "easy_nodes_only")
@dataclass(frozen=True)
class EasyNodesOnly(Easy):
    """EASY whose reservation assumes inexhaustible pools; jobs that start now must still fit, pool memory included.

    It exists to reproduce the numbers of some publications (memory-pool spec, "Parity"). The head may be delayed without bound:
    enough nodes are free at its shadow time, but perhaps not enough pool memory.
    """

    def reservation_state(self, snapshot: Snapshot) -> Snapshot:
        """Return the state with inexhaustible pools."""
        free = snapshot.free.copy()
        free[snapshot.machine.of_kind(Kind.POOL)] = inexhaustible(snapshot.machine)
        return snapshot.imagined(snapshot.now, free)

    def rule(self) -> BackfillRule:
        """Return the rule: EASY that ignores pools in the head's reservation."""
        return BackfillRule("head", self.extra, counts_pools=False, heads=self.heads)


def inexhaustible(machine: Machine) -> int:
    """Return an amount that no pool runs out of, while the sum over all pools still fits 64 bits."""
    return int(np.iinfo(np.int64).max) // (4 * max(1, len(machine.of_kind(Kind.POOL))))
