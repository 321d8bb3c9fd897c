"""Figures of occupancy over time: nodes in use and waiting jobs under the recommendation and today."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.metrics import Outcomes, Window
from poolwise.presentation.figure import Axis, Curves
from poolwise.studies import CellResult, StudyResult
from poolwise.units import SECOND, shared_time_unit

PARTS = 200
"""Number of parts of the measured time; the figures show their means."""


def occupancy(result: StudyResult, cell: CellResult, name: str) -> Iterator[Curves]:
    """Yield nodes in use and waiting jobs of a run called `name` over the measured time; nothing if jobs share nodes."""
    outcomes, today = result.outcomes(cell), result.today(cell)
    if not outcomes.whole_nodes:
        return
    runs = {name: outcomes} | ({} if today is None else {"today": today})
    window: Window = result.window(cell)
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
    """Return (n - 1,) mean number of nodes that finished jobs use between n instants (ns)."""
    done = outcomes.finished
    return mean_over_parts(outcomes.start[done], outcomes.end[done], outcomes.nodes_held[done], edges)


def jobs_waiting(outcomes: Outcomes, edges: FloatArray) -> FloatArray:
    """Return (n - 1,) mean number of waiting jobs between n instants (ns); only jobs that finished count."""
    done = outcomes.finished
    return mean_over_parts(outcomes.submit[done], outcomes.start[done], np.ones(int(done.sum())), edges)


def mean_over_parts(begin: IntArray, end: IntArray, weight: FloatArray, edges: FloatArray) -> FloatArray:
    """Return (n - 1,) mean total weight of the spans [begin, end) that cover an instant, between n edges (ns)."""

    def until(times: IntArray) -> FloatArray:
        """Return the integral, up to each edge, of the weight of spans whose `times` have passed."""
        order = np.argsort(times, kind="stable")
        at = np.searchsorted(times[order], edges)
        sums = np.concatenate([[0.0], np.cumsum(weight[order])])
        moments = np.concatenate([[0.0], np.cumsum(weight[order] * (times[order] - edges[0]))])
        return np.asarray(sums[at] * (edges - edges[0]) - moments[at])

    covered = until(begin) - until(end)
    return np.asarray(np.diff(covered) / np.diff(edges))
