"""Main claims of a paper, each answered by the claim rows that support it, and figures of published values and ours."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

import numpy as np

from poolwise.errors import InputError
from poolwise.presentation.figure import Axis, Bars, Figure, Scatter
from poolwise_reproductions.published import READINGS, ClaimRow, Key

HeadlineVerdict = Literal["reproduced", "partly", "not", "cannot be tested"]
SPEC = "spec"
OURS = "ours"
"""Place of a claim that is not the paper's."""
JUDGED = ("holds", "fails", "undetermined")


@dataclass(frozen=True)
class Headline:
    """A claim of the abstract, the introduction or the conclusion.

    Attributes
    ----------
    claim, where : short form of the claim, and its place in the paper
    artifact, condition, metric : patterns (`*` for anything, `|` between alternatives) of the rows that it rests on; empty if
        it cannot be tested
    why : remark for readers, such as the reason why the claim cannot be tested
    quotation : words of the paper at that place; empty for a claim of ours
    """

    claim: str
    where: str
    artifact: str
    condition: str
    metric: str
    why: str = ""
    quotation: str = ""

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
    """Answer each headline: reproduced if all its rows hold under one reading, partly if any row holds under any reading."""
    found = []
    for headline in headlines:
        supporting = [row for row in rows if headline.rests_on(row)]
        counts = {reading: count_holding(supporting, reading) for reading in readings_of(rows)}
        found.append(HeadlineAnswer(headline, answer_of(counts.values()), counts))
    return found


def answer_of(counts: Collection[tuple[int, int]]) -> HeadlineVerdict:
    """Answer a claim from (rows that hold, rows judged) under each reading.

    It is reproduced if all its rows hold under one reading, and partly reproduced if any row holds under any reading.
    """
    if not any(judged for _, judged in counts):
        return "cannot be tested"
    if any(holds == judged for holds, judged in counts if judged):
        return "reproduced"
    return "partly" if any(holds for holds, _ in counts) else "not"


def read_headlines(path: Path) -> list[Headline]:
    """Read headlines: columns claim, where, quotation, artifact, condition, metric, why.

    Raises InputError with file and line for a claim of the paper without a quotation, and for one without rows or a reason.
    """
    with path.open(newline="", encoding="utf-8") as file:
        found = [Headline(**row) for row in csv.DictReader(file)]
    for line, headline in enumerate(found, start=2):
        if not headline.artifact and not headline.why:
            raise InputError(
                "a claim without rows needs a reason", file=path, line=line, field="why", remedy="state why it cannot be tested"
            )
        if not headline.quotation and headline.where != OURS:
            remedy = f"quote the words of the paper, or place the claim under '{OURS}'"
            raise InputError("a claim of the paper needs a quotation", file=path, line=line, field="quotation", remedy=remedy)
    return found


MIN_POINTS = 12
"""Minimum number of values of one unit in a table or figure for a scatter plot."""


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
    """Yield scatter plots of published values and ours, one for each unit of each table or figure of the paper."""
    groups: dict[tuple[str, str], list[ClaimRow]] = {}
    for row in rows:
        if np.isfinite(row.claim.published) and row.claim.rule != "order":
            groups.setdefault((row.claim.artifact, row.claim.unit), []).append(row)
    for (artifact, unit), found in groups.items():
        if len(found) >= MIN_POINTS and unit:
            yield _scatter(artifact, unit, found)


def _scatter(artifact: str, unit: str, rows: Sequence[ClaimRow]) -> Scatter:
    points: dict[str, tuple[list[float], list[float]]] = {}
    spread: dict[str, tuple[list[float], list[float], list[float], list[float]]] = {}
    for verdict in JUDGED:
        measured = [(row.claim.published, row.measured) for row in rows if row.verdict == verdict and row.measured is not None]
        if measured:
            x, y = [published for published, _ in measured], [found.value for _, found in measured]
            low, high = [found.bounds[0] for _, found in measured], [found.bounds[1] for _, found in measured]
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
