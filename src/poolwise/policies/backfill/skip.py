"""List scheduling without a head: a job that does not fit is skipped and blocks no other job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.interfaces import BackfillPolicy, SchedulingPass
from poolwise.model import Refusal, Start
from poolwise.registry import register


@register("backfills", "skip")
@dataclass(frozen=True)
class Skip(BackfillPolicy):
    """Try every job once in priority order and start all that fit. Nothing is reserved, so large jobs may starve.

    Source: Graham 1966 (list scheduling); NVMe-composition spec, "Policies" (a job that does not fit does not block the
    rest).
    """

    def select(self, cycle: SchedulingPass) -> Iterable[Start]:
        """Select the starts."""
        jobs, snapshot = cycle.queue.jobs, cycle.snapshot
        able = np.flatnonzero(cycle.prefilter(jobs, snapshot))
        for job in jobs[able[np.argsort(-cycle.priority[able], kind="stable")]].tolist():
            placement = cycle.place(job, snapshot)
            if not isinstance(placement, Refusal):
                yield Start(job, cycle.queue.tasks(job), placement)
                snapshot = snapshot.with_started(job, placement)
