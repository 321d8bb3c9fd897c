"""The recommendation of a study, computed from its runs: which order, how much pool, and what speaks for and against it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.intervals import Interval, paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.report.sweep import Sweep
from poolwise.studies import StudyResult

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


@dataclass(frozen=True)
class Recommendation:
    """The recommendation and what speaks for and against it.

    Attributes
    ----------
    series : the order (with what else was varied) to run
    at : position of the pool size in the sweep
    value : mean bounded slowdown there
    jobs : jobs on which it is compared
    rivals : the other series at the same size, best first
    sizes : the same series at the other sizes, ascending, None at `at`
    """

    series: str
    at: int
    value: float
    jobs: int
    rivals: tuple[Alternative, ...]
    sizes: tuple[Alternative | None, ...]

    @property
    def runner_up(self) -> Alternative | None:
        """The best of the other series."""
        return self.rivals[0] if self.rivals else None


def answer(result: StudyResult, sweep: Sweep) -> Recommendation | None:
    """Choose the smallest size that is enough, and the best series there; None where nothing could be measured."""
    best = [sweep.best(GOAL, at)[:1] for at in range(len(sweep.x))]
    values = [sweep.value(GOAL, found[0], at) if found else np.inf for at, found in enumerate(best)]
    if not np.isfinite(values).any():
        return None
    turned_away = [_rejected(sweep, at) for at in range(len(sweep.x))]
    able = [value if count == min(turned_away) else np.inf for value, count in zip(values, turned_away, strict=True)]
    at = next(k for k, value in enumerate(able) if value <= (1 + ENOUGH) * min(able))
    series = best[at][0]
    choice = _slowdowns(result, sweep, series, at)
    rivals = tuple(_compare(choice, s, _slowdowns(result, sweep, s, at)) for s in sweep.best(GOAL, at) if s != series)
    sizes = tuple(
        None if k == at else _compare(choice, sweep.labels[k], _slowdowns(result, sweep, series, k))
        for k in range(len(sweep.x))
    )
    return Recommendation(series, at, values[at], len(choice), rivals, sizes)


def _rejected(sweep: Sweep, at: int) -> int:
    """Most jobs that a run at a size could never take."""
    return max((sum(cell.rejected.values()) for s in sweep.series for cell in sweep.cells.get((s, at), ())), default=0)


def _compare(choice: FloatArray, label: str, other: FloatArray) -> Alternative:
    if not len(choice) or choice.shape != other.shape:
        return Alternative(label, float("nan"), float("nan"), None)
    return Alternative(label, float(other.mean()), float(other.mean() / choice.mean()), paired_block_bootstrap(other - choice))


def _slowdowns(result: StudyResult, sweep: Sweep, series: str, at: int) -> FloatArray:
    """Bounded slowdown of each job of the common population.

    Seeds that only draw sensitivities share their jobs: a job's mean over the seeds. Seeds that draw the workload itself
    give jobs of their own: one after the other.
    """
    cells = sweep.cells.get((series, at), ())
    outcomes = [result.outcomes(cell) for cell in cells]
    columns = [bounded_slowdown(o)[result.population(cell)] for o, cell in zip(outcomes, cells, strict=True)]
    if not columns:
        return np.zeros(0)
    same = all(np.array_equal(o.submit, outcomes[0].submit) and np.array_equal(o.id, outcomes[0].id) for o in outcomes)
    return np.mean(columns, axis=0) if same else np.concatenate(columns)
