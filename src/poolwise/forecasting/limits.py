"""Requested times as users wrote them, and what stands for them where they wrote none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import Workload
from poolwise.units import DAY, HOUR, UNKNOWN, format_time, to_seconds

ROUND = (HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY, 365 * DAY)
"""Limits that sites set."""


def with_limits(workload: Workload) -> tuple[Workload, tuple[str, ...]]:
    """Give jobs without a request the limit that a site would have: one for all, which says nothing of any of them.

    A log all of whose requests are the runtimes has none. Returns the jobs, and sentences on what was done.
    """
    unknown = workload.requested >= UNKNOWN
    if np.array_equal(workload.requested, workload.duration):
        unknown = np.ones(len(workload), dtype=np.bool_)
    count = int(unknown.sum())
    if not count:
        return workload, ()
    if count < len(workload):
        limit, which = int(workload.requested[~unknown].max()), "the longest request of the log"
    else:
        longest = int(workload.duration.max())
        limit, which = next((one for one in ROUND if one >= longest), longest), "a round limit that no job of the log exceeds"
    said = f"{count:,} jobs have no requested time: all of them count as asking for {format_time(to_seconds(limit))}, {which}"
    return replace(workload, requested=np.where(unknown, limit, workload.requested)), (said,)
