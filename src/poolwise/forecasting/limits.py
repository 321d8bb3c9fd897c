"""Default time limit for jobs without a requested time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.model import Workload
from poolwise.units import DAY, HOUR, UNKNOWN, format_time, to_seconds

ROUND = (HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY, 4 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 60 * DAY, 365 * DAY)
"""Time limits that sites commonly set, ns."""


def with_limits(workload: Workload) -> tuple[Workload, tuple[str, ...]]:
    """Give jobs without a requested time a common limit, as a site would; it carries no information about any job.

    A log whose requests all equal the runtimes has no requested times. Returns the workload and notes on the change.
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
    note = f"{count:,} jobs have no requested time: they count as requesting {format_time(to_seconds(limit))}, {which}"
    return replace(workload, requested=np.where(unknown, limit, workload.requested)), (note,)
