"""Main claims of a paper, each answered by the claim rows that support it, and figures of published values and ours."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from poolwise.errors import InputError, UnknownNameError
from poolwise.presentation.figure import Axis, Bars, Figure, Scatter
from poolwise_reproductions.criteria import ClaimVerdict
from poolwise_reproductions.published import READINGS, ClaimRow, Key

HeadlineVerdict = Literal["reproduced", "under another reading", "partly", "undetermined", "not", "cannot be tested"]
RowRule = Literal["all", "most", "any"]
"""Number of rows that must hold for a claim to hold: all, more than half, or one."""
SPEC = "spec"
OURS = "ours"
"""Place given for claims that are ours, not the paper's."""
JUDGED = ("holds", "fails", "undetermined")


@dataclass(frozen=True)
class Headline:
    """A claim of the abstract, the introduction or the conclusion.

    Attributes
    ----------
    claim, where : short form of the claim, and where the paper states it
    artifact, condition, metric : patterns (`*` for anything, `|` between alternatives) of the rows that it rests on; empty if
        it cannot be tested
    why : remark for readers, such as the reason why the claim cannot be tested
    quotation : words of the paper at that place; empty for our own claims
    rule : which of the rows must hold
    """

    claim: str
    where: str
    artifact: str
    condition: str
    metric: str
    why: str = ""
    quotation: str = ""
    rule: RowRule = "all"

    def rests_on(self, row: ClaimRow) -> bool:
        """Return whether the claim rests on a row."""
        return self.names(row.claim.key)

    def names(self, key: Key) -> bool:
        """Return whether the patterns match the key of a row."""
        pairs = zip(key, (self.artifact, self.condition, self.metric), strict=True)
        return bool(self.artifact) and all(
            any(fnmatchcase(text, each) for each in pattern.split("|")) for text, pattern in pairs
        )


@dataclass(frozen=True)
class HeadlineAnswer:
    """A headline, its answer, and reading -> (rows that hold, rows judged)."""

    headline: Headline
    answer: HeadlineVerdict
    counts: dict[str, tuple[int, int]]


def readings_of(rows: Sequence[ClaimRow]) -> tuple[str, ...]:
    """Return the readings under which any row was measured, the specification's first."""
    return (SPEC, *(name for name in READINGS if any(name in row.readings for row in rows)))


def count_holding(rows: Sequence[ClaimRow], reading: str) -> tuple[int, int]:
    """Return the number of rows that hold under a reading, and the number of judged rows."""
    verdicts = [row.verdict if reading == SPEC else row.verdict_under(reading) for row in rows]
    return verdicts.count("holds"), sum(verdict in JUDGED for verdict in verdicts)


def answer_headlines(headlines: Sequence[Headline], rows: Sequence[ClaimRow]) -> list[HeadlineAnswer]:
    """Answer each headline from the rows that it rests on; see `answer_of`."""
    answers = []
    for headline in headlines:
        supporting = [row for row in rows if headline.rests_on(row)]
        readings = readings_of(rows)
        counts = {reading: count_holding(supporting, reading) for reading in readings}
        verdicts = [
            [row.verdict if reading == SPEC else row.verdict_under(reading) for row in supporting] for reading in readings
        ]
        answers.append(HeadlineAnswer(headline, answer_of(verdicts, headline.rule), counts))
    return answers


def verdict_of(verdicts: Collection[str], rule: RowRule) -> ClaimVerdict:
    """Judge a claim from the verdicts of its rows under one reading; rows that are not judged do not count.

    Examples
    --------
    >>> verdict_of(["holds", "holds", "undetermined"], "most"), verdict_of(["holds", "holds", "undetermined"], "all")
    ('holds', 'undetermined')
    """
    count = Counter(verdict for verdict in verdicts if verdict in JUDGED)
    if not count.total():
        return "not measured"
    needed = {"all": count.total(), "most": count.total() // 2 + 1, "any": 1}[rule]
    if count["holds"] >= needed:
        return "holds"
    return "undetermined" if count["holds"] + count["undetermined"] >= needed else "fails"


def answer_of(readings: Sequence[Collection[str]], rule: RowRule = "all") -> HeadlineVerdict:
    """Answer a claim from the verdicts of its rows under each reading, the specification's first.

    It is reproduced if enough rows hold under the specification's reading (`RowRule`), or else under another reading. It is
    partly reproduced if any row holds under any reading, and undetermined if no row holds but undetermined rows could decide.
    """
    by_reading = [verdict_of(verdicts, rule) for verdicts in readings]
    if set(by_reading) <= {"not measured"}:
        return "cannot be tested"
    if "holds" in by_reading:
        return "reproduced" if by_reading[0] == "holds" else "under another reading"
    if any("holds" in verdicts for verdicts in readings):
        return "partly"
    return "undetermined" if "undetermined" in by_reading else "not"


def count_answers(answers: Collection[HeadlineVerdict]) -> str:
    """Return the number of reproduced claims and of tested claims in words: "5 of 9"."""
    tested = [answer for answer in answers if answer != "cannot be tested"]
    return f"{tested.count('reproduced')} of {len(tested)}"


def read_headlines(path: Path) -> list[Headline]:
    """Read headlines: columns claim, where, quotation, artifact, condition, metric, why, and optionally rule (default all).

    Raises InputError with file and line for a claim of the paper without a quotation, and for one without rows or a reason.
    """
    with path.open(newline="", encoding="utf-8") as file:
        cells = [{name: text for name, text in row.items() if text or name != "rule"} for row in csv.DictReader(file)]
    headlines = [Headline(**row) for row in cells]  # type: ignore[arg-type]  # the rule is checked below
    for line, headline in enumerate(headlines, start=2):
        if headline.rule not in get_args(RowRule):
            raise UnknownNameError.of("rule", headline.rule, get_args(RowRule), file=path, line=line, field="rule")
        if not headline.artifact and not headline.why:
            raise InputError(
                "a claim without rows needs a reason", file=path, line=line, field="why", remedy="state why it cannot be tested"
            )
        if not headline.quotation and headline.where != OURS:
            remedy = f"quote the words of the paper, or place the claim under '{OURS}'"
            raise InputError("a claim of the paper needs a quotation", file=path, line=line, field="quotation", remedy=remedy)
    return headlines


MIN_POINTS = 12
"""Minimum number of values of one unit in a table or figure for a scatter plot; equal published values need none."""


def agreement_figures(rows: Sequence[ClaimRow]) -> list[Figure]:
    """Draw the paper's claims; claims that cannot be tested are excluded."""
    paper = [row for row in rows if row.claim.kind == "paper" and row.verdict in JUDGED]
    return [*_readings(paper), *_published(paper)]


def _readings(rows: Sequence[ClaimRow]) -> Iterator[Figure]:
    """Yield bars of the share of claims that hold, by table and figure of the paper."""
    readings = readings_of(rows)
    if len(readings) == 1:
        return
    judged = Counter(row.claim.artifact for row in rows)
    held = {
        reading: Counter(
            row.claim.artifact for row in rows if (row.verdict if reading == SPEC else row.verdict_under(reading)) == "holds"
        )
        for reading in readings
    }
    yield Bars(
        "readings",
        "Claims that hold under each reading",
        "Share of testable claims that hold, by table and figure. Claims that a reading does not affect are judged under the "
        f"reading of the specification. Claims: {', '.join(f'{name} {count}' for name, count in judged.items())}.",
        groups=list(judged),
        series={reading: [100 * counts[name] / judged[name] for name in judged] for reading, counts in held.items()},
        y_axis=Axis("claims that hold (%)", limits=(0, 100)),
    )


def _published(rows: Sequence[ClaimRow]) -> Iterator[Figure]:
    """Yield scatter plots of published values and our values, one for each unit in each table or figure of the paper."""
    groups: dict[tuple[str, str], list[ClaimRow]] = {}
    for row in rows:
        if np.isfinite(row.claim.published) and row.claim.rule != "order":
            groups.setdefault((row.claim.artifact, row.claim.unit), []).append(row)
    for (artifact, unit), group in groups.items():
        if len(group) >= MIN_POINTS and unit and len({row.claim.published for row in group}) > 1:
            yield _scatter(artifact, unit, group)


def _scatter(artifact: str, unit: str, rows: Sequence[ClaimRow]) -> Scatter:
    points: dict[str, tuple[list[float], list[float]]] = {}
    spread: dict[str, tuple[list[float], list[float], list[float], list[float]]] = {}
    for verdict in JUDGED:
        measured = [(row.claim.published, row.measured) for row in rows if row.verdict == verdict and row.measured is not None]
        if measured:
            x, y = [published for published, _ in measured], [value.value for _, value in measured]
            low, high = [value.bounds[0] for _, value in measured], [value.bounds[1] for _, value in measured]
            points[verdict], spread[verdict] = (x, y), (x, x, low, high)
    return Scatter(
        f"{artifact}-{unit}".lower().replace(" ", "-").replace("%", "percent").replace("/", "-per-"),
        f"{artifact}: published values and ours ({unit})",
        "Measured under the specification's reading; bars are 95 % intervals over seeds. Equal values lie on the diagonal.",
        artifact=artifact,
        series=points,
        x_axis=Axis(f"published ({unit})"),
        y_axis=Axis(f"ours ({unit})"),
        spread=spread,
    )
