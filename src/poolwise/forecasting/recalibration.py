"""Forecasts corrected by how earlier ones fared: each quantile is moved by what past ones were off (in logarithms of waits).

Only what is known at the time of a forecast corrects it; an earlier forecast whose job still waits is off by at least what it
has waited since, and counts as censored.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.forecasting.lifetimes import kaplan_meier
from poolwise.units import NEVER, SECOND

LEVELS = np.array([0.02, 0.05, *np.arange(0.1, 0.95, 0.05).round(2), 0.95, 0.98])
"""Levels of the quantiles of a forecast."""
SOFT = 300.0
"""Seconds that are added to waits before logarithms are taken: what is shorter hardly differs."""
OF_PLAN = 0.2
"""Share that a plan with mean runtimes has in a forecast that is corrected."""
REMEMBERED = 60
"""Times of forecasts that are remembered."""


@dataclass(frozen=True, eq=False)
class PastForecasts:
    """What was forecast at one time for some jobs.

    Attributes
    ----------
    now : ns, when
    job : (m,) the jobs
    quantiles : (m, n_level) seconds from then to the start, before they were corrected
    """

    now: int
    job: IntArray
    quantiles: FloatArray


@dataclass(eq=False)
class Recalibration:
    """Corrects the quantiles of one forecaster; a point forecast is one whose quantiles are equal.

    Parameters
    ----------
    prior
        Weight of forecasts that were right, as which it counts that a forecaster has hardly forecast yet; those of m jobs at
        one time weigh sqrt(m) together, for they fail together.
    """

    prior: float
    past: deque[PastForecasts] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def moves(self, now: int, start: IntArray) -> FloatArray:
        """(n_level,) by how much the logarithm of each quantile is moved at a time.

        `start`, (n_job,) ns, is when jobs started; of one that starts later than now no more is read than that it waits.
        """
        if not self.past:
            return np.zeros(len(LEVELS))
        off, known, weight = [np.zeros((1, len(LEVELS)))], [np.ones(1, dtype=np.bool_)], [np.array([self.prior])]
        for then in self.past:
            begun = np.minimum(start[then.job], now)
            off.append(np.log((begun - then.now) / SECOND + SOFT)[:, None] - np.log(then.quantiles + SOFT))
            known.append(start[then.job] <= now)
            weight.append(np.full(len(then.job), 1.0 / np.sqrt(len(then.job))))
        errors, over, size = np.concatenate(off), np.concatenate(known), np.concatenate(weight)
        return np.array([_quantile(errors[:, k], over, size, level) for k, level in enumerate(LEVELS.tolist())])

    def remember(self, now: int, job: IntArray, quantiles: FloatArray) -> None:
        """Keep what was forecast, before it was corrected."""
        self.past.append(PastForecasts(now, job, quantiles))


def moved(quantiles: FloatArray, moves: FloatArray) -> FloatArray:
    """(m, n_level) quantiles, corrected by (n_level,) moves of their logarithms."""
    corrected: FloatArray = np.maximum(np.exp(np.log(quantiles + SOFT) + moves) - SOFT, 0.0)
    return np.maximum.accumulate(corrected, axis=1)


class Corrections(NamedTuple):
    """What corrects forecasts at one time.

    Attributes
    ----------
    versions, plan : (n_level,) moves of the quantiles of versions, and of a plan with mean runtimes (`Recalibration.moves`)
    """

    versions: FloatArray
    plan: FloatArray

    def apply(self, drawn: FloatArray, mean: FloatArray) -> FloatArray:
        """(m, n_level) quantiles between those of versions, (m, n_level), and those of a plan, (m,), all in seconds.

        They are means of logarithms. Two forecasters that are wrong in different ways are less wrong together (Bates, Granger
        1969).
        """
        ours, planned = moved(drawn, self.versions), self.widened(mean)
        together: FloatArray = np.exp((1 - OF_PLAN) * np.log(ours + SOFT) + OF_PLAN * np.log(planned + SOFT)) - SOFT
        return together

    def widened(self, mean: FloatArray) -> FloatArray:
        """(m, n_level) quantiles of a plan, (m,) seconds, widened by past errors."""
        return moved(np.repeat(mean[:, None], len(LEVELS), axis=1), self.plan)


def _quantile(errors: FloatArray, over: BoolArray, size: FloatArray, level: float) -> float:
    """Quantile of errors, some of them censored."""
    found = kaplan_meier(errors, over, size)
    at = int(np.searchsorted(np.cumsum(found.mass), level))
    return float(found.value[min(at, len(found.value) - 1)])


def sample_quantiles(starts: IntArray, now: int) -> FloatArray:
    """(m, n_level) seconds from now to the start, from (n_sample, m) starts; infinite for none."""
    waits = np.where(starts == NEVER, np.inf, (np.minimum(starts, NEVER // 2) - now) / SECOND)
    found: FloatArray = np.quantile(waits, LEVELS, axis=0, method="inverted_cdf" if np.isinf(waits).any() else "linear").T
    return found


def chance_within(quantiles: FloatArray, seconds: float) -> FloatArray:
    """(m,) chance to start within so many seconds, from (m, n_level) quantiles; linear between them."""
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
