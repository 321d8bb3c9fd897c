"""How a claim is judged: by the measured value alone, and by its interval, which may leave it undetermined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

ClaimRule = Literal["within_ci", "relative", "order", "sign", "exact", "shown"]
Holds = Literal["true", "false", "not_measured", "shown"]
ClaimVerdict = Literal["holds", "fails", "undetermined", "shown", "not measured"]


@dataclass(frozen=True)
class Measured:
    """Our value, with its 95 % interval (Student's t) where there are several seeds (NaN where there is one value)."""

    value: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""

    @property
    def ends(self) -> tuple[float, float]:
        """Bounds of the interval; the value itself where there is none."""
        low = self.value if math.isnan(self.low) else self.low
        high = self.value if math.isnan(self.high) else self.high
        return low, high


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
