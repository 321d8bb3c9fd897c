"""How a claim is judged: by the measured value alone, and by its interval, which may leave it undetermined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

ClaimRule = Literal["within_ci", "relative", "order", "sign", "exact", "shown"]
Holds = Literal["true", "false", "not_measured", "shown"]
ClaimVerdict = Literal["holds", "fails", "undetermined", "shown", "not measured"]


FEWEST = 5
"""Runs from which it is said how far single runs scatter: of fewer the bounds are so wide that they hold anything."""


@dataclass(frozen=True)
class Measured:
    """Our value, with its 95 % interval (Student's t) where there are several seeds (NaN where there is one value).

    `runs` is the number of seeds that it is the mean of, where it is the mean of as many independent runs.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""
    runs: int = 0

    @property
    def ends(self) -> tuple[float, float]:
        """Bounds of the interval; the value itself where there is none."""
        low = self.value if math.isnan(self.low) else self.low
        high = self.value if math.isnan(self.high) else self.high
        return low, high

    @property
    def one_run(self) -> tuple[float, float]:
        """Bounds within which one more run would lie with 95 % (Student's t); NaN for fewer than `FEWEST` runs.

        The interval of the mean of n runs is t s / sqrt(n) wide on either side, that of one more run t s sqrt(1 + 1 / n).
        """
        if self.runs < FEWEST:
            return math.nan, math.nan
        wider = math.sqrt(self.runs + 1)
        return self.value - wider * (self.value - self.low), self.value + wider * (self.high - self.value)


@dataclass(frozen=True)
class Criterion:
    """What a measurement must meet: the published value, the rule and its tolerance; see `Claim`."""

    rule: ClaimRule
    published: float
    tolerance: float

    def holds(self, measured: Measured | None) -> Holds:
        """Judge by the value alone."""
        if measured is None or math.isnan(measured.value):
            return "not_measured"
        if self.rule == "shown":
            return "shown"
        if self.rule == "within_ci":
            return "true" if self._covered(measured) else "false"
        return "false" if self._side(measured.value) else "true"

    def verdict(self, measured: Measured | None) -> ClaimVerdict:
        """Judge by the interval: it holds if both ends meet the rule, fails if both miss it on the same side.

        Anything else is undetermined: more seeds would tell. With `within_ci` the interval is the rule, so that it holds or
        fails.
        """
        if measured is None or math.isnan(measured.value):
            return "not measured"
        if self.rule == "shown":
            return "shown"
        if self.rule == "within_ci":
            return "holds" if self._covered(measured) else "fails"
        low, high = (self._side(end) for end in measured.ends)
        if low != high:
            return "undetermined"
        return "fails" if low else "holds"

    def within_one_run(self, measured: Measured | None) -> bool:
        """Whether one run of ours may well meet it: values that do lie within the bounds of one more run."""
        if measured is None or self.rule == "shown" or any(math.isnan(end) for end in measured.one_run):
            return False
        low, high = (self._side(end) for end in measured.one_run)
        return low == 0 or low != high

    def _covered(self, measured: Measured) -> bool:
        low, high = measured.ends
        return low <= self.published <= high

    def _side(self, value: float) -> int:
        """0 where a value meets the rule, -1 where it lies below what does, 1 above."""
        match self.rule:
            case "order":
                return 0 if value > self.tolerance else -1
            case "sign":
                if value != 0 and math.copysign(1, value) == math.copysign(1, self.published):
                    return 0
                return -1 if self.published > 0 else 1
            case _:
                room = self.tolerance * (abs(self.published) if self.rule == "relative" else 1.0)
                if abs(value - self.published) <= room:
                    return 0
                return -1 if value < self.published else 1
