"""Which waiting jobs the machine could not hold even if it were empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poolwise.arrays import IntArray, kept, same
from poolwise.model import Queue, Refusal, Snapshot

NEVER_FITS = "cannot fit on the empty machine"
"""How the reason of such a rejection begins."""

FitJudge = Callable[[int, Snapshot], Refusal | None]
"""Says of a job (row) whether the empty machine refuses it."""


class Fitting:
    """Whether the empty machine refuses each waiting job, asked once for as long as its capacities stay the same.

    It follows from the queue and the snapshot alone: what was asked before is a cache.
    """

    def __init__(self) -> None:
        self._capacity: IntArray | None = None
        self._edition = -1
        self._asked = np.zeros(0, dtype=np.bool_)  # by row
        self._refusals: dict[int, Refusal] = {}

    def refusals(self, queue: Queue, snapshot: Snapshot, judge: FitJudge) -> dict[int, Refusal]:
        """Waiting jobs that do not fit the empty machine, in the order of the queue, and why."""
        if self._capacity is None or self._edition != queue.table.edition or not same(self._capacity, snapshot.capacity):
            self._capacity, self._edition = kept(snapshot.capacity), queue.table.edition
            self._asked, self._refusals = np.zeros(0, dtype=np.bool_), {}
        if len(self._asked) < len(queue.table):
            self._asked = np.concatenate([self._asked, np.zeros(len(queue.table), dtype=np.bool_)])
        jobs = queue.jobs
        fresh = jobs[~self._asked[jobs]]
        if len(fresh):
            self._asked[fresh] = True
            empty = snapshot.empty()
            for job in fresh.tolist():
                refusal = judge(job, empty)
                if refusal is not None:
                    self._refusals[job] = refusal
        return {job: self._refusals[job] for job in jobs.tolist() if job in self._refusals} if self._refusals else {}
