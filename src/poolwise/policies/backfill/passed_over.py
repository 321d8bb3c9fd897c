"""A waiting job that a pass left where it was: in which state it was considered, and who stood before it."""

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
    """A waiting job in a pass that did not start it. Nothing is decided anew.

    The state in which a job was considered is the snapshot with the starts that came before it.

    Attributes
    ----------
    job : row
    queue, snapshot : before the pass
    placement : the policy by which jobs are placed
    ranked : rows of the queue in the order of priority
    rank : row -> position in it
    starts : starts of the pass, in the order of their decision
    ahead : rows of higher priority that were left waiting, in the order of priority; the first is the head
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
        """Find the passed-over job, given what `BackfillPolicy.why` is given."""
        ranked: list[int] = queue.jobs[np.argsort(-priority, kind="stable")].tolist()
        rank = {row: k for k, row in enumerate(ranked)}
        started = {start.job for start in starts}
        ahead = [row for row in ranked[: rank[job]] if row not in started]
        return cls(job, queue, snapshot, placement, ranked, rank, starts, ahead)

    def between(self, first: int, end: int) -> list[Start]:
        """Starts of the jobs at positions first <= rank < end."""
        return [start for start in self.starts if first <= self.rank[start.job] < end]

    def lack(self, row: int, state: Snapshot) -> Refusal | None:
        """What a job lacks in a state, None where it fits."""
        found = self.placement.place(self.queue.job(row), state)
        return found if isinstance(found, Refusal) else None

    def short(self) -> Reason | None:
        """Say which resource the jobs before it have left too little of, None where it fits beside them."""
        lack = self.lack(self.job, self.snapshot.with_starts(self.between(0, self.rank[self.job])))
        return None if lack is None else Reason.of(Rule.SHORT, lack.reason, lack)

    def contradiction(self) -> PolicyError:
        """Error for a job that should have started."""
        job, now = int(self.snapshot.table.id[self.job]), self.snapshot.now
        return PolicyError(f"job {job} was left waiting at {now} ns, although by the scheduler's rule it starts there")
