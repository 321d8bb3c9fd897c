"""How good forecasts were: pinball loss of quantiles, coverage of intervals, Brier score of chances."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, FloatArray


def pinball(quantiles: FloatArray, levels: FloatArray, truth: FloatArray) -> FloatArray:
    """(m,) pinball loss in the unit of the (m, k) quantiles at (k,) levels, the mean over the levels; truth is (m,).

    Source: Koenker, Bassett 1978.
    """
    over = truth[:, None] - quantiles
    loss: FloatArray = np.maximum(levels * over, (levels - 1.0) * over).mean(axis=1)
    return loss


def brier(chance: FloatArray, happened: BoolArray) -> FloatArray:
    """(m,) squared differences of chances and what happened. Source: Brier 1950."""
    loss: FloatArray = (chance - happened) ** 2
    return loss


def covered(low: FloatArray, high: FloatArray, truth: FloatArray) -> BoolArray:
    """(m,) whether the truth lies in the interval, its ends included."""
    inside: BoolArray = (low <= truth) & (truth <= high)
    return inside
