"""Measurement windows and populations.

Source: Li et al., Fair Memory, section III-C (the first 3000 jobs fill the system; they, and the jobs that end after the
last start, are excluded); specs of the memory pools, "Measurement".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.metrics.outcomes import Outcomes
from poolwise.quantities import SECOND


@dataclass(frozen=True)
class Window:
    """Time from `begin` to `end`, ns."""

    begin: int
    end: int

    @classmethod
    def of(cls, outcomes: Outcomes, warm_up: int) -> Window:
        """Return the window from the start of the last warm-up job to the start of the last job.

        The last job is the one that starts last: after that the machine only drains. Without warm-up jobs (or if none of them
        ran) the window begins with the first submission.
        """
        ran = outcomes.start[outcomes.finished]
        warm = outcomes.start[outcomes.finished & ~after_warm_up(outcomes, warm_up)]
        begin = int(warm.max()) if len(warm) else outcomes.first_submit
        return cls(begin, max(begin, int(ran.max())) if len(ran) else begin)

    @classmethod
    def whole(cls, outcomes: Outcomes) -> Window:
        """Return the window from the first submission to the last end."""
        ends = outcomes.end[outcomes.finished]
        return cls(outcomes.first_submit, int(ends.max()) if len(ends) else outcomes.first_submit)

    @property
    def length_s(self) -> float:
        """Length in seconds."""
        return (self.end - self.begin) / SECOND


def amounts_in_steps(times: IntArray, begin: IntArray, end: IntArray, amount: FloatArray) -> FloatArray:
    """Return the sum of amounts whose interval [begin, end) covers each step between ascending times (ns), (n_time - 1,)."""
    change = np.zeros(len(times) + 1)
    np.add.at(change, np.searchsorted(times, begin), amount)
    np.add.at(change, np.searchsorted(times, end), -amount)
    return np.asarray(np.cumsum(change)[: len(times) - 1])


def after_warm_up(outcomes: Outcomes, warm_up: int) -> BoolArray:
    """Return an (n_job,) mask of all but the first `warm_up` submitted jobs, finished or not."""
    return np.arange(len(outcomes)) >= warm_up


def paper_population(outcomes: Outcomes, warm_up: int, window: Window | None = None) -> BoolArray:
    """Return an (n_job,) mask of the jobs after the warm-up that end inside the window (`Window.of` by default).

    This is the paper's rule. It excludes jobs that a policy delays until the end, so it favors policies that delay jobs.
    """
    window = Window.of(outcomes, warm_up) if window is None else window
    inside = (outcomes.end >= window.begin) & (outcomes.end <= window.end)
    return after_warm_up(outcomes, warm_up) & outcomes.finished & inside


def common_population(runs: Iterable[Outcomes], warm_up: int) -> BoolArray:
    """Return an (n_job,) mask of the jobs after the warm-up that finished in all compared runs, and so were never rejected.

    Raises InputError if there are no runs, or if they do not have the same jobs.
    """
    each = iter(runs)
    first = next(each, None)
    if first is None:
        raise InputError("no runs to compare", remedy="give at least one run")
    counted = after_warm_up(first, warm_up) & first.finished
    for other in each:  # one at a time, since there may be a million runs
        check_same_jobs(first, other)
        counted &= other.finished
    return counted


def check_same_jobs(outcomes: Outcomes, other: Outcomes) -> None:
    """Raise InputError unless two runs have the same jobs, submitted at the same times."""
    if not (np.array_equal(outcomes.id, other.id) and np.array_equal(outcomes.submit, other.submit)):
        raise InputError("the runs have different jobs", field="id", remedy="compare runs of one workload")
