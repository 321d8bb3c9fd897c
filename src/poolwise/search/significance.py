"""What a search may say of an order: ratios to the baseline with intervals over the workloads, and no more than they show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, FloatArray
from poolwise.hashing import Json
from poolwise.metrics import mean_interval
from poolwise.optimize.front import layers
from poolwise.search.objectives import FARES, FareName

Word = Literal["less", "more", "not shown to differ"]


@dataclass(frozen=True)
class Ratio:
    """A fare over the baseline's, a geometric mean over workloads, with its 95 % interval of Student's t (NaN for one)."""

    mean: float
    low: float
    high: float
    workloads: int

    @classmethod
    def of(cls, logs: FloatArray) -> Ratio:
        """Take (n_cell,) logarithms of ratios, paired workload by workload."""
        interval = mean_interval(logs)
        return cls(math.exp(interval.mean), math.exp(interval.low), math.exp(interval.high), interval.n)

    @property
    def word(self) -> Word:
        """Less or more than the baseline only where the interval excludes 1."""
        if self.high < 1:
            return "less"
        return "more" if self.low > 1 else "not shown to differ"

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.mean:.3f} (one workload: no interval)"
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> Json:
        """Plain data."""
        low, high = (None if math.isnan(bound) else bound for bound in (self.low, self.high))
        return {"ratio": self.mean, "low": low, "high": high, "workloads": self.workloads, "word": self.word}


Ratios = dict[FareName, Ratio]


def ratios(logs: FloatArray, baseline: FloatArray) -> Ratios:
    """Ratios of a candidate, (n_cell, 4) logarithms, to the baseline's."""
    return {name: Ratio.of(logs[:, k] - baseline[:, k]) for k, name in enumerate(FARES)}


def best(values: FloatArray, allowed: BoolArray, count: int) -> list[int]:
    """Up to `count` rows that are worth a second look: front after front of those that are allowed, or of all if none is.

    Of a front, the row whose first value is least comes first.
    """
    able = np.flatnonzero(allowed if allowed.any() else np.ones(len(values), dtype=np.bool_))
    layer = layers(values[able])
    ranked = sorted(range(len(able)), key=lambda k: (int(layer[k]), *values[able[k]].tolist(), k))
    return [int(able[k]) for k in ranked[:count]]
