"""Forecasts corrected by how earlier ones fared: each quantile is moved by what past ones were off (in logarithms of waits).

Only what is known at the time of a forecast corrects it; an earlier forecast whose job still waits is off by at least what it
has waited since, and counts as censored.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.forecast.lifetimes import Lifetimes, kaplan_meier
from poolwise.units import NEVER, SECOND

LEVELS = np.array([0.02, 0.05, *np.arange(0.1, 0.95, 0.05).round(2), 0.95, 0.98])
"""Levels of the quantiles of a forecast."""
SOFT = 300.0
"""Seconds that are added to waits before logarithms are taken: what is shorter hardly differs."""
PRIOR = 20
"""Forecasts that were right, as which it counts that a forecaster has not yet forecast."""
REMEMBERED = 60
"""Times of forecasts that are remembered."""


@dataclass
class PastForecasts:
    """What was forecast at one time for some jobs.

    Attributes
    ----------
    now : ns, when
    job : (m,) the jobs
    quantiles : (m, n_level) seconds from then to the start
    """

    now: int
    job: IntArray
    quantiles: FloatArray


@dataclass
class Recalibration:
    """Corrects the quantiles of one forecaster; a point forecast is one whose quantiles are equal."""

    past: deque[PastForecasts] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def correct(self, quantiles: FloatArray, now: int, start: IntArray) -> FloatArray:
        """(m, n_level) quantiles, corrected; `start` (n_job,) ns at which jobs started, later than now if they wait."""
        if not self.past:
            return quantiles
        off, known, weight = [], [], []
        for then in self.past:
            begun = np.minimum(start[then.job], now)
            waited = (begun - then.now) / SECOND
            off.append(np.log(waited + SOFT)[:, None] - np.log(then.quantiles + SOFT))
            known.append(start[then.job] <= now)
            weight.append(np.full(len(then.job), 1.0 / np.sqrt(len(then.job))))
        errors, over, size = np.concatenate(off), np.concatenate(known), np.concatenate(weight)
        out = np.empty_like(quantiles)
        for k, level in enumerate(LEVELS.tolist()):
            moved = _quantile(errors[:, k], over, size, level)
            out[:, k] = np.exp(np.log(quantiles[:, k] + SOFT) + moved) - SOFT
        return np.maximum.accumulate(np.maximum(out, 0.0), axis=1)

    def remember(self, now: int, job: IntArray, quantiles: FloatArray) -> None:
        """Keep what was forecast, before it was corrected."""
        self.past.append(PastForecasts(now, job, quantiles))


def _quantile(errors: FloatArray, over: BoolArray, size: FloatArray, level: float) -> float:
    """Quantile of errors, some of them censored, beside `PRIOR` errors of 0."""
    prior = PRIOR * 0.1
    found: Lifetimes = kaplan_meier(
        np.concatenate([errors, [0.0]]), np.concatenate([over, [True]]), np.concatenate([size, [prior]])
    )
    reached = np.cumsum(found.mass)
    at = int(np.searchsorted(reached, level))
    return float(found.value[min(at, len(found.value) - 1)])


def sample_quantiles(starts: IntArray, now: int) -> FloatArray:
    """(m, n_level) seconds from now to the start, from (n_sample, m) starts."""
    waits = np.where(starts == NEVER, 10 * 365 * 86400.0, (np.minimum(starts, NEVER // 2) - now) / SECOND)
    found: FloatArray = np.quantile(waits, LEVELS, axis=0).T
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
