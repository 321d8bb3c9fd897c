"""Results of cases over their seeds, and the rows and curves derived from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from poolwise.arrays import FloatArray
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.published import Key

Case = TypeVar("Case")
RunMetric = str | Callable[[Mapping[str, Any]], float]
"""Name of a measured value, or a function that computes one from a measurement."""
KeyedRow = tuple[Key, Measured]


@dataclass(frozen=True)
class SeedResults(ABC, Generic[Case]):
    """Measurements of every case; a case is looked up with each of its seeds."""

    measurements: Mapping[Case, Mapping[str, Any]]

    @abstractmethod
    def seeded(self, case: Case) -> Sequence[Case]:
        """Return a case with each of its seeds."""

    def runs(self, case: Case) -> list[Mapping[str, Any]]:
        """Return the measurements of a case, one per seed; empty if it was not run."""
        return [self.measurements[run] for run in self.seeded(case) if run in self.measurements]

    def values(self, case: Case, metric: RunMetric) -> FloatArray:
        """Return (n_seed,) values of a metric; empty if the case was not run."""
        values = [run[metric] if isinstance(metric, str) else metric(run) for run in self.runs(case)]
        return np.array(values, dtype=np.float64)

    def mean(self, case: Case, metric: RunMetric) -> Measured:
        """Return the mean over the seeds with its interval; NaN if the case was not run."""
        return Measured.over_seeds(self.values(case, metric))


def without_nan(rows: Iterable[KeyedRow]) -> dict[Key, Measured]:
    """Return the rows that were measured, without those whose value is NaN."""
    return {key: value for key, value in rows if not np.isnan(value.value)}


def bands(lines: Mapping[str, Sequence[Measured]]) -> dict[str, Any]:
    """Return the series and intervals of curves: the means of each line, and the bounds of their intervals."""
    return {
        "series": {name: [each.value for each in line] for name, line in lines.items()},
        "interval": {name: ([each.low for each in line], [each.high for each in line]) for name, line in lines.items()},
    }
