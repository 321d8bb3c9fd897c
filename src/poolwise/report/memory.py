"""Figures of memory in the recommended run: utilization over time, and degradation of jobs by remote memory."""

from __future__ import annotations

from collections.abc import Iterator

from poolwise.metrics.memory import Histogram
from poolwise.presentation.figure import Axis, Bars, Curves, Figure
from poolwise.report.answer import Recommendation
from poolwise.report.sweep import Sweep
from poolwise.studies import StudyResult
from poolwise.studies.distributions import histograms, memory_in_use
from poolwise.units import SECOND, shared_time_unit

MAX_LABELS = 6
"""Maximum number of bins with a label; more would overlap."""


def memory_figures(result: StudyResult, sweep: Sweep, found: Recommendation) -> Iterator[Figure]:
    """Yield memory utilization over time and in bins of 10 %, and degradation in bins of 5 %; only those that exist."""
    cell = sweep.cells[found.series, found.at][0]
    run = found.series
    where = sweep.where(found.at)
    steps, shares = memory_in_use(result, cell), histograms(result, cell)
    if len(steps.value):
        size, unit = shared_time_unit(float(steps.time[-1] - steps.time[0]) / SECOND)
        times = (steps.time - steps.time[0]) / (SECOND * size)
        yield Curves(
            "memory_over_time",
            f"Memory in use over time{where}",
            "Local and pool memory in use / installed memory, averaged over equal parts of the measured time.",
            x=((times[:-1] + times[1:]) / 2).tolist(),
            series={run: (100 * steps.value).tolist()},
            x_axis=Axis(f"time since the warm-up ({unit})"),
            y_axis=Axis("memory in use (%)", limits=(0.0, 100.0)),
        )
        caption = "Share of the measured time that memory utilization spends in each tenth."
        axis = Axis("share of the measured time (%)")
        yield _bars(
            "memory_bins", f"Distribution of memory utilization{where}", caption, run, shares["memory_utilization"], axis
        )
    degraded = shares["degradation"]
    if (degraded.share[1:] > 0).any():
        caption = "Share of jobs by the increase of their runtime over the runtime with local memory only, in bins of 5 %."
        axis = Axis("share of jobs (%)", log=True)
        yield _bars("degradation_bins", f"Degradation by remote memory{where}", caption, run, degraded, axis)


def _bars(name: str, title: str, caption: str, run: str, histogram: Histogram, axis: Axis) -> Bars:
    """Return bars in percent; a bin's label is its lower edge, on as many bins as fit."""
    low = [round(100 * edge) for edge in histogram.edges[:-1].tolist()]
    step = -(-len(low) // MAX_LABELS)
    groups = [f"{edge} %" if k % step == 0 else "" for k, edge in enumerate(low)]
    return Bars(name, title, caption, groups=groups, series={run: (100 * histogram.share).tolist()}, y_axis=axis)
