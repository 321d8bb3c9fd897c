"""Requested times as users wrote them, and the default for jobs without one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import Workload
from poolwise.units import DAY, HOUR, UNKNOWN, format_time, to_seconds

ROUND = (HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY, 365 * DAY)
"""Time limits that sites commonly set."""


def with_limits(workload: Workload) -> tuple[Workload, tuple[str, ...]]:
    """Give jobs without a requested time the default limit that a site would set, which carries no information about a job.

    A log whose requests all equal the runtimes has no requests. Returns the workload and notes.
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
    said = f"{count:,} jobs without a requested time are assumed to request {format_time(to_seconds(limit))}, {which}"
    return replace(workload, requested=np.where(unknown, limit, workload.requested)), (said,)
