"""Figures and tables of the recommended run: occupancy, memory, waits of groups of jobs, and fairness by slowdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.metrics import Outcomes, Window
from poolwise.metrics.fairness import waiting_benefit_s
from poolwise.metrics.intervals import paired_block_bootstrap
from poolwise.metrics.memory import Histogram
from poolwise.metrics.slowdown import bounded_slowdown, wait_s
from poolwise.optimize.front import front
from poolwise.presentation.figure import Axis, Bars, Curves, Distribution, Figure, Scatter
from poolwise.presentation.table import Table
from poolwise.quantities import SECOND, format_memory, format_time, shared_time_unit
from poolwise.report.recommendation import Recommendation
from poolwise.report.sweep import Sweep
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cells import workload_of
from poolwise.studies.distributions import histograms, memory_in_use

PARTS = 200
"""Number of parts of the measured time; the figures show their means."""


def slowdown_tail(samples: Mapping[str, FloatArray], title: str = "Distribution of slowdowns") -> Distribution:
    """Draw the share of jobs above each bounded slowdown; `samples` maps a run to the (n_job,) slowdowns of its jobs."""
    caption = "Share of jobs whose bounded slowdown exceeds the value on the x axis."
    x_axis = Axis("bounded slowdown", log=True)
    return Distribution("tail", title, caption, samples, x_axis, "jobs with a higher slowdown", tail=True)


def occupancy(result: StudyResult, cell: CellResult, name: str) -> Iterator[Curves]:
    """Yield nodes in use and waiting jobs of a run called `name` over the measured time.

    Yields nothing if jobs share nodes, or if the measured time is empty because all measured jobs arrive at once.
    """
    outcomes, today = result.outcomes(cell), result.today(cell)
    if not outcomes.whole_nodes:
        return
    runs = {name: outcomes} | ({} if today is None else {"today": today})
    window: Window = result.window(cell)
    if window.begin == window.end:
        return
    edges = np.linspace(window.begin, window.end, PARTS + 1)
    size, unit = shared_time_unit((window.end - window.begin) / SECOND)
    times = ((edges[:-1] + edges[1:]) / 2 - edges[0]) / (SECOND * size)
    axis = Axis(f"time since the warm-up ({unit})")
    yield Curves(
        "nodes_over_time",
        "Nodes in use over time",
        "Share of all nodes that run a job, averaged over equal parts of the measured time.",
        x=times.tolist(),
        series={label: (100 * nodes_in_use(run, edges) / run.n_nodes).tolist() for label, run in runs.items()},
        x_axis=axis,
        y_axis=Axis("nodes in use (%)", limits=(0.0, 100.0)),
    )
    yield Curves(
        "queue_over_time",
        "Waiting jobs over time",
        "Jobs that are submitted and have not started, averaged over equal parts of the measured time; rejected jobs are "
        "excluded.",
        x=times.tolist(),
        series={label: jobs_waiting(run, edges).tolist() for label, run in runs.items()},
        x_axis=axis,
        y_axis=Axis("waiting jobs"),
    )


def nodes_in_use(outcomes: Outcomes, edges: FloatArray) -> FloatArray:
    """Return the mean number of nodes that finished jobs use between n successive instants (ns), (n - 1,)."""
    done = outcomes.finished
    return mean_over_parts(outcomes.start[done], outcomes.end[done], outcomes.nodes_held[done], edges)


def jobs_waiting(outcomes: Outcomes, edges: FloatArray) -> FloatArray:
    """Return the mean number of waiting jobs between n successive instants (ns), (n - 1,); only finished jobs count."""
    done = outcomes.finished
    return mean_over_parts(outcomes.submit[done], outcomes.start[done], np.ones(int(done.sum())), edges)


def mean_over_parts(begin: IntArray, end: IntArray, weight: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the mean total weight of the spans [begin, end) that cover an instant, between n edges (ns), (n - 1,)."""

    def until(times: IntArray) -> FloatArray:
        """Return the integral, up to each edge, of the total weight of the spans whose `times` have passed."""
        order = np.argsort(times, kind="stable")
        at = np.searchsorted(times[order], edges)
        sums = np.concatenate([[0.0], np.cumsum(weight[order])])
        moments = np.concatenate([[0.0], np.cumsum(weight[order] * (times[order] - edges[0]))])
        return np.asarray(sums[at] * (edges - edges[0]) - moments[at])

    covered = until(begin) - until(end)
    return np.asarray(np.diff(covered) / np.diff(edges))


MAX_LABELS = 6
"""Maximum number of bins with a label; more would overlap."""


def memory_figures(result: StudyResult, sweep: Sweep, recommendation: Recommendation) -> Iterator[Figure]:
    """Yield memory utilization over time and in bins of 10 %, and degradation in bins of 5 %, if available."""
    cell = sweep.cells[recommendation.series, recommendation.at][0]
    run = recommendation.series
    where = sweep.where(recommendation.at)
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
        caption = "Share of the measured time for which memory utilization is in each 10 % bin."
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
    """Return bars in percent; labels are the lower edges of bins, and as many bins are labelled as fit."""
    low = [round(100 * edge) for edge in histogram.edges[:-1].tolist()]
    step = -(-len(low) // MAX_LABELS)
    groups = [f"{edge} %" if k % step == 0 else "" for k, edge in enumerate(low)]
    return Bars(name, title, caption, groups=groups, series={run: (100 * histogram.share).tolist()}, y_axis=axis)


WAITS = "Waits by group of jobs"
OWNER_ATTRIBUTES = ("user", "account", "group", "queue", "partition")
MAX_NAMES = 10
"""Maximum number of users or accounts to show: those with the longest total wait."""
CLASSES = 4
"""Number of size and memory classes, each with about the same number of jobs."""

WaitGroup = tuple[str, BoolArray]


def waits_by_group(result: StudyResult, cell: CellResult) -> Table:
    """Return a table of the median and 95th percentile of the wait of each group of jobs, compared with today."""
    outcomes, today, population = result.outcomes(cell), result.today(cell), result.population(cell)
    waits = wait_s(outcomes)
    waits_today = None if today is None else wait_s(today)
    rows = []
    for label, group in _groups(result, cell):
        chosen = group & population
        if not chosen.any():
            continue
        cells = [label, f"{int(chosen.sum()):,}", *_summarize(waits[chosen])]
        if waits_today is not None:
            cells += [*_summarize(waits_today[chosen]), f"{int((waits > waits_today)[chosen].sum()):,}"]
        rows.append(cells)
    header = ["group", "jobs", "median wait", "95th percentile of the wait"]
    header += [] if waits_today is None else ["median wait today", "95th percentile today", "jobs that wait longer"]
    caption = (
        f"Jobs of seed {cell.seed} after the warm-up that every run finished. Size and memory classes have about the same "
        f"number of jobs each; of users and accounts, the {MAX_NAMES} with the longest total wait are shown."
    )
    return Table(WAITS, header, rows, caption)


def _summarize(waits: NDArray[np.float64]) -> list[str]:
    return [format_time(float(np.median(waits))), format_time(float(np.quantile(waits, 0.95)))]


def _groups(result: StudyResult, cell: CellResult) -> Iterator[WaitGroup]:
    outcomes = result.outcomes(cell)
    yield "all jobs", np.ones(len(outcomes), dtype=np.bool_)
    for low, high, chosen in _classes(outcomes.nodes):
        yield (f"{low:,} node{'s' if low > 1 else ''}" if low == high else f"{low:,} to {high:,} nodes"), chosen
    for low, high, chosen in _classes(outcomes.memory):
        yield (
            f"{format_memory(low)} per node" if low == high else f"{format_memory(low)} to {format_memory(high)} per node",
            chosen,
        )
    attributes = workload_of(result.simulated(cell)).attributes
    waits = wait_s(outcomes)
    for name in OWNER_ATTRIBUTES:
        if name in attributes:
            yield from _by_name(name, attributes[name], waits, result.population(cell))


def _classes(values: NDArray[np.int64]) -> Iterator[tuple[int, int, BoolArray]]:
    """Yield (low, high, jobs) of classes split at quantiles; equal values stay in one class."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, CLASSES + 1)[1:], method="inverted_cdf"))
    for k, top in enumerate(edges):
        chosen = (values <= top) & ((values > edges[k - 1]) if k else True)
        yield int(values[chosen].min()), int(values[chosen].max()), chosen


def _by_name(label: str, column: NDArray[np.generic], waits: NDArray[np.float64], population: BoolArray) -> Iterator[WaitGroup]:
    names = np.unique(column[population])
    totals = {name: float(waits[(column == name) & population].sum()) for name in names.tolist()}
    for name in sorted(totals, key=lambda name: (-totals[name], str(name)))[:MAX_NAMES]:
        yield f"{label} {name}", column == name


def compromise(result: StudyResult, sweep: Sweep, at: int, where: str) -> Scatter | None:
    """Draw each series at one size with 95 % intervals; None without a fairness baseline."""
    if not result.study.measure.baseline or len(sweep.series) < 2:
        return None
    points = {s: _point(result, sweep.cells[s, at]) for s in sweep.series if (s, at) in sweep.cells}
    best = best_of({series: (p[0], p[3]) for series, p in points.items()})
    missing = "" if np.isfinite([*points.values()]).all() else " Points without bars have too few jobs for an interval."
    names = {series: f"{series} (front)" if series in best else series for series in points}
    return Scatter(
        "compromise",
        f"Fairness by slowdown{where}",
        "One point per order; points to the left are faster, lower ones are fairer. No other order is better in both than an "
        "order on the front. Discrimination is the wait added compared with FCFS without backfilling, summed over the compared "
        "jobs that wait longer and divided by the number of all compared jobs. Bars are 95 % intervals (block bootstrap over "
        f"the jobs in submission order).{missing}",
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
        path = [points[series, at] for at in range(len(sweep.x)) if (series, at) in points]
        paths[series] = ([p[0] for p in path], [p[3] for p in path])
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
    """Return the mean and interval of the slowdown, and of the discrimination per job in hours."""
    slowdowns: list[FloatArray] = []
    losses: list[FloatArray] = []
    for cell in cells:
        outcomes, baseline, population = result.outcomes(cell), result.baseline(cell), result.population(cell)
        both = population & baseline.finished
        slowdowns.append(bounded_slowdown(outcomes)[population])
        losses.append(np.maximum(-waiting_benefit_s(outcomes, baseline)[both], 0.0) / 3600)
    spread = [paired_block_bootstrap(np.concatenate(values)) for values in (slowdowns, losses)]
    return tuple(value for interval in spread for value in (interval.mean, interval.low, interval.high))
