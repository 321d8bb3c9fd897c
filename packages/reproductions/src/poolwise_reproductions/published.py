"""Published values compared with ours: the claim, the rule that judges it, the measurement, and the verdict.

The claims of a reproduction are in a data file (catalog/claims/NAME.csv) that is fixed before anything runs; the verdict
is computed from the row alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from poolwise_reproductions.causes import render
from poolwise_reproductions.criteria import ClaimRule, ClaimVerdict, Criterion, Holds, Measured

ClaimClass = Literal["paper", "input", "ours"]
ReasonBasis = Literal["verified", "package", "scatter", "inferred", "unknown"]
READINGS = ("as run", "inferred")
"""Readings in addition to the specification's, each with its own columns: the authors' own runs, and our inference."""
READING_TEXTS = {"as run": "the differences of the authors' runs", "inferred": "these differences and the inferred ones"}
"""Descriptions of readings as packages of changes, which a reproduction may replace."""
SOURCE_COLUMNS = ("place", "quotation")
"""Columns that state where the paper contains a row; comparisons recorded before these columns existed lack them."""
COLUMNS = (
    "artifact", "condition", "metric", "unit", "published", "measured", "ci95_low", "ci95_high",
    "rule", "tolerance", "holds", "note", "class", "verdict", "basis", "shown_by", "cause",
    *(f"{reading.replace(' ', '_')}{part}" for reading in READINGS for part in ("", "_low", "_high", "_verdict")),
    *SOURCE_COLUMNS,
)  # fmt: skip

Key = tuple[str, str, str]
"""(artifact, condition, metric), which identify a row."""
SEPARATOR = " | "
"""Separator of the three parts when a row is named in one text."""
ONE_RUN = "one run"
"""Value of `shown_by` if a claim rests on one run, and one of our runs could plausibly meet it."""
UNEXPLAINED = "not explained"
"""Beginning of the reason of a claim whose failure has no known cause."""
VALUES = ("measured", "low", "high", "published", "switched", *READINGS)
"""Values of a row that the template of a cause may show."""
SWITCH = "switch: "
"""Prefix of the name of a single changed setting that makes a claim hold."""


@dataclass(frozen=True)
class Claim:
    """A published value or statement.

    Attributes
    ----------
    artifact : figure, table or section of the paper
    condition : machine, policy, load, ... of the claim
    metric, unit : measured quantity
    published : the value; for rule `order`, the margin that the paper prints, if any
    rule : how the claim is judged
        within_ci: the published value lies in our 95 % interval;
        relative: |measured - published| <= tolerance * |published|;
        exact: |measured - published| <= tolerance (a rounding, in the metric's unit);
        sign: measured has the published value's sign;
        order: measured, the margin by which the claimed order holds (in the metric's unit), is > tolerance;
        shown: not judged
    tolerance : see `rule`
    note : remark on the claim for readers
    reason : why the claim does not hold, if it does not: a template, see `poolwise_reproductions.causes`
    kind : "paper" for the paper's claims, "input" for its inputs and arithmetic, "ours" for our additions
    basis : evidence for the reason: "verified" by a run of that cause alone, "package" if only several changes at once make
        the claim hold, "scatter" if single runs scatter enough, "inferred", or "unknown"
    shown_by : for a reason that a run shows: the row "artifact | condition | metric" of a claim, "switch: NAME" of a change or
        of a package of changes, or "one run" if single runs scatter enough
    place, quotation : where the paper states the claim, and its words; empty for rows of ours
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
    kind: ClaimClass = "paper"
    basis: ReasonBasis = "unknown"
    shown_by: str = ""
    place: str = ""
    quotation: str = ""

    @property
    def criterion(self) -> Criterion:
        """Condition that a measurement must meet."""
        return Criterion(self.rule, self.published, self.tolerance)

    @property
    def key(self) -> Key:
        """Identity of the row."""
        return self.artifact, self.condition, self.metric


@dataclass(frozen=True)
class ChangeTexts:
    """Causes that single changes of a reproduction verify, and descriptions of its packages (several changes at once).

    Attributes
    ----------
    alone : name of a single change -> template of the cause of a claim that it makes hold, see `poolwise_reproductions.causes`
    packages : name of several changes at once, which may be a reading -> the changes, as the subject of "make the claim hold";
        the smallest first
    """

    alone: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=lambda: READING_TEXTS)


@dataclass(frozen=True)
class ClaimRow:
    """A claim and its measurements.

    Attributes
    ----------
    measured : measurement under the specification's reading
    readings : other reading -> measurement under it
    backed : whether the row that `shown_by` names holds
    switches : name of a change, or of a package of changes -> measurement with it
    texts : causes that these changes verify
    filled : the reason with the measured values; None if it shows none
    """

    claim: Claim
    measured: Measured | None
    readings: Mapping[str, Measured] = field(default_factory=dict)
    backed: bool = False
    switches: Mapping[str, Measured] = field(default_factory=dict)
    texts: ChangeTexts = field(default_factory=ChangeTexts)
    filled: str | None = None

    @property
    def named(self) -> str:
        """Name of the change that the claims file gives as the cause; "" if it gives none."""
        return self.claim.shown_by.removeprefix(SWITCH) if self.claim.shown_by.startswith(SWITCH) else ""

    @property
    def template(self) -> str:
        """Reason to show: that of the evidence if the claims file does not name this evidence, else the file's."""
        change, package = self.change, self.package
        if change and change != self.named:
            return self.texts.alone[change]
        if change or self.backed or not package or package == self.named:
            return self.claim.reason
        tried = len(self.texts.alone.keys() & self.switches.keys())
        changes = f"{self.texts.packages[package]} together"
        text = (
            f"none of {tried} changes alone makes the claim hold, but {changes} do"
            if tried
            else f"{changes} make the claim hold"
        )
        return f"{text}[: this value is then {{{package}}} instead of {{measured}}]"

    @property
    def reason(self) -> str:
        """Reason of the claim, with the measured values that it shows."""
        return self.template if self.filled is None else self.filled

    @property
    def change(self) -> str:
        """Single change that makes the claim hold, "" if there is none; the change that the claims file names comes first."""
        shown = self.backed and self.claim.basis != "package"  # by a row, which the claims file prefers
        names = [name for name in (self.named, *(() if shown else self.texts.alone)) if name not in self.texts.packages]
        return next((name for name in names if self._holds_with(self.switches.get(name))), "")

    @property
    def package(self) -> str:
        """Smallest package of changes that makes the claim hold; "" if there is none."""
        runs = {**self.switches, **self.readings}
        return next((name for name in self.texts.packages if self._holds_with(runs.get(name))), "")

    def _holds_with(self, measured: Measured | None) -> bool:
        return measured is not None and self.claim.criterion.verdict(measured) == "holds"

    def value(self, kind: str) -> float:
        """Return a value that causes may show, see `VALUES`; NaN if it was not measured."""
        if kind == "published":
            return self.claim.published
        runs = {**self.switches, **self.readings}
        value = runs.get((self.change or self.named) if kind == "switched" else kind)
        if kind in ("measured", "low", "high"):
            value = self.measured
        if value is None:
            return math.nan
        return {"low": value.low, "high": value.high}.get(kind, value.value)

    @property
    def holds(self) -> Holds:
        """Verdict from the measured value alone."""
        return self.claim.criterion.holds(self.measured)

    @property
    def verdict(self) -> ClaimVerdict:
        """Verdict from the measured interval."""
        return self.claim.criterion.verdict(self.measured)

    def verdict_under(self, reading: str) -> ClaimVerdict:
        """Judge the interval under another reading; under the specification's if that reading does not affect the row."""
        return self.claim.criterion.verdict(self.readings.get(reading, self.measured))

    @property
    def shown_by(self) -> str:
        """Evidence for the reason: a change, another row, a package of changes, or the scatter of single runs; "" if none."""
        if self.verdict not in ("fails", "undetermined"):
            return ""
        criterion, change, package = self.claim.criterion, self.change, self.package
        if change:
            return f"{SWITCH}{change}, {_with_bounds(self.switches[change])}"
        if self.backed:
            return self.claim.shown_by
        if package in self.readings:
            return f"reading: {package}"
        if package:
            return f"{SWITCH}{package}, {_with_bounds(self.switches[package])}"
        if self.claim.shown_by == ONE_RUN:
            for reading, measured in {"": self.measured, **self.readings}.items():
                if measured is not None and criterion.met_by_one_run(measured):
                    bounds = _value_and_bounds(measured.value, measured.prediction_interval)
                    return f"{ONE_RUN}{f' {reading}' if reading else ''}, {bounds}"
        return ""

    @property
    def basis(self) -> ReasonBasis | Literal[""]:
        """Basis of the reason; empty if the claim holds or is not judged.

        Only evidence from a run of this reproduction counts as "verified"; a reason that earlier runs verified and this one
        does not is "inferred". The scatter of single runs can explain a claim that rests on one run, but verifies no cause.
        """
        if self.verdict not in ("fails", "undetermined"):
            return ""
        if not self.cause or self.cause.startswith(UNEXPLAINED):
            return "unknown"
        if self.shown_by and not self.change and (self.claim.basis == "package" if self.backed else self.package):
            return "package"
        if self.shown_by:
            return "scatter" if self.shown_by.startswith(ONE_RUN) else "verified"
        return "inferred" if self.claim.basis in ("verified", "package", "scatter") else self.claim.basis

    @property
    def cause(self) -> str:
        """Reason why the claim does not hold; empty if it holds, is not judged, or has no known cause."""
        return self.reason if self.verdict in ("fails", "undetermined") else ""

    @property
    def note(self) -> str:
        """Notes of the measurement and the claim, after the reason if the claim does not hold."""
        measured = "" if self.measured is None else self.measured.note
        reason = self.cause or (self.reason if self.holds == "false" else "")
        reason = reason if self.holds == "false" or self.verdict == "fails" else ""
        return "; ".join(text for text in (reason, measured, self.claim.note) if text)

    def cells(self) -> list[str]:
        """Return the row as text, in the order of `COLUMNS`."""
        c, others = self.claim, list[str]()
        for reading in READINGS:
            measured = self.readings.get(reading)
            others += [*_value_cells(measured), "" if measured is None else self.verdict_under(reading)]
        ours = (_number(c.published), *_value_cells(self.measured), c.rule, _number(c.tolerance), self.holds, self.note)
        return [
            *c.key,
            c.unit,
            *ours,
            c.kind,
            self.verdict,
            self.basis,
            self.shown_by,
            self.cause,
            *others,
            c.place,
            c.quotation,
        ]


def compare(
    claims: Iterable[Claim],
    measured: Mapping[Key, Measured],
    readings: Mapping[str, Mapping[Key, Measured]] | None = None,
    switches: Mapping[str, Mapping[Key, Measured]] | None = None,
    texts: ChangeTexts | None = None,
) -> list[ClaimRow]:
    """Join claims with their measurements (claim key -> measurement); return one row per claim, in the order of the claims.

    `measured` is under the specification's reading, `readings` maps other readings to theirs, and `switches` maps the name of a
    change, or of a package of changes, to its measurements; `texts` describes the changes and packages. Raises KeyError for a
    measurement without a claim, and for a reason whose `shown_by` names a missing row.
    """
    rows, others, alone = list(claims), readings or {}, switches or {}
    by_key = {SEPARATOR.join(claim.key): claim for claim in rows}
    for measurements in (measured, *others.values(), *alone.values()):
        unknown = set(measurements) - {claim.key for claim in rows}
        if unknown:
            raise KeyError(f"measurements without a claim: {sorted(unknown)[:5]}")

    def backed(claim: Claim) -> bool:
        if not names_row(claim.shown_by):
            return False
        witness = by_key[claim.shown_by]
        return witness.criterion.verdict(measured.get(witness.key)) == "holds"

    judged = {
        name: ClaimRow(
            claim,
            measured.get(claim.key),
            {reading: measurements[claim.key] for reading, measurements in others.items() if claim.key in measurements},
            backed(claim),
            {switch: measurements[claim.key] for switch, measurements in alone.items() if claim.key in measurements},
            texts or ChangeTexts(),
        )
        for name, claim in by_key.items()
    }

    def explained(row: ClaimRow) -> ClaimRow:
        text = render(row.template, lambda kind, name: (judged[name] if name else row).value(kind))
        return replace(row, filled=text)

    return [explained(row) for row in judged.values()]


def names_row(shown_by: str) -> bool:
    """Return whether `shown_by` names a row."""
    return bool(shown_by) and shown_by not in (*READINGS, ONE_RUN) and not shown_by.startswith(SWITCH)


def _value_cells(measured: Measured | None) -> list[str]:
    """Return value and interval as text."""
    value = measured or Measured(math.nan)
    return [_number(value.value), _number(value.low), _number(value.high)]


def _with_bounds(measured: Measured) -> str:
    """Format a measurement and its interval."""
    return _value_and_bounds(measured.value, measured.bounds)


def _value_and_bounds(value: float, bounds: tuple[float, float]) -> str:
    """Format a value and its bounds."""
    low, high = bounds
    return f"{value:.4g}" if low == high else f"{value:.4g} ({low:.4g} to {high:.4g})"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
