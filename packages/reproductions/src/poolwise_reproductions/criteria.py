"""Measurements with their intervals, and the criteria that judge them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from poolwise.metrics.intervals import mean_interval

ClaimRule = Literal["within_ci", "relative", "order", "sign", "exact", "shown"]
Holds = Literal["true", "false", "not_measured", "shown"]
ClaimVerdict = Literal["holds", "fails", "undetermined", "shown", "not measured"]

MIN_RUNS = 5
"""Minimum number of runs for a prediction interval of one run; with fewer, the bounds are too wide to be useful."""


@dataclass(frozen=True)
class Measured:
    """Our value, with its 95 % interval (Student's t) over several seeds; the bounds are NaN for a single value.

    `runs` is the number of seeds if the value is the mean of independent runs.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""
    runs: int = 0

    @classmethod
    def over_seeds(cls, values: ArrayLike, note: str = "") -> Measured:
        """Return the mean of (n,) values of independent runs, one per seed, with its interval; NaN without values."""
        interval = mean_interval(values)
        return cls(interval.mean, interval.low, interval.high, note, interval.n)

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds of the interval; the value itself if there is none."""
        low = self.value if math.isnan(self.low) else self.low
        high = self.value if math.isnan(self.high) else self.high
        return low, high

    @property
    def prediction_interval(self) -> tuple[float, float]:
        """Bounds that contain one more run with 95 % probability (Student's t); NaN for fewer than `MIN_RUNS` runs.

        With n runs, the interval of the mean extends t s / sqrt(n) to either side; that of one more run, t s sqrt(1 + 1 / n).
        """
        if self.runs < MIN_RUNS:
            return math.nan, math.nan
        factor = math.sqrt(self.runs + 1)
        return self.value - factor * (self.value - self.low), self.value + factor * (self.high - self.value)


_HOLDS: Mapping[ClaimVerdict, Holds] = {
    "holds": "true",
    "fails": "false",
    "not measured": "not_measured",
    "shown": "shown",
}


@dataclass(frozen=True)
class Criterion:
    """Condition that a measurement must meet: the published value, the rule and its tolerance; see `Claim`."""

    rule: ClaimRule
    published: float
    tolerance: float

    def holds(self, measured: Measured | None) -> Holds:
        """Judge the measured value alone."""
        alone = None if measured is None else (measured.value, measured.value)
        return _HOLDS[self._judge(measured, alone)]

    def verdict(self, measured: Measured | None) -> ClaimVerdict:
        """Judge the measured interval: the claim holds if both ends meet the rule, and fails if both miss it on the same side.

        Anything else is undetermined and needs more seeds. With `within_ci` the interval is the rule, so the claim either
        holds or fails.
        """
        return self._judge(measured, None if measured is None else measured.bounds)

    def _judge(self, measured: Measured | None, bounds: tuple[float, float] | None) -> ClaimVerdict:
        if measured is None or bounds is None or math.isnan(measured.value):
            return "not measured"
        if self.rule == "shown":
            return "shown"
        if self.rule == "within_ci":
            return "holds" if measured.bounds[0] <= self.published <= measured.bounds[1] else "fails"
        low, high = map(self._side, bounds)
        return "undetermined" if low != high else "fails" if low else "holds"

    def met_by_one_run(self, measured: Measured | None) -> bool:
        """Return whether a single run could plausibly meet the claim: its prediction interval contains such values."""
        if measured is None or self.rule == "shown" or any(math.isnan(bound) for bound in measured.prediction_interval):
            return False
        low, high = (self._side(bound) for bound in measured.prediction_interval)
        return low == 0 or low != high

    def _side(self, value: float) -> int:
        """Return 0 if a value meets the rule, -1 if it is too low, 1 if it is too high."""
        match self.rule:
            case "order":
                return 0 if value > self.tolerance else -1
            case "sign":
                if value != 0 and math.copysign(1, value) == math.copysign(1, self.published):
                    return 0
                return -1 if self.published > 0 else 1
            case _:
                margin = self.tolerance * (abs(self.published) if self.rule == "relative" else 1.0)
                if abs(value - self.published) <= margin:
                    return 0
                return -1 if value < self.published else 1
