"""Tradeoff between slowdown and fairness: the orders on the Pareto front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.metrics.fairness import waiting_benefit_s
from poolwise.metrics.intervals import paired_block_bootstrap
from poolwise.metrics.slowdown import bounded_slowdown
from poolwise.optimize.front import front
from poolwise.presentation.figure import Axis, Scatter
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult


def compromise(result: StudyResult, sweep: Sweep, at: int, where: str) -> Scatter | None:
    """Draw each series at one size with 95 % intervals; None without a fairness baseline."""
    if not result.study.measure.baseline or len(sweep.series) < 2:
        return None
    points = {s: _point(result, sweep.cells[s, at]) for s in sweep.series if (s, at) in sweep.cells}
    best = best_of({series: (p[0], p[3]) for series, p in points.items()})
    names = {series: f"{series} (front)" if series in best else series for series in points}
    return Scatter(
        "compromise",
        f"Fairness by slowdown{where}",
        "One point per order; points to the left are faster, lower ones are fairer. No other order is better in both than an "
        "order on the front. Bars are 95 % intervals (block bootstrap over the jobs in submission order).",
        series={names[s]: ([p[0]], [p[3]]) for s, p in points.items()},
        spread={names[s]: ([p[1]], [p[2]], [p[4]], [p[5]]) for s, p in points.items()},
        x_axis=Axis("mean bounded slowdown of jobs"),
        y_axis=Axis("discrimination (h per job)"),
    )


def compromise_over_sizes(result: StudyResult, sweep: Sweep) -> Scatter | None:
    """Draw each series as a path over the sizes, with the front of each size; None without a fairness baseline."""
    if not result.study.measure.baseline or len(sweep.series) < 2 or len(sweep.x) < 2:
        return None
    points = {key: _point(result, cells) for key, cells in sweep.cells.items()}
    fronts = []
    for at, label in enumerate(sweep.labels):
        best = best_of({s: (points[s, at][0], points[s, at][3]) for s in sweep.series if (s, at) in points})
        fronts.append(f"{label}: {', '.join(series for series in sweep.series if series in best)}")
    paths = {}
    for series in sweep.series:
        found = [points[series, at] for at in range(len(sweep.x)) if (series, at) in points]
        paths[series] = ([p[0] for p in found], [p[3] for p in found])
    lowest = min(y for _, ys in paths.values() for y in ys)
    return Scatter(
        "compromise_over_sizes",
        "Fairness by slowdown over sizes",
        f"One path per order, one point per size; small sizes are to the right. Front of each size: {'; '.join(fronts)}.",
        series=paths,
        x_axis=Axis("mean bounded slowdown of jobs", log=True),
        y_axis=Axis("discrimination (h per job)", log=lowest > 0),
        joined=True,
    )


def best_of(points: Mapping[str, tuple[float, float]]) -> set[str]:
    """Return the names of the points on the Pareto front, where lower is better in both coordinates."""
    on_front = front(np.array(list(points.values())).reshape(len(points), 2))
    return {name for name, best in zip(points, on_front.tolist(), strict=True) if best}


def _point(result: StudyResult, cells: Sequence[CellResult]) -> tuple[float, ...]:
    """Return mean, low and high of the slowdown, then of the discrimination per job in hours."""
    slowdowns: list[FloatArray] = []
    losses: list[FloatArray] = []
    for cell in cells:
        outcomes, baseline, population = result.outcomes(cell), result.baseline(cell), result.population(cell)
        both = population & baseline.finished
        slowdowns.append(bounded_slowdown(outcomes)[population])
        losses.append(np.maximum(-waiting_benefit_s(outcomes, baseline)[both], 0.0) / 3600)
    spread = [paired_block_bootstrap(np.concatenate(values)) for values in (slowdowns, losses)]
    return tuple(value for interval in spread for value in (interval.mean, interval.low, interval.high))
