"""Figures of results for programs and notebooks, identical to those in reports."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from poolwise.comparison.run_comparison import Comparison
from poolwise.comparison.saved_run import read_runs
from poolwise.errors import InputError
from poolwise.explain import Explanation
from poolwise.forecasting.answer import ForecastAnswer
from poolwise.interfaces import register
from poolwise.metrics import Outcomes
from poolwise.metrics.slowdown import bounded_slowdown, wait_s
from poolwise.model import Kind
from poolwise.plans.plan import PlanResult
from poolwise.presentation.figure import Axis, Curves, Figure
from poolwise.quantities import SECOND, shared_time_unit
from poolwise.report.chart_parts import LIGHT
from poolwise.report.compare import comparison_answer
from poolwise.report.figures import FORMATS, chart_svg, save, write_figure
from poolwise.report.gantt import gantt
from poolwise.report.run_parts import PARTS, jobs_waiting, mean_over_parts, nodes_in_use, slowdown_tail
from poolwise.report.study import study_answer
from poolwise.simulation import SimulatedRun, measured
from poolwise.studies.results import StudyResult

if TYPE_CHECKING:
    from poolwise.arrays import FloatArray

Drawable = SimulatedRun | str | Path | StudyResult | PlanResult | Comparison | ForecastAnswer


@dataclass(frozen=True, eq=False)
class Plot:
    """A figure that a notebook shows and that can be saved; see `poolwise.RunPlot`."""

    figure: Figure

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, whose ending (.png, .svg or .pdf) determines the format.

        Raises InputError for any other ending.
        """
        file = Path(path)
        kind = file.suffix.removeprefix(".").lower()
        if kind not in FORMATS:
            raise InputError(f"cannot write a figure as '{file.name}'", remedy="end the name in .png, .svg or .pdf")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_figure(self.figure, kind, file)
        return file

    def __repr__(self) -> str:
        return f"<Plot '{self.figure.title}'>"

    def _repr_svg_(self) -> str:
        drawn = re.sub(r"var\(--([a-z0-9-]+)\)", lambda match: LIGHT[match[1]], chart_svg(self.figure, wide=True))
        return drawn.replace("<svg ", '<svg style="background: #ffffff" ', 1)

    def _repr_html_(self) -> str:
        caption = f"<strong>{escape(self.figure.title)}</strong><br>{escape(self.figure.caption)}"
        return f"<figure>{self._repr_svg_()}<figcaption>{caption}</figcaption></figure>"


@register("plots", "slowdown")
def plot_slowdown(run: SimulatedRun, job: int | None = None) -> Plot:
    """Draw the share of jobs above each bounded slowdown."""
    return Plot(_slowdown(run))


@register("plots", "utilization")
def plot_utilization(run: SimulatedRun, job: int | None = None) -> Plot:
    """Draw the share of nodes or cores in use over time."""
    return Plot(_utilization(run))


@register("plots", "waiting")
def plot_waiting(run: SimulatedRun, job: int | None = None) -> Plot:
    """Draw the number of waiting jobs over time."""
    return Plot(_waiting(run))


@register("plots", "gantt")
def plot_gantt(run: SimulatedRun, job: int | None = None) -> Plot:
    """Draw the jobs on the nodes that they held while one job waited; by default, the job that waited longest."""
    return Plot(_gantt(run, job))


def figures(result: Drawable) -> list[Figure]:
    """Return the figures of a result as plain data: titles, captions, axes and series.

    Parameters
    ----------
    result
        A simulated run or a reference to a saved one, as in `compare`; or the result of `run` (a study), `plan`, `compare` or
        `forecast`.

    Returns
    -------
    list of Figure
        A run has the figures of all kinds of `SimulatedRun.plot` that can be drawn.

    Raises
    ------
    TypeError
        The result has another type.
    InputError
        The reference matches no run, or several.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference")
    >>> [figure.name for figure in poolwise.figures(run)]
    ['tail', 'nodes_over_time', 'queue_over_time', 'gantt']
    """
    if isinstance(result, SimulatedRun | str | Path):
        return _all_figures(result if isinstance(result, SimulatedRun) else _saved(str(result)))
    if isinstance(result, StudyResult):
        return [shown for shown, _ in study_answer(result).charts]
    if isinstance(result, PlanResult):
        return [shown for shown, _ in result.answer.charts]
    if isinstance(result, Comparison):
        return [shown for shown, _ in comparison_answer(result, 0, {}).charts]
    if isinstance(result, ForecastAnswer):
        return [result.figure()]
    raise TypeError(f"figures() needs a run or a result of run, plan, compare or forecast, got {type(result).__name__}")


def save_figures(result: Drawable, folder: str | Path) -> list[Path]:
    """Write each figure of a result as PNG, SVG and PDF.

    Parameters
    ----------
    result
        As in `figures`.
    folder
        Folder for the files; it is created if it does not exist.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    TypeError
        The result has another type.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference")
    >>> sorted(path.name for path in poolwise.save_figures(poolwise.compare(run, run), "figures"))[:3]
    ['change.pdf', 'change.png', 'change.svg']
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    return [path for shown in figures(result) for path in save(shown, Path(folder))]


def _saved(reference: str) -> SimulatedRun:
    """Simulate a saved run again."""
    matches = [(run, seed) for run in read_runs(reference) for seed in run.outcomes]
    if len(matches) > 1:
        remedy = "select one, such as FOLDER:order=fm,seed=0"
        raise InputError(f"the reference matches {len(matches)} runs", file=reference, remedy=remedy)
    ((run, seed),) = matches
    return measured(run.schedule(seed), "", 0.0)


def _all_figures(run: SimulatedRun) -> list[Figure]:
    figures: list[Figure] = [_slowdown(run)]
    for draw in (_utilization, _waiting, _gantt):
        try:
            figures.append(draw(run))
        except InputError:  # this machine or this run does not have what it shows
            continue
    return figures


def _slowdown(run: SimulatedRun) -> Figure:
    return slowdown_tail({run.workload.name: bounded_slowdown(run.outcomes)[run.outcomes.finished]}, "Bounded slowdowns")


def _utilization(run: SimulatedRun) -> Figure:
    edges, times, axis = _parts(run.outcomes)
    if run.outcomes.whole_nodes:
        noun, share = "nodes", nodes_in_use(run.outcomes, edges) / run.outcomes.n_nodes
    else:
        noun, share = "cores", _cores_in_use(run, edges)
    return Curves(
        f"{noun}_over_time",
        f"{noun.capitalize()} in use over time",
        f"Share of all {noun} that run a job, means over equal parts of the time.",
        x=times,
        series={run.workload.name: (100 * share).tolist()},
        x_axis=axis,
        y_axis=Axis(f"{noun} in use (%)", limits=(0.0, 100.0)),
    )


def _cores_in_use(run: SimulatedRun, edges: FloatArray) -> FloatArray:
    machine, rows = run.machine, run.schedule.holdings
    if "cores" not in machine.resources:
        raise InputError(f"machine '{machine.name}' has neither whole nodes nor cores", remedy='plot "slowdown" or "waiting"')
    column, nodes = machine.resource("cores"), machine.of_kind(Kind.NODE)
    held = (rows.resource == column) & np.isin(rows.owner, nodes) & (rows.end >= 0)
    used = mean_over_parts(rows.begin[held], rows.end[held], rows.amount[held].astype(np.float64), edges)
    return used / max(int(machine.capacity[nodes, column].sum()), 1)


def _waiting(run: SimulatedRun) -> Figure:
    edges, times, axis = _parts(run.outcomes)
    return Curves(
        "queue_over_time",
        "Jobs waiting over time",
        "Jobs that were submitted and have not started, means over equal parts of the time; only jobs that finished count.",
        x=times,
        series={run.workload.name: jobs_waiting(run.outcomes, edges).tolist()},
        x_axis=axis,
        y_axis=Axis("jobs waiting"),
    )


def _parts(outcomes: Outcomes) -> tuple[FloatArray, list[float], Axis]:
    """Return the edges of equal parts of a run (ns), their middles in the unit of an axis, and the axis."""
    done = outcomes.finished
    if not done.any():
        raise InputError("no job finished, so there is nothing to draw", remedy="look at run.schedule.rejections()")
    begin, end = int(outcomes.submit[done].min()), int(outcomes.end[done].max())
    edges = np.linspace(begin, end, PARTS + 1)
    size, unit = shared_time_unit((end - begin) / SECOND)
    middles = ((edges[:-1] + edges[1:]) / 2 - begin) / (SECOND * size)
    return edges, middles.tolist(), Axis(f"time since the first submission ({unit})")


def _gantt(run: SimulatedRun, job: int | None = None) -> Figure:
    machine, outcomes = run.machine, run.outcomes
    if not {"nodes", "cores"} & set(machine.resources):
        raise InputError(f"machine '{machine.name}' has neither whole nodes nor cores", remedy='plot "slowdown" or "waiting"')
    started = outcomes.start >= 0
    if not started.any():
        raise InputError("no job started, so there is nothing to draw", remedy="look at run.schedule.rejections()")
    if job is None:
        row = int(np.argmax(np.where(started, wait_s(outcomes), -1.0)))
    else:
        rows = np.flatnonzero(outcomes.id == job)
        if not len(rows) or not started[rows[0]]:
            raise InputError(f"job {job} did not start in this run", field="job", remedy="give the id of a job that ran")
        row = int(rows[0])
    wait = Explanation(run.workload.job(row), machine, (), int(outcomes.start[row]))
    title = f"Nodes while job {outcomes.id[row]} waited" + (", the longest wait" if job is None else "")
    return replace(gantt(wait, run.schedule), title=title)
