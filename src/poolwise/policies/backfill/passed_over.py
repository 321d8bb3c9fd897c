"""Context of a waiting job that a pass did not start, from which backfill policies explain why it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.errors import PolicyError
from poolwise.interfaces import PlacementPolicy
from poolwise.model import Queue, Reason, Refusal, Rule, Snapshot, Start


@dataclass(frozen=True)
class PassedOver:
    """A waiting job that a pass did not start, with the state in which the pass considered it. Nothing is decided again.

    A job is considered in the snapshot plus the starts that precede it in priority order.

    Attributes
    ----------
    job : row of the job
    queue, snapshot : queue and state before the pass
    placement : placement policy of the scheduler
    ranked : rows of the queue in priority order
    rank : row -> position in `ranked`
    starts : starts of the pass, in the order of their decision
    ahead : rows of higher priority that also wait, in priority order; the first is the head
    """

    job: int
    queue: Queue
    snapshot: Snapshot
    placement: PlacementPolicy
    ranked: list[int]
    rank: dict[int, int]
    starts: Sequence[Start]
    ahead: list[int]

    @classmethod
    def of(
        cls,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> PassedOver:
        """Build the context from the arguments of `BackfillPolicy.why`."""
        ranked: list[int] = queue.jobs[np.argsort(-priority, kind="stable")].tolist()
        rank = {row: k for k, row in enumerate(ranked)}
        started = {start.job for start in starts}
        ahead = [row for row in ranked[: rank[job]] if row not in started]
        return cls(job, queue, snapshot, placement, ranked, rank, starts, ahead)

    def starts_between(self, first: int, end: int) -> list[Start]:
        """Return the starts of the jobs with first <= rank < end."""
        return [start for start in self.starts if first <= self.rank[start.job] < end]

    def refusal(self, row: int, state: Snapshot) -> Refusal | None:
        """Return the placement's refusal of a job in a state, None if the job fits."""
        found = self.placement.place(self.queue.job(row), state)
        return found if isinstance(found, Refusal) else None

    def shortage(self) -> Reason | None:
        """Return the resource that jobs of higher priority left short, None if the job fits along with them."""
        lack = self.refusal(self.job, self.snapshot.with_starts(self.starts_between(0, self.rank[self.job])))
        return None if lack is None else Reason.of(Rule.SHORT, lack.reason, lack)

    def inconsistency(self) -> PolicyError:
        """Return the error for a job that waits although the policy's own rule starts it."""
        job, now = int(self.snapshot.table.id[self.job]), self.snapshot.now
        return PolicyError(f"job {job} was left waiting at {now} ns, although the scheduler's own rule starts it then")
