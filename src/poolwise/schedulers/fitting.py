"""Which waiting jobs the machine could not hold even if it were empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poolwise.arrays import IntArray, arrays_equal, immutable
from poolwise.model import Queue, Refusal, Snapshot

Alike = Callable[[Snapshot], IntArray | None]
"""Gives (n_job,) numbers, the same only for jobs that are judged alike (`interfaces.placement.alike_of`)."""

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
        self._judged: dict[int, Refusal | None] = {}  # number of jobs that are alike -> what was said of one of them
        self._seen: tuple[Queue, int] | None = None  # a queue whose jobs have all been asked for, and how often some had joined

    def refusals(self, queue: Queue, snapshot: Snapshot, judge: FitJudge, alike: Alike | None = None) -> dict[int, Refusal]:
        """Waiting jobs that do not fit the empty machine, in the order of the queue, and why."""
        edition, capacity = queue.table.edition, self._capacity
        if capacity is None or self._edition != edition or not arrays_equal(capacity, snapshot.capacity):
            self._capacity, self._edition = immutable(snapshot.capacity), edition
            self._asked, self._refusals, self._judged, self._seen = np.zeros(0, dtype=np.bool_), {}, {}, None
        if self._seen is None or self._seen[0] is not queue or self._seen[1] != queue.joined:
            self._ask(queue, snapshot, judge, alike)
        return {job: self._refusals[job] for job in queue.jobs.tolist() if job in self._refusals} if self._refusals else {}

    def _ask(self, queue: Queue, snapshot: Snapshot, judge: FitJudge, alike: Alike | None) -> None:
        """Ask about the waiting jobs that have not been asked about."""
        if len(self._asked) < len(queue.table):
            self._asked = np.concatenate([self._asked, np.zeros(len(queue.table), dtype=np.bool_)])
        jobs = queue.jobs
        fresh = jobs[~self._asked[jobs]]
        if len(fresh):
            self._asked[fresh] = True
            empty = snapshot.empty()
            numbers = alike(snapshot) if alike is not None else None
            judged = self._judged if numbers is not None else {}
            for job, number in zip(fresh.tolist(), (fresh if numbers is None else numbers[fresh]).tolist(), strict=True):
                if number not in judged:
                    judged[number] = judge(job, empty)
                refusal = judged[number]
                if refusal is not None:
                    self._refusals[job] = refusal
        self._seen = queue, queue.joined
