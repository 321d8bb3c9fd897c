"""No backfilling: strict priority order, in which the first job that does not fit blocks the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.interfaces import BackfillPolicy, SchedulingPass
from poolwise.model import Refusal, Snapshot, Start, WaitCause
from poolwise.model.rules import BackfillRule
from poolwise.registry import register


@register("backfills", "none")
@dataclass(frozen=True)
class NoBackfill(BackfillPolicy):
    """Start jobs in priority order until one does not fit."""

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Select the starts."""
        starts, at, state = start_in_order(cycle)
        for job in cycle.to_explain(starts):
            head = int(cycle.queue.jobs[at])
            lack = cycle.place(head, state)
            if not isinstance(cycle.place(job, state), Refusal) and isinstance(lack, Refusal):
                text = f"it fits, but the policy does not backfill, and the head job waits: {lack.reason}"
                cycle.record(job, WaitCause.ORDER, text, lack, blocker=head)
        return starts

    def rule(self) -> BackfillRule:
        """Return the rule: no job has a reservation."""
        return BackfillRule("none")


def start_in_order(cycle: SchedulingPass) -> tuple[list[Start], int, Snapshot]:
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
    queue, priority, snapshot = cycle.queue, cycle.priority, cycle.snapshot
    jobs, left = queue.jobs, np.arange(len(queue))
    starts: list[Start] = []
    while len(left):
        at = int(np.argmax(priority[left]))
        head = int(left[at])
        job = int(jobs[head])
        found = cycle.place(job, snapshot)
        if isinstance(found, Refusal):
            return starts, head, snapshot
        starts.append(Start(job, queue.tasks(job), found))
        snapshot = snapshot.with_started(job, found)
        left = np.concatenate([left[:at], left[at + 1 :]])
    return starts, -1, snapshot
