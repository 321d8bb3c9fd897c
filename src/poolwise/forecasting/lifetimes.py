"""How long things last, from some that are over and some that are not (censored): weighted Kaplan-Meier estimates.

Source: Kaplan, Meier 1958.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray


class Lifetimes(NamedTuple):
    """A distribution on finitely many values.

    Attributes
    ----------
    value : (n,) ascending
    mass : (n,) probabilities; what is missing to 1 lies beyond the largest value
    """

    value: FloatArray
    mass: FloatArray

    @property
    def beyond(self) -> float:
        """Probability of more than the largest value."""
        return max(1.0 - float(self.mass.sum()), 0.0)

    def after(self, elapsed: float) -> Lifetimes:
        """Condition on more than `elapsed`, not normalised: the values above it keep their masses."""
        first = int(np.searchsorted(self.value, elapsed, side="right"))
        return Lifetimes(self.value[first:], self.mass[first:])

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Values at (...,) levels, the least with as much probability up to it; the largest beyond."""
        reached = np.cumsum(self.mass)
        at: FloatArray = self.value[np.minimum(np.searchsorted(reached, levels * reached[-1]), len(self.value) - 1)]
        return at


def kaplan_meier(time: FloatArray, over: BoolArray, weight: FloatArray | None = None) -> Lifetimes:
    """Estimate a distribution from (n,) times, each of which is the whole (`over`) or what it has lasted so far.

    Of equal times those that are over come first. Masses add up to less than 1 where the longest is not over.
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
