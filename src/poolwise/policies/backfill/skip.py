"""List scheduling without a head: a job that does not fit is skipped and blocks no other job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.interfaces import BackfillPolicy, PlacementPolicy
from poolwise.model import Queue, Reason, Refusal, Snapshot, Start
from poolwise.policies.backfill.passed_over import PassedOver
from poolwise.registry import register


@register("backfills", "skip")
@dataclass(frozen=True)
class Skip(BackfillPolicy):
    """Try every job once in priority order and start all that fit. Nothing is reserved, so large jobs may starve.

    Source: Graham 1966 (list scheduling); NVMe-composition spec, "Policies" (a job that does not fit does not block the
    rest).
    """

    def select(self, queue: Queue, priority: FloatArray, snapshot: Snapshot, placement: PlacementPolicy) -> Iterable[Start]:
        """Select the starts."""
        jobs = queue.jobs
        able = np.flatnonzero(placement.screen(jobs, snapshot.free[None], snapshot))
        for job in jobs[able[np.argsort(-priority[able], kind="stable")]].tolist():
            found = placement.place(queue.job(job), snapshot)
            if not isinstance(found, Refusal):
                yield Start(job, queue.tasks(job), found)
                snapshot = snapshot.with_started(job, found)

    def why(
        self,
        job: int,
        queue: Queue,
        priority: FloatArray,
        snapshot: Snapshot,
        placement: PlacementPolicy,
        starts: Sequence[Start],
    ) -> Reason:
        """Return the job's shortage given the starts of higher priority; nothing else can hold a job back."""
        passed = PassedOver.of(job, queue, priority, snapshot, placement, starts)
        short = passed.shortage()
        if short is None:
            raise passed.inconsistency()
        return short
