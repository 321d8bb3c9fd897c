"""One scheduling pass as it is looked at afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from poolwise.model import Changes, Plan, Queue, Reject, Snapshot, Start


@dataclass(frozen=True)
class Pass:
    """One scheduling pass: what the scheduler saw, and what it decided."""

    queue: Queue
    snapshot: Snapshot
    changes: Changes
    plan: Plan

    @property
    def starts(self) -> list[Start]:
        """Starts in the order of their decision, of the jobs in the queue."""
        return [d for d in self.plan.decisions if isinstance(d, Start) and d.job in self.queue]

    @property
    def rejected(self) -> list[int]:
        """Rows turned away, of the jobs in the queue."""
        return [d.job for d in self.plan.decisions if isinstance(d, Reject) and d.job in self.queue]

    def only(self, queue: Queue, arrived: Iterable[int]) -> Pass:
        """Return the pass as a scheduler saw it that was shown a part of the queue."""
        return replace(self, queue=queue, changes=replace(self.changes, arrived=tuple(arrived)))


def started(snapshot: Snapshot, starts: Iterable[Start]) -> Snapshot:
    """Return the snapshot with starts carried out."""
    for start in starts:
        snapshot = snapshot.with_started(start.job, start.placement, start.tasks)
    return snapshot
