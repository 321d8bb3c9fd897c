"""Ratios of an order to the baseline, with confidence intervals over the workloads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.hashing import Json
from poolwise.metrics import mean_interval
from poolwise.optimize.front import layers
from poolwise.search.objectives import OBJECTIVES, ObjectiveName

Word = Literal["less", "more", "not shown to differ"]


@dataclass(frozen=True)
class Ratio:
    """Ratio of an objective to the baseline: geometric mean over workloads, 95 % Student t interval (NaN for one workload)."""

    mean: float
    low: float
    high: float
    workloads: int

    @classmethod
    def of(cls, logs: FloatArray) -> Ratio:
        """Compute the ratio from (n_cell,) log ratios, paired by workload."""
        interval = mean_interval(logs)
        return cls(math.exp(interval.mean), math.exp(interval.low), math.exp(interval.high), interval.n)

    @property
    def word(self) -> Word:
        """Comparison word: "less" or "more" than the baseline if the interval excludes 1, otherwise "not shown to differ"."""
        if self.high < 1:
            return "less"
        return "more" if self.low > 1 else "not shown to differ"

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.mean:.3f} (one workload: no interval)"
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> Json:
        """Return plain data."""
        low, high = (None if math.isnan(bound) else bound for bound in (self.low, self.high))
        return {"ratio": self.mean, "low": low, "high": high, "workloads": self.workloads, "word": self.word}


Ratios = dict[ObjectiveName, Ratio]


def ratios(logs: FloatArray, baseline: FloatArray) -> Ratios:
    """Return the ratios of a candidate, (n_cell, 4) logarithms, to the baseline."""
    return {name: Ratio.of(logs[:, k] - baseline[:, k]) for k, name in enumerate(OBJECTIVES)}


def best(values: FloatArray, allowed: BoolArray, count: int) -> list[int]:
    """Return up to `count` rows in Pareto order: successive fronts of the allowed rows, or of all rows if none are allowed.

    Within a front, the row with the lowest first value comes first.
    """
    able = np.flatnonzero(allowed if allowed.any() else np.ones(len(values), dtype=np.bool_))
    layer = layers(values[able])
    ranked = sorted(range(len(able)), key=lambda k: (int(layer[k]), *values[able[k]].tolist(), k))
    return [int(able[k]) for k in ranked[:count]]
