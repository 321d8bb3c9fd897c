"""Recalibration of forecasts: past errors (in logarithms of waits) shift each quantile.

A correction uses only what is known at the time of the forecast. If the job of an earlier forecast still waits, only a lower
bound of its wait is known, and the forecast counts as censored.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.forecasting.runtimes import kaplan_meier
from poolwise.quantities import NEVER, SECOND

LEVELS = np.array([0.02, 0.05, *np.arange(0.1, 0.95, 0.05).round(2), 0.95, 0.98])
"""Levels of the quantiles of a forecast."""
SOFT = 300.0
"""Seconds added to waits before taking logarithms; differences between shorter waits hardly matter."""
OF_PLAN = 0.2
"""Weight of the plan with mean runtimes in a corrected forecast."""
REMEMBERED = 60
"""Number of past forecast times to keep."""


@dataclass(frozen=True, eq=False)
class PastForecasts:
    """Forecasts made at one time.

    Attributes
    ----------
    now : time of the forecasts, ns
    job : (m,) jobs
    quantiles : (m, n_level) seconds until the start, before correction
    """

    now: int
    job: IntArray
    quantiles: FloatArray


@dataclass(eq=False)
class Recalibration:
    """Corrects the quantiles of one forecaster; a point forecast has equal quantiles.

    `prior` is the weight of a prior error of zero, which keeps corrections small while there are few forecasts. The m forecasts
    of one time have a combined weight of sqrt(m), because their errors are correlated.
    """

    prior: float
    past: deque[PastForecasts] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def moves(self, now: int, start: IntArray) -> FloatArray:
        """Return the shifts of the quantiles' logarithms, (n_level,), from what is known at `now`.

        `start`, (n_job,) ns, holds the starts of jobs; starts after `now` count only as censored.
        """
        if not self.past:
            return np.zeros(len(LEVELS))
        off, started, weight = [np.zeros((1, len(LEVELS)))], [np.ones(1, dtype=np.bool_)], [np.array([self.prior])]
        for then in self.past:
            begun = np.minimum(start[then.job], now)
            off.append(np.log((begun - then.now) / SECOND + SOFT)[:, None] - np.log(then.quantiles + SOFT))
            started.append(start[then.job] <= now)
            weight.append(np.full(len(then.job), 1.0 / np.sqrt(len(then.job))))
        errors, over, size = np.concatenate(off), np.concatenate(started), np.concatenate(weight)
        return np.array([_quantile(errors[:, k], over, size, level) for k, level in enumerate(LEVELS.tolist())])

    def remember(self, now: int, job: IntArray, quantiles: FloatArray) -> None:
        """Store forecasts as they were before correction."""
        self.past.append(PastForecasts(now, job, quantiles))


def moved(quantiles: FloatArray, moves: FloatArray) -> FloatArray:
    """Return the quantiles, (m, n_level), corrected by shifts of their logarithms, (n_level,)."""
    corrected: FloatArray = np.maximum(np.exp(np.log(quantiles + SOFT) + moves) - SOFT, 0.0)
    return np.maximum.accumulate(corrected, axis=1)


class Corrections(NamedTuple):
    """Corrections of forecasts at one time.

    Attributes
    ----------
    versions, plan : (n_level,) shifts of the quantiles of scenarios and of a plan with mean runtimes (`Recalibration.moves`)
    """

    versions: FloatArray
    plan: FloatArray

    def apply(self, drawn: FloatArray, mean: FloatArray) -> FloatArray:
        """Combine the quantiles of scenarios, (m, n_level), with a plan, (m,), both in seconds; return quantiles, (m, n_level).

        The combination is a weighted mean of logarithms; the errors of different forecasters partly cancel out (Bates, Granger
        1969).
        """
        ours, planned = moved(drawn, self.versions), self.widened(mean)
        combined: FloatArray = np.exp((1 - OF_PLAN) * np.log(ours + SOFT) + OF_PLAN * np.log(planned + SOFT)) - SOFT
        return combined

    def widened(self, mean: FloatArray) -> FloatArray:
        """Return quantiles, (m, n_level), of a plan, (m,) seconds, widened by past errors."""
        return moved(np.repeat(mean[:, None], len(LEVELS), axis=1), self.plan)


def _quantile(errors: FloatArray, over: BoolArray, size: FloatArray, level: float) -> float:
    """Return a quantile of partly censored errors."""
    curve = kaplan_meier(errors, over, size)
    at = int(np.searchsorted(np.cumsum(curve.mass), level))
    return float(curve.value[min(at, len(curve.value) - 1)])


def sample_quantiles(starts: IntArray, now: int) -> FloatArray:
    """Return quantiles of the seconds until the start, (m, n_level), from starts, (n_sample, m); infinite without a start."""
    waits = np.where(starts == NEVER, np.inf, (np.minimum(starts, NEVER // 2) - now) / SECOND)
    values: FloatArray = np.quantile(waits, LEVELS, axis=0, method="inverted_cdf" if np.isinf(waits).any() else "linear").T
    return values


def chance_within(quantiles: FloatArray, seconds: float) -> FloatArray:
    """Return the probabilities of a start within the given seconds, (m,), interpolated between quantiles, (m, n_level)."""
    edge = np.concatenate([[0.0], LEVELS, [1.0]])
    chance = np.empty(len(quantiles))
    for k, row in enumerate(quantiles):
        first, last = max(row[0] - (row[1] - row[0]), 0.0), row[-1] + (row[-1] - row[-2])
        values = np.concatenate([[min(first, row[0])], row, [last]])
        below = np.searchsorted(values, seconds, side="right")
        if below == 0:
            chance[k] = 0.0
        elif below == len(values):
            chance[k] = 1.0
        else:
            low, high = values[below - 1], values[below]
            share = (seconds - low) / (high - low) if high > low else 1.0
            chance[k] = edge[below - 1] + share * (edge[below] - edge[below - 1])
    return chance
