"""Figures of every reproduction: published values compared with ours, and the share of claims that hold per reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from poolwise.comparison.headlines import JUDGED, SPEC, readings_of
from poolwise.comparison.published import ClaimRow
from poolwise.presentation.figure import Axis, Bars, Figure, Scatter

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
