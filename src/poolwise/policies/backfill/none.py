"""No backfilling: strict priority order, in which the first job that does not fit blocks the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.interfaces import BackfillPolicy, PlacementPolicy
from poolwise.model import Queue, Reason, Refusal, Rule, Snapshot, Start
from poolwise.model.rules import BackfillRule
from poolwise.policies.backfill.passed_over import PassedOver
from poolwise.registry import register


@register("backfills", "none")
@dataclass(frozen=True)
class NoBackfill(BackfillPolicy):
    """Start jobs in priority order until one does not fit."""

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Select the starts."""
        starts, _, _ = start_in_order(queue, priority, snapshot, placement)
        return starts

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Name the head of the queue if the job itself would fit."""
        passed = PassedOver.of(job, queue, priority, snapshot, placement, starts)
        if (short := passed.shortage()) is not None:
            return short
        lack = passed.refusal(passed.ahead[0], snapshot.with_starts(starts)) if passed.ahead else None
        if lack is None:
            raise passed.inconsistency()
        text = f"it fits, but the policy does not backfill, and the head job waits: {lack.reason}"
        return Reason.of(Rule.ORDER, text, lack, blocker=passed.ahead[0])

    def rule(self) -> BackfillRule:
        """Return the rule: no job has a reservation."""
        return BackfillRule("none")


def start_in_order(
    queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy
) -> tuple[list[Start], int, Snapshot]:
    """Start jobs in priority order until one does not fit.

    Returns
    -------
    starts
        The starts in priority order.
    head
        Position in the queue of the first job that does not fit, -1 if all started. It is the first maximum of the remaining
        priorities, found by one linear scan per start, without a sort.
    snapshot
        The state with these starts.
    """
    jobs = queue.jobs
    left = np.arange(len(jobs))
    starts: list[Start] = []
    while len(left):
        at = int(np.argmax(priority[left]))
        head = int(left[at])
        job = int(jobs[head])
        found = placement.place(queue.job(job), snapshot)
        if isinstance(found, Refusal):
            return starts, head, snapshot
        starts.append(Start(job, queue.tasks(job), found))
        snapshot = snapshot.with_started(job, found)
        left = np.concatenate([left[:at], left[at + 1 :]])
    return starts, -1, snapshot
