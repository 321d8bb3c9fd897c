"""Scores of probabilistic forecasts: pinball loss of quantiles, coverage of intervals, Brier score of probabilities."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, FloatArray


def pinball(quantiles: FloatArray, levels: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the (m,) pinball loss of (m, k) quantiles at (k,) levels, averaged over the levels, in the unit of the quantiles.

    Source: Koenker, Bassett 1978.
    """
    over = truth[:, None] - quantiles
    loss: FloatArray = np.maximum(levels * over, (levels - 1.0) * over).mean(axis=1)
    return loss


def brier(chance: FloatArray, happened: BoolArray) -> FloatArray:
    """Return the (m,) squared differences of forecast probabilities and observed outcomes. Source: Brier 1950."""
    loss: FloatArray = (chance - happened) ** 2
    return loss


def covered(low: FloatArray, high: FloatArray, truth: FloatArray) -> BoolArray:
    """Return (m,) True where the truth lies in the closed interval."""
    inside: BoolArray = (low <= truth) & (truth <= high)
    return inside
