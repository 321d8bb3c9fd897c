"""Recommendation of a study, computed from its runs: the order, the size, and the alternatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.comparison.fairest import fairest
from poolwise.metrics.intervals import Interval, paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.quantities import SECOND
from poolwise.report.sweep import Sweep
from poolwise.studies import StudyResult

GOAL = "mean_bounded_slowdown"
ADDED_WAIT = "discrimination_s"
"""Metric that decides among indistinguishable orders: total wait added compared with FCFS without backfilling."""
ENOUGH = 0.10
"""A size is enough if no size rejects fewer jobs and its best mean bounded slowdown is within this fraction of the lowest."""


@dataclass(frozen=True)
class Alternative:
    """An alternative compared with the choice, in mean bounded slowdown on the same jobs.

    `interval` is the paired difference (alternative - choice) with its 95 % interval; None if only one run exists.
    """

    alternative: str
    value: float
    ratio: float
    interval: Interval | None

    @property
    def certain(self) -> bool:
        """True if the interval excludes 0."""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The recommendation and its alternatives.

    Attributes
    ----------
    series : the recommended order, with all other varied parameters
    at : position of the recommended size in the sweep
    value : mean bounded slowdown of the recommendation
    slowdown : (n_job,) bounded slowdown of the compared jobs in submission order
    rivals : the other series at the same size, best first
    sizes : the same series at the other sizes, ascending, None at `at`
    least : lowest mean bounded slowdown of any series at each size, inf without a measurement
    rejected : maximum number of jobs that a run at each size can never run
    """

    series: str
    at: int
    value: float
    slowdown: FloatArray
    rivals: tuple[Alternative, ...]
    sizes: tuple[Alternative | None, ...]
    least: tuple[float, ...]
    rejected: tuple[int, ...]

    @property
    def jobs(self) -> int:
        """Number of compared jobs."""
        return len(self.slowdown)

    @property
    def runner_up(self) -> Alternative | None:
        """The best other series."""
        return self.rivals[0] if self.rivals else None

    @property
    def equals(self) -> tuple[Alternative, ...]:
        """Other series whose slowdown is not distinguishable from the choice's, best first."""
        return tuple(rival for rival in self.rivals if rival.interval is not None and not rival.certain)

    @property
    def target(self) -> float:
        """Mean bounded slowdown up to which a size is enough."""
        able = [value for value, count in zip(self.least, self.rejected, strict=True) if count == min(self.rejected)]
        return (1 + ENOUGH) * min(able)


Slowdowns = Callable[[str, int], FloatArray]
"""(series, position of the size) -> (n_job,) bounded slowdown of each compared job."""


def answer(result: StudyResult, sweep: Sweep) -> Recommendation | None:
    """Choose the smallest size that is enough, and the series at that size; None if no job was measured.

    Of the series that no other is shown to beat in mean bounded slowdown, the one that adds the least wait is chosen.
    """
    return choose(sweep, lambda series, at: slowdowns(result, sweep, series, at))


def choose(sweep: Sweep, jobs: Slowdowns) -> Recommendation | None:
    """Choose from the metrics of a sweep and the slowdowns of single jobs; see `answer`."""
    values = [min((sweep.value(GOAL, s, at) for s in sweep.best(GOAL, at)[:1]), default=math.inf) for at in range(len(sweep.x))]
    rejected = tuple(_count_rejected(sweep, at) for at in range(len(sweep.x)))
    able = [value if count == min(rejected) else math.inf for value, count in zip(values, rejected, strict=True)]
    if not np.isfinite(able).any():
        return None
    at = next(k for k, value in enumerate(able) if value <= (1 + ENOUGH) * min(able))
    ranked = sweep.best(GOAL, at)

    jobs = lru_cache(maxsize=64)(jobs)

    @cache
    def compare(alternative: str, other: str) -> Alternative:
        return _compare(jobs(other, at), alternative, jobs(alternative, at))

    series = fairest(
        ranked,
        lambda s: sweep.value(ADDED_WAIT, s, at),
        lambda a, b: compare(a, b).interval or _UNKNOWN,
    )
    choice = jobs(series, at)
    rivals = tuple(compare(s, series) for s in ranked if s != series)
    sizes = tuple(None if k == at else _compare(choice, sweep.labels[k], jobs(series, k)) for k in range(len(sweep.x)))
    return Recommendation(series, at, sweep.value(GOAL, series, at), choice, rivals, sizes, tuple(values), rejected)


def _count_rejected(sweep: Sweep, at: int) -> int:
    """Return the number of jobs that can never run at a size, maximum over its runs."""
    return max((sum(cell.rejected.values()) for s in sweep.series for cell in sweep.cells.get((s, at), ())), default=0)


_UNKNOWN = Interval(math.nan, math.nan, math.nan, 0.95, 0)


def _compare(choice: FloatArray, label: str, other: FloatArray) -> Alternative:
    if not len(choice) or choice.shape != other.shape:
        return Alternative(label, float("nan"), float("nan"), None)
    return Alternative(label, float(other.mean()), float(other.mean() / choice.mean()), paired_block_bootstrap(other - choice))


def slowdowns(result: StudyResult, sweep: Sweep, series: str, at: int) -> FloatArray:
    """Return the bounded slowdown of each job of the common population, (n_job,).

    If all seeds have the same jobs (and draw only memory sensitivities), a job's value is its mean over the seeds. If each seed
    draws its own workload, the seeds are concatenated.
    """
    cells = sweep.cells.get((series, at), ())
    outcomes, tau_s = [result.outcomes(cell) for cell in cells], result.study.measure.tau / SECOND
    columns = [bounded_slowdown(o, tau_s)[result.population(cell)] for o, cell in zip(outcomes, cells, strict=True)]
    if not columns:
        return np.zeros(0)
    same = all(np.array_equal(o.submit, outcomes[0].submit) and np.array_equal(o.id, outcomes[0].id) for o in outcomes)
    return np.mean(columns, axis=0) if same else np.concatenate(columns)
