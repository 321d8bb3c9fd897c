"""Cache of waiting jobs that do not fit even on the empty machine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poolwise.arrays import IntArray, arrays_equal, immutable
from poolwise.model import Queue, Refusal, Snapshot

SignatureFunction = Callable[[Snapshot], IntArray | None]
"""Function that returns (n_job,) signatures; either all jobs with the same signature fit, or none does
(`interfaces.placement.signatures_of`)."""

NEVER_FITS = "cannot fit on the empty machine"
"""Prefix of the reason for rejecting a job that does not fit on the empty machine."""

FitJudge = Callable[[int, Snapshot], Refusal | None]
"""Function that returns why the empty machine refuses a job (row), None if it fits."""


class Fitting:
    """Refusals of waiting jobs by the empty machine, evaluated once while capacities stay the same.

    The result follows from the queue and the snapshot alone; earlier evaluations are a cache.
    """

    def __init__(self) -> None:
        self._capacity: IntArray | None = None
        self._evaluated = np.zeros(0, dtype=np.bool_)  # by row
        self._refused = np.zeros(0, dtype=np.bool_)  # by row
        self._refusals: dict[int, Refusal] = {}
        self._by_class: dict[int, Refusal | None] = {}  # class of jobs -> refusal of its first job
        self._complete: tuple[Queue, int] | None = None  # fully evaluated queue, and its number of joins at that time

    def refusals(
        self, queue: Queue, snapshot: Snapshot, judge: FitJudge, signatures: SignatureFunction | None = None
    ) -> dict[int, Refusal]:
        """Return the waiting jobs that do not fit on the empty machine, in queue order, each with the reason."""
        if self._capacity is None or not arrays_equal(self._capacity, snapshot.capacity):
            self._capacity = immutable(snapshot.capacity)
            self._evaluated, self._refused = np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
            self._refusals, self._by_class, self._complete = {}, {}, None
        if self._complete is None or self._complete[0] is not queue or self._complete[1] != queue.joined:
            self._evaluate(queue, snapshot, judge, signatures)
        return {job: self._refusals[job] for job in queue.jobs[self._refused[queue.jobs]].tolist()} if self._refusals else {}

    def _evaluate(self, queue: Queue, snapshot: Snapshot, judge: FitJudge, signatures: SignatureFunction | None) -> None:
        """Evaluate the waiting jobs that have not been evaluated yet."""
        if len(self._evaluated) < len(queue.table):
            more = np.zeros(len(queue.table), dtype=np.bool_)
            self._evaluated, self._refused = (np.concatenate([each, more]) for each in (self._evaluated, self._refused))
        jobs = queue.jobs
        fresh = jobs[~self._evaluated[jobs]]
        if len(fresh):
            self._evaluated[fresh] = True
            empty = snapshot.empty()
            numbers = signatures(snapshot) if signatures is not None else None
            judged = self._by_class if numbers is not None else {}
            for job, number in zip(fresh.tolist(), (fresh if numbers is None else numbers[fresh]).tolist(), strict=True):
                if number not in judged:
                    judged[number] = judge(job, empty)
                refusal = judged[number]
                if refusal is not None:
                    self._refused[job], self._refusals[job] = True, refusal
        self._complete = queue, queue.joined
