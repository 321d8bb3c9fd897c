"""Weighted Kaplan-Meier estimates of durations, from completed and from censored (still running) observations.

Source: Kaplan, Meier 1958.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray


class Lifetimes(NamedTuple):
    """Discrete distribution of a duration.

    Attributes
    ----------
    value : (n,) values, ascending
    mass : (n,) probabilities; the remainder up to 1 lies beyond the largest value
    """

    value: FloatArray
    mass: FloatArray

    @property
    def beyond(self) -> float:
        """Probability of a value beyond the largest one."""
        return max(1.0 - float(self.mass.sum()), 0.0)

    def after(self, elapsed: float) -> Lifetimes:
        """Return the part above `elapsed`; the masses are not normalized."""
        first = int(np.searchsorted(self.value, elapsed, side="right"))
        return Lifetimes(self.value[first:], self.mass[first:])

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles at (...,) levels: the smallest value with that cumulative share, at most the largest value."""
        reached = np.cumsum(self.mass)
        at: FloatArray = self.value[np.minimum(np.searchsorted(reached, levels * reached[-1]), len(self.value) - 1)]
        return at


def kaplan_meier(time: FloatArray, over: BoolArray, weight: FloatArray | None = None) -> Lifetimes:
    """Estimate a distribution from (n,) times, each of which is complete (`over`) or censored.

    Among equal times, complete ones come first. If the longest time is censored, the masses sum to less than 1.
    """
    if not len(time):
        return Lifetimes(np.zeros(0), np.zeros(0))
    order = np.lexsort((~over, time))
    ranked, ends = time[order], over[order]
    size = np.ones(len(time)) if weight is None else weight[order]
    at_risk = np.cumsum(size[::-1])[::-1]
    hazard = np.where(ends, size / at_risk, 0.0)
    surviving = np.cumprod(1.0 - hazard)
    mass = np.concatenate([[1.0], surviving[:-1]]) * hazard
    return Lifetimes(ranked[ends], mass[ends])
