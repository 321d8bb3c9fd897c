"""Lifetime distributions from complete and censored observations: weighted Kaplan-Meier estimates.

Source: Kaplan, Meier 1958.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poolwise.arrays import BoolArray, FloatArray


class Lifetimes(NamedTuple):
    """Discrete distribution.

    Attributes
    ----------
    value : (n,) values in ascending order
    mass : (n,) probabilities; the rest of the mass lies beyond the largest value
    """

    value: FloatArray
    mass: FloatArray

    @property
    def beyond(self) -> float:
        """Return the probability of exceeding the largest value."""
        return max(1.0 - float(self.mass.sum()), 0.0)

    def after(self, elapsed: float) -> Lifetimes:
        """Condition on values above `elapsed` without normalizing: they keep their masses."""
        first = int(np.searchsorted(self.value, elapsed, side="right"))
        return Lifetimes(self.value[first:], self.mass[first:])

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles at (...,) levels; the largest value where the mass does not suffice."""
        reached = np.cumsum(self.mass)
        at: FloatArray = self.value[np.minimum(np.searchsorted(reached, levels * reached[-1]), len(self.value) - 1)]
        return at


def kaplan_meier(time: FloatArray, over: BoolArray, weight: FloatArray | None = None) -> Lifetimes:
    """Estimate a distribution from (n,) times, each complete (`over`) or censored.

    Among equal times, complete ones come first. The masses add up to less than 1 if the longest time is censored.
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
