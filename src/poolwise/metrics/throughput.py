"""Throughput, utilization, offered load and makespan.

Source: Li et al., Fair Memory, section II-C; specs of the memory pools, "Measurement".
"""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.metrics.outcomes import Outcomes, Status
from poolwise.metrics.window import Window
from poolwise.quantities import SECOND


def throughput_per_100s(outcomes: Outcomes, window: Window) -> float:
    """Return the number of jobs that end in the window (begin excluded, end included) per 100 s; NaN for an empty window.

    All jobs count, including the warm-up, because throughput is a property of the machine.
    """
    if window.end <= window.begin:
        return float("nan")
    ended = outcomes.finished & (outcomes.end > window.begin) & (outcomes.end <= window.end)
    return 100.0 * int(np.count_nonzero(ended)) / window.length_s


def overlap_s(outcomes: Outcomes, window: Window) -> FloatArray:
    """Return (n_job,) seconds of each job's run inside the window, 0 for jobs that did not finish."""
    inside = np.minimum(outcomes.end, window.end) - np.maximum(outcomes.start, window.begin)
    return np.where(outcomes.finished, np.maximum(inside, 0), 0) / SECOND


def utilization(outcomes: Outcomes, window: Window) -> float:
    """Return node-seconds of all jobs inside the window / (nodes x window), in [0, 1].

    The result is NaN for an empty window and if jobs share nodes. The nodes are those of the machine at the start. Work that
    was stopped or lost does not count.
    """
    if window.end <= window.begin or not outcomes.whole_nodes:
        return float("nan")
    busy = float((outcomes.nodes_held * overlap_s(outcomes, window)).sum())
    return busy / (outcomes.n_nodes * window.length_s)


def offered_load(outcomes: Outcomes, among: BoolArray | None = None) -> float:
    """Return requested node-seconds / node-seconds available between the first and the last submission, as in `trace info`.

    Above 1 the queue grows as long as jobs arrive, and waits depend more on the length of the log than on the policy. Rejected
    jobs are excluded, as are jobs outside `among`, (n_job,), if given. The result is NaN if all jobs are submitted at once,
    and if jobs share nodes.
    """
    offered = outcomes.n_nodes * (np.ptp(outcomes.submit) / SECOND if len(outcomes) else 0.0)
    if not offered or not outcomes.whole_nodes:
        return float("nan")
    counted = outcomes.status != Status.REJECTED
    requested = (outcomes.nodes * (outcomes.duration / SECOND))[counted if among is None else counted & among]
    return float(requested.sum() / offered)


def makespan_s(outcomes: Outcomes) -> float:
    """Return last end - first submission, seconds; NaN if no job finished."""
    ends = outcomes.end[outcomes.finished]
    return (int(ends.max()) - outcomes.first_submit) / SECOND if len(ends) else float("nan")
