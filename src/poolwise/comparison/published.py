"""Published values beside ours: what was claimed, by which rule it is judged, what was measured, whether it holds.

The claims of a reproduction are in a data file (catalog/reproductions/NAME.csv) that is fixed before anything runs;
`holds` and the verdict are computed from the row and nothing else.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast, get_args

from poolwise.comparison.verdicts import ClaimRule, ClaimVerdict, Criterion, Holds, Measured
from poolwise.errors import InputError, UnknownNameError

ClaimClass = Literal["paper", "input", "ours"]
ReasonBasis = Literal["verified", "inferred", "unknown"]
READINGS = ("as run", "inferred")
"""Readings beside the specification's, each with columns of its own: what the authors' own runs did, and what we infer."""
COLUMNS = (
    "artifact", "condition", "metric", "unit", "published", "measured", "ci95_low", "ci95_high",
    "rule", "tolerance", "holds", "note", "class", "verdict", "basis", "shown_by", "cause",
    *(f"{reading.replace(' ', '_')}{part}" for reading in READINGS for part in ("", "_low", "_high", "_verdict")),
)  # fmt: skip

Key = tuple[str, str, str]
"""(artifact, condition, metric): names a row."""
SEPARATOR = " | "
"""Between the three where a row is named in one text."""
ONE_RUN = "one run"
"""What shows that a claim rests on one run, and that one of ours may well meet it."""
SWITCH = "switch: "
"""Before the name of something that is switched alone, where that turns a claim."""


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
    kind : "paper" for what the paper claims, "input" for its inputs and arithmetic, "ours" for what we add
    basis : what the reason rests on: "verified" by a run, "inferred", or "unknown"
    shown_by : of a verified reason: a reading under which the claim holds, the row "artifact | condition | metric" of a claim
        that shows it, "switch: NAME" of what turns it alone, or "one run" where single runs scatter as far as the claim
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

    @property
    def criterion(self) -> Criterion:
        """What a measurement must meet."""
        return Criterion(self.rule, self.published, self.tolerance)

    @property
    def key(self) -> Key:
        """Name of the row."""
        return self.artifact, self.condition, self.metric


@dataclass(frozen=True)
class ClaimRow:
    """A claim beside what was measured.

    Attributes
    ----------
    measured : under the specification's reading
    readings : other reading -> what was measured under it
    backed : whether the row that `shown_by` names holds
    switched : what was measured with the switch of `shown_by` alone turned; None without one
    """

    claim: Claim
    measured: Measured | None
    readings: Mapping[str, Measured] = field(default_factory=dict)
    backed: bool = False
    switched: Measured | None = None

    @property
    def holds(self) -> Holds:
        """Judge the measured value alone."""
        return self.claim.criterion.holds(self.measured)

    @property
    def verdict(self) -> ClaimVerdict:
        """Judge the measured interval."""
        return self.claim.criterion.verdict(self.measured)

    def verdict_under(self, reading: str) -> ClaimVerdict:
        """Judge the interval measured under another reading; the specification's where that does not concern the row."""
        return self.claim.criterion.verdict(self.readings.get(reading, self.measured))

    @property
    def shown_by(self) -> str:
        """The run that verifies the reason: a reading under which the claim holds, a switch, or another row; empty without."""
        if self.verdict not in ("fails", "undetermined"):
            return ""
        turned = [reading for reading in READINGS if self.verdict_under(reading) == "holds"]
        if turned:
            return f"reading: {turned[0]}"
        criterion, named = self.claim.criterion, self.claim.shown_by
        if self.switched is not None and criterion.verdict(self.switched) == "holds":
            return f"{named}, {_spoken(self.switched.value, self.switched.ends)}"
        if named == ONE_RUN:
            for reading, found in {"": self.measured, **self.readings}.items():
                if found is not None and criterion.within_one_run(found):
                    return f"{ONE_RUN}{f' {reading}' if reading else ''}, {_spoken(found.value, found.one_run)}"
        return named if self.backed else ""

    @property
    def basis(self) -> ReasonBasis | Literal[""]:
        """What the reason rests on; empty where the claim holds or is not judged.

        "verified" is only what a run of this very reproduction shows; a reason that was verified before and is not now is
        inferred.
        """
        if self.verdict not in ("fails", "undetermined"):
            return ""
        if self.shown_by:
            return "verified"
        return "inferred" if self.claim.basis == "verified" else self.claim.basis

    @property
    def cause(self) -> str:
        """Why it does not hold; empty where it holds or is not judged."""
        return self.claim.reason if self.verdict in ("fails", "undetermined") else ""

    @property
    def note(self) -> str:
        """Note of the claim and of the measurement; for a claim that does not hold its reason goes first."""
        measured = "" if self.measured is None else self.measured.note
        reason = self.claim.reason if self.holds == "false" or self.verdict == "fails" else ""
        return "; ".join(text for text in (reason, measured, self.claim.note) if text)

    def cells(self) -> list[str]:
        """The row as text, in the order of `COLUMNS`."""
        c = self.claim
        others: list[str] = []
        for reading in READINGS:
            found = self.readings.get(reading)
            others += [*_three(found), "" if found is None else self.verdict_under(reading)]
        return [
            c.artifact,
            c.condition,
            c.metric,
            c.unit,
            _number(c.published),
            *_three(self.measured),
            c.rule,
            _number(c.tolerance),
            self.holds,
            self.note,
            c.kind,
            self.verdict,
            self.basis,
            self.shown_by,
            self.cause,
            *others,
        ]


def compare(
    claims: Iterable[Claim],
    measured: Mapping[Key, Measured],
    readings: Mapping[str, Mapping[Key, Measured]] | None = None,
    switches: Mapping[str, Mapping[Key, Measured]] | None = None,
) -> list[ClaimRow]:
    """Put every claim beside its measurements.

    Parameters
    ----------
    claims
        Rows of the claims file.
    measured
        What was measured under the specification's reading.
    readings
        Other reading -> what was measured under it.
    switches
        What is switched alone -> what was measured then.

    Raises KeyError for a measurement that no claim asks for, and for a reason that says it is shown by no row.
    """
    wanted, others, alone = list(claims), readings or {}, switches or {}
    known = {SEPARATOR.join(claim.key): claim for claim in wanted}
    for found in (measured, *others.values(), *alone.values()):
        unknown = set(found) - {claim.key for claim in wanted}
        if unknown:
            raise KeyError(f"measured but not claimed: {sorted(unknown)[:5]}")

    def backed(claim: Claim) -> bool:
        if not _names_row(claim.shown_by):
            return False
        witness = known[claim.shown_by]
        return witness.criterion.verdict(measured.get(witness.key)) == "holds"

    return [
        ClaimRow(
            claim,
            measured.get(claim.key),
            {name: found[claim.key] for name, found in others.items() if claim.key in found},
            backed(claim),
            alone.get(claim.shown_by.removeprefix(SWITCH), {}).get(claim.key),
        )
        for claim in wanted
    ]


def claims_csv(rows: Sequence[ClaimRow]) -> str:
    """comparison.csv as text."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(row.cells() for row in rows)
    return text.getvalue()


def read_claims(path: Path) -> list[Claim]:
    """Read a claims file: columns artifact, condition, metric, unit, published, rule, tolerance, note, reason.

    The columns class, basis and shown_by may be left out: a claim is then the paper's, and the basis of its reason unknown.
    An empty published value is NaN (only with the rules order and shown). Raises InputError with file and line.
    """
    claims: list[Claim] = []
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            rule = _one_of(ClaimRule, row, "rule", "", path, line)
            kind = _one_of(ClaimClass, row, "class", "paper", path, line)
            basis = _one_of(ReasonBasis, row, "basis", "unknown", path, line)
            published, tolerance = (_parse(row[name], path, line, name) for name in ("published", "tolerance"))
            if math.isnan(published) and rule not in ("order", "shown"):
                raise InputError(f"rule {rule} needs a published value", file=path, line=line, field="published")
            claims.append(
                Claim(
                    row["artifact"], row["condition"], row["metric"], row["unit"], published,
                    cast(ClaimRule, rule), 0.0 if math.isnan(tolerance) else tolerance, row.get("note") or "",
                    row.get("reason") or "", cast(ClaimClass, kind), cast(ReasonBasis, basis), row.get("shown_by") or "",
                )
            )  # fmt: skip
    _check_unique(claims, path)
    return claims


def _check_unique(claims: Sequence[Claim], path: Path) -> None:
    keys = [claim.key for claim in claims]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"the row {twice} appears twice", file=path, remedy="name each claim once")
    rows = {SEPARATOR.join(key) for key in keys}
    for line, claim in enumerate(claims, start=2):
        if _names_row(claim.shown_by) and claim.shown_by not in rows:
            raise InputError(
                f"no row is '{claim.shown_by}'",
                file=path,
                line=line,
                field="shown_by",
                remedy=f"name a reading ({', '.join(READINGS)}), '{SWITCH}NAME', '{ONE_RUN}' or a row: "
                f"artifact{SEPARATOR}condition{SEPARATOR}metric",
            )


def _names_row(shown_by: str) -> bool:
    """Whether what shows a reason is a row."""
    return bool(shown_by) and shown_by not in (*READINGS, ONE_RUN) and not shown_by.startswith(SWITCH)


def _one_of(names: Any, row: Mapping[str, str], field: str, default: str, path: Path, line: int) -> str:
    """Read a cell that takes one of some names."""
    found = row.get(field) or default
    if found not in get_args(names):
        raise UnknownNameError.of(field, found, get_args(names), file=path, line=line, field=field)
    return found


def _parse(text: str, path: Path, line: int, field: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError as error:
        raise InputError(f"'{text}' is not a number", file=path, line=line, field=field) from error


def _three(measured: Measured | None) -> list[str]:
    """Value and interval as text."""
    found = measured or Measured(math.nan)
    return [_number(found.value), _number(found.low), _number(found.high)]


def _spoken(value: float, ends: tuple[float, float]) -> str:
    """Value and bounds in words."""
    low, high = ends
    return f"{value:.4g}" if low == high else f"{value:.4g} ({low:.4g} to {high:.4g})"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
