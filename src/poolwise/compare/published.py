"""Published values beside ours: what was claimed, by which rule it is judged, what was measured, whether it holds.

The claims of a reproduction are in a data file (catalog/reproductions/NAME.csv) that is fixed before anything runs;
`holds` is computed from the row and nothing else.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from poolwise.errors import InputError, UnknownNameError

ClaimRule = Literal["within_ci", "relative", "order", "sign", "exact", "shown"]
Holds = Literal["true", "false", "not_measured", "shown"]
COLUMNS = (
    "artifact", "condition", "metric", "unit", "published", "measured", "ci95_low", "ci95_high",
    "rule", "tolerance", "holds", "note",
)  # fmt: skip

Key = tuple[str, str, str]
"""(artifact, condition, metric): names a row."""


@dataclass(frozen=True)
class Claim:
    """A published value or statement.

    Attributes
    ----------
    artifact : figure, table or section of the paper
    condition : machine, policy, load, ... it was stated for
    metric, unit : what was measured
    published : the value; for rule `order` the margin that the paper prints, if it prints one
    rule : how it is judged
        within_ci: the published value lies in our 95 % interval;
        relative: |measured - published| <= tolerance * |published|;
        exact: |measured - published| <= tolerance (a rounding, in the metric's unit);
        sign: measured has the published value's sign;
        order: measured, the margin by which the claimed order holds (in the metric's unit), is > tolerance;
        shown: not judged
    tolerance : see `rule`
    note : what the reader must know of the claim
    reason : why it does not hold, where it does not
    """

    artifact: str
    condition: str
    metric: str
    unit: str
    published: float
    rule: ClaimRule
    tolerance: float
    note: str = ""
    reason: str = ""

    @property
    def key(self) -> Key:
        """Name of the row."""
        return self.artifact, self.condition, self.metric


@dataclass(frozen=True)
class Measured:
    """Our value, with its 95 % interval where there are several seeds (NaN where there is one)."""

    value: float
    low: float = math.nan
    high: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class ClaimRow:
    """A claim beside what was measured."""

    claim: Claim
    measured: Measured | None

    @property
    def holds(self) -> Holds:
        """Judge the claim by its rule."""
        claim, measured = self.claim, self.measured
        if measured is None or math.isnan(measured.value):
            return "not_measured"
        match claim.rule:
            case "shown":
                return "shown"
            case "within_ci":
                # an interval of one value is that value
                low = measured.value if math.isnan(measured.low) else measured.low
                high = measured.value if math.isnan(measured.high) else measured.high
                return _truth(low <= claim.published <= high)
            case "relative":
                return _truth(abs(measured.value - claim.published) <= claim.tolerance * abs(claim.published))
            case "exact":
                return _truth(abs(measured.value - claim.published) <= claim.tolerance)
            case "sign":
                return _truth(math.copysign(1, measured.value) == math.copysign(1, claim.published) and measured.value != 0)
            case "order":
                return _truth(measured.value > claim.tolerance)

    @property
    def note(self) -> str:
        """Note of the claim and of the measurement; for a claim that does not hold its reason goes first."""
        measured = "" if self.measured is None else self.measured.note
        reason = self.claim.reason if self.holds == "false" else ""
        return "; ".join(text for text in (reason, measured, self.claim.note) if text)

    def cells(self) -> list[str]:
        """The row as text, in the order of `COLUMNS`."""
        c, m = self.claim, self.measured or Measured(math.nan)
        numbers = [_number(m.value), _number(m.low), _number(m.high)]
        return [
            c.artifact,
            c.condition,
            c.metric,
            c.unit,
            _number(c.published),
            *numbers,
            c.rule,
            _number(c.tolerance),
            self.holds,
            self.note,
        ]


def compare(claims: Iterable[Claim], measured: Mapping[Key, Measured]) -> list[ClaimRow]:
    """Put every claim beside its measurement.

    Raises KeyError for a measurement that no claim asks for: a row may not be dropped silently.
    """
    rows = [ClaimRow(claim, measured.get(claim.key)) for claim in claims]
    unknown = set(measured) - {row.claim.key for row in rows}
    if unknown:
        raise KeyError(f"measured but not claimed: {sorted(unknown)[:5]}")
    return rows


def claims_csv(rows: Sequence[ClaimRow]) -> str:
    """comparison.csv as text."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(row.cells() for row in rows)
    return text.getvalue()


def read_claims(path: Path) -> list[Claim]:
    """Read a claims file (columns artifact, condition, metric, unit, published, rule, tolerance, note, reason).

    An empty published value is NaN (only with the rules order and shown). Raises InputError with file and line.
    """
    claims: list[Claim] = []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            rule = row["rule"]
            if rule not in get_args(ClaimRule):
                raise UnknownNameError.of("rule", rule, get_args(ClaimRule), file=path, line=line, field="rule")
            published, tolerance = (_parse(row[name], path, line, name) for name in ("published", "tolerance"))
            if math.isnan(published) and rule not in ("order", "shown"):
                raise InputError(f"rule {rule} needs a published value", file=path, line=line, field="published")
            claims.append(
                Claim(
                    row["artifact"], row["condition"], row["metric"], row["unit"], published,
                    cast(ClaimRule, rule), 0.0 if math.isnan(tolerance) else tolerance, row.get("note") or "",
                    row.get("reason") or "",
                )
            )  # fmt: skip
    keys = [claim.key for claim in claims]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the row {twice} appears twice", file=path, remedy="name each claim once")
    return claims


def _parse(text: str, path: Path, line: int, field: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError as error:
        raise InputError(f"'{text}' is not a number", file=path, line=line, field=field) from error


def _truth(value: bool) -> Holds:
    return "true" if value else "false"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
