"""The recommendation of a study, computed from its runs: which order, how much pool, and what speaks for and against it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.intervals import Interval, paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.report.sweep import Sweep
from poolwise.studies import StudyResult
from poolwise.units import SECOND

GOAL = "mean_bounded_slowdown"
ENOUGH = 0.10
"""A pool is enough when no size can run more jobs and the best order's mean bounded slowdown is within this of the least."""


@dataclass(frozen=True)
class Alternative:
    """How much worse an alternative is than the choice, in mean bounded slowdown on the same jobs.

    `interval` is the paired difference (alternative - choice) with its 95 % interval; None where only one run exists.
    """

    alternative: str
    value: float
    ratio: float
    interval: Interval | None

    @property
    def certain(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval is not None and (self.interval.low > 0 or self.interval.high < 0)


@dataclass(frozen=True, eq=False)
class Recommendation:
    """The recommendation and what speaks for and against it.

    Attributes
    ----------
    series : the order (with what else was varied) to run
    at : position of the pool size in the sweep
    value : mean bounded slowdown there
    slowdown : (n_job,) bounded slowdown of the jobs on which it is compared, in the order of submission
    rivals : the other series at the same size, best first
    sizes : the same series at the other sizes, ascending, None at `at`
    least : least mean bounded slowdown of any series at each size, inf where nothing could be measured
    turned_away : most jobs that a run at each size could never take
    """

    series: str
    at: int
    value: float
    slowdown: FloatArray
    rivals: tuple[Alternative, ...]
    sizes: tuple[Alternative | None, ...]
    least: tuple[float, ...]
    turned_away: tuple[int, ...]

    @property
    def jobs(self) -> int:
        """Jobs on which it is compared."""
        return len(self.slowdown)

    @property
    def runner_up(self) -> Alternative | None:
        """The best of the other series."""
        return self.rivals[0] if self.rivals else None

    @property
    def equals(self) -> tuple[Alternative, ...]:
        """Other series whose slowdown the evidence cannot tell from that of the choice, best first."""
        return tuple(rival for rival in self.rivals if rival.interval is not None and not rival.certain)

    @property
    def target(self) -> float:
        """Mean bounded slowdown up to which a size is enough."""
        able = [value for value, count in zip(self.least, self.turned_away, strict=True) if count == min(self.turned_away)]
        return (1 + ENOUGH) * min(able)


Slowdowns = Callable[[str, int], FloatArray]
"""(series, position of the size) -> (n_job,) bounded slowdown of each job that is compared."""


def answer(result: StudyResult, sweep: Sweep) -> Recommendation | None:
    """Choose the smallest size that is enough, and the best series there; None where nothing could be measured."""
    return choose(sweep, lambda series, at: slowdowns(result, sweep, series, at))


def choose(sweep: Sweep, jobs: Slowdowns) -> Recommendation | None:
    """Choose from the metrics of a sweep and what single jobs fared; see `answer`."""
    best = [sweep.best(GOAL, at)[:1] for at in range(len(sweep.x))]
    values = [sweep.value(GOAL, found[0], at) if found else math.inf for at, found in enumerate(best)]
    turned_away = tuple(_rejected(sweep, at) for at in range(len(sweep.x)))
    able = [value if count == min(turned_away) else math.inf for value, count in zip(values, turned_away, strict=True)]
    if not np.isfinite(able).any():
        return None
    at = next(k for k, value in enumerate(able) if value <= (1 + ENOUGH) * min(able))
    series = best[at][0]
    choice = jobs(series, at)
    rivals = tuple(_compare(choice, s, jobs(s, at)) for s in sweep.best(GOAL, at) if s != series)
    sizes = tuple(None if k == at else _compare(choice, sweep.labels[k], jobs(series, k)) for k in range(len(sweep.x)))
    return Recommendation(series, at, values[at], choice, rivals, sizes, tuple(values), turned_away)


def _rejected(sweep: Sweep, at: int) -> int:
    """Most jobs that a run at a size could never take."""
    return max((sum(cell.rejected.values()) for s in sweep.series for cell in sweep.cells.get((s, at), ())), default=0)


def _compare(choice: FloatArray, label: str, other: FloatArray) -> Alternative:
    if not len(choice) or choice.shape != other.shape:
        return Alternative(label, float("nan"), float("nan"), None)
    return Alternative(label, float(other.mean()), float(other.mean() / choice.mean()), paired_block_bootstrap(other - choice))


def slowdowns(result: StudyResult, sweep: Sweep, series: str, at: int) -> FloatArray:
    """Bounded slowdown of each job of the common population.

    Seeds that only draw sensitivities share their jobs: a job's mean over the seeds. Seeds that draw the workload itself
    give jobs of their own: one after the other.
    """
    cells = sweep.cells.get((series, at), ())
    outcomes, tau_s = [result.outcomes(cell) for cell in cells], result.study.measure.tau / SECOND
    columns = [bounded_slowdown(o, tau_s)[result.population(cell)] for o, cell in zip(outcomes, cells, strict=True)]
    if not columns:
        return np.zeros(0)
    same = all(np.array_equal(o.submit, outcomes[0].submit) and np.array_equal(o.id, outcomes[0].id) for o in outcomes)
    return np.mean(columns, axis=0) if same else np.concatenate(columns)
