"""A simulated run: its schedule, metrics, notes and answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl

from poolwise import registry
from poolwise.diagnostics import Diagnostics
from poolwise.interfaces import Scheduler
from poolwise.interfaces.user_class import rule_of
from poolwise.metrics import Measure, MeasuredRun, Metric, Outcomes
from poolwise.metrics.latency import job_latency_us
from poolwise.metrics.summary import every_measure, hidden_metrics, measure_run, metrics_named
from poolwise.model import Kind, Machine, Outcome, Schedule, Workload
from poolwise.model.html import html_table
from poolwise.presentation.answer import Answer
from poolwise.presentation.figure import Figure
from poolwise.presentation.format import population_note
from poolwise.presentation.table import Table, amount_with_unit
from poolwise.quantities import SECOND, format_count, format_time
from poolwise.short_repr import fit_repr, short_value

SPARSE_SHARE = 0.05
"""If a smaller share of jobs needs remote memory, a note states that pools can have little effect."""
_IN_REPR = ("mean_bounded_slowdown", "p99_bounded_slowdown", "mean_wait_s", "utilization", "throughput_per_100s", "makespan_s")
"""Metrics that the representation of a run shows."""
_IN_HEADLINE = ("mean_bounded_slowdown", "mean_wait_s", "utilization")
_DETAILS = frozenset(
    (
        "p90_wait_s",
        "median_bounded_slowdown",
        "p90_bounded_slowdown",
        *(f"{statistic}_bounded_slowdown_local" for statistic in ("mean", "median", "p90", "p99")),
        "share_under_5pct_degradation",
        "memory_dollars",
        "throughput_per_100s_per_memory_dollar",
    )
)
"""Metrics that only `every_metric` shows: further percentiles, a second slowdown, and memory at an assumed price."""
_LATENCIES = frozenset(f"{statistic}_job_latency_us" for statistic in ("mean", "p50", "p99", "p99_9"))
"""Metrics of jobs that are sets of tasks; for other jobs, only `every_metric` shows them."""
PlotKind = Literal["slowdown", "utilization", "waiting", "gantt"]


class RunPlot(Protocol):
    """A figure of one run, which a notebook shows and which can be saved.

    Attributes
    ----------
    figure : title, caption, axes and series, as plain data

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> plot = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference").plot("waiting")
    >>> plot.figure.title
    'Jobs waiting over time'
    """

    figure: Figure

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file whose ending (.png, .svg or .pdf) determines the format; return its path."""
        ...

    def _repr_svg_(self) -> str: ...

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedRun:
    """One simulation and its results; `simulate` returns it.

    Attributes
    ----------
    schedule : every run of every job with its start, end and placement
    outcomes : one row per job, as columns
    metrics : name -> value of every registered metric that applies, over all jobs that finished; the unit is in the name
    described : name -> description, unit and preferred direction of each of these metrics
    engine : "reference" or "compiled"
    wall_s : seconds that the simulation took, excluding reading and compiling
    notes : sentences that a reader of the results must know
    scheduler : the scheduler that decided; None for a schedule that was not simulated by `simulate`
    warm_up : number of jobs, the first submitted, that the metrics exclude

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference")
    >>> run.metrics["mean_wait_s"]
    30.0
    >>> run.frame()["wait_s"].to_list()
    [0.0, 60.0]
    """

    schedule: Schedule
    outcomes: Outcomes
    metrics: Mapping[str, float]
    described: Mapping[str, Metric]
    engine: str
    wall_s: float
    notes: tuple[str, ...] = ()
    scheduler: Scheduler | None = None
    warm_up: int = 0

    @property
    def workload(self) -> Workload:
        """Workload that ran."""
        return self.schedule.workload

    @property
    def machine(self) -> Machine:
        """Machine on which the workload ran."""
        return self.schedule.machine

    @property
    def jobs(self) -> int:
        """Number of jobs all of whose tasks finished."""
        return int(np.count_nonzero(~np.isnan(job_latency_us(self.schedule))))

    @property
    def population(self) -> str:
        """Description of the jobs that the metrics cover: all that finished after the warm-up."""
        rule = None if self.scheduler is None else rule_of(self.scheduler)
        policy = "FCFS without backfilling" if rule is not None and rule.warm_up else ""
        finished = np.isfinite(job_latency_us(self.schedule)[self.warm_up :])
        return population_note([int(finished.sum())], self.warm_up, "finished", policy)

    @cached_property
    def sanity(self) -> Diagnostics:
        """Diagnostics of the workload on this machine: load, jobs that can never run, outliers."""
        return Diagnostics.of(self.outcomes, self.workload, self.machine)

    def plot(self, kind: PlotKind = "slowdown", job: int | None = None) -> RunPlot:
        """Draw the run with the figures of the reports.

        Parameters
        ----------
        kind
            "slowdown" (share of jobs above each bounded slowdown), "utilization" (nodes or cores in use over time), "waiting"
            (jobs waiting over time) or "gantt" (jobs on the nodes that they held while one job waited).
        job
            Id of the job whose wait a Gantt chart shows; the job that waited longest if not given.

        Returns
        -------
        RunPlot
            A notebook shows it; `save` writes it as PNG, SVG or PDF.

        Raises
        ------
        InputError
            The kind is unknown, the job did not start, or the machine has neither whole nodes nor cores to draw.

        Examples
        --------
        >>> import poolwise
        >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
        >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference")
        >>> run.plot("waiting").save("waiting.svg").name
        'waiting.svg'
        """
        plot: RunPlot = registry.find("plots", kind)(self, job)
        return plot

    def answer(self, every_metric: bool = False) -> Answer:
        """Return the run in the form of all answers: its metrics as a table, diagnostics of the workload, and notes.

        The table omits details unless `every_metric` is set.
        """
        content = self.to_dict()
        counts = [
            [f"{kind}: {reason}", f"{count:,}", "job" if count == 1 else "jobs"]
            for kind in ("excluded", "repaired", "rejected", "canceled")
            for reason, count in content[kind].items()
        ]
        engine = [f"simulated by the {self.engine} engine in", f"{self.wall_s:.3g}", "s"]
        hidden = frozenset() if every_metric else self._details
        shown = [name for name in self.described if name not in hidden]
        rows = [["jobs that ran", f"{self.jobs:,}", ""], *counts, *self._rows(shown), engine]
        ran = f"{format_count(self.jobs, 'job')} ran"
        more = f" `--all` shows {format_count(len(hidden), 'more metric')}." if hidden else ""
        return Answer(
            title=self._title,
            headline=", ".join([ran, *(" ".join(row).strip() for row in self._rows(_IN_HEADLINE))]) + ".",
            first=self.sanity.sentences,
            head=[Table(self._title, ["", "value", "unit"], rows, self.population + more)],
            notes=self.notes,
            content=content,
        )

    def _rows(self, names: Sequence[str] | None = None) -> list[list[str]]:
        """Return the description, value and unit of each defined metric, or of only some of them."""
        return [
            [metric.description, *amount_with_unit(value, metric.unit)]
            for name, metric in self.described.items()
            if not np.isnan(value := self.metrics[name]) and (names is None or name in names)
        ]

    @property
    def _details(self) -> frozenset[str]:
        """Defined metrics that the table omits by default."""
        details = _DETAILS if "measured_tasks" in self.described else _DETAILS | _LATENCIES
        details |= hidden_metrics([self.metrics], pools=len(self.schedule.machine.of_kind(Kind.POOL)) > 0)
        return frozenset(name for name in details & self.metrics.keys() if not np.isnan(self.metrics[name]))

    @property
    def _title(self) -> str:
        return f"{self.schedule.workload.name} on {self.schedule.machine.name}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as `poolwise simulate --json` prints it; undefined metrics are None."""
        workload = self.schedule.workload
        return {
            "sanity": self.sanity.to_dict(),
            "jobs": self.jobs,
            "excluded": dict(workload.excluded),
            "repaired": dict(workload.repaired),
            "rejected": self.schedule.rejections(),
            "canceled": self.schedule.cancellations(),
            "waiting": len(self.schedule.waiting),
            **{name: None if np.isnan(value) else value for name, value in self.metrics.items()},
            "passes": self.schedule.passes,
            "engine": self.engine,
            "wall_s": self.wall_s,
            "notes": list(self.notes),
        }

    def frame(self) -> pl.DataFrame:
        """Return one row per job: id, times, wait, nodes, memory, how it ended, and its attributes.

        Times are `submit_ns`, `start_ns` and `end_ns` (of the last try), -1 for jobs that never started. The wait is `wait_s`,
        in seconds; a wait that the log records is `logged_wait_s`.
        """
        outcomes, workload = self.outcomes, self.schedule.workload
        table = outcomes.to_frame()
        times = {name: table[name] for name in ("submit", "start", "end", "duration", "requested")}
        waited = (outcomes.start - outcomes.submit) / SECOND
        ran = outcomes.start >= 0
        logged = {("logged_wait_s" if name == "wait_s" else name): column for name, column in workload.attributes.items()}
        more = {name: pl.Series(column) for name, column in logged.items() if name not in table.columns}
        return table.drop(*times).with_columns(
            *(column.alias(f"{name}_ns") for name, column in times.items()),
            pl.Series("wait_s", np.where(ran, waited, np.nan)),
            *(column.alias(name) for name, column in more.items()),
        )

    def __repr__(self) -> str:
        by = "" if self.scheduler is None else f", {scheduler_text(self.scheduler)}"
        lines = [
            f"SimulatedRun '{self._title}': {format_count(self.jobs, 'job')} finished, "
            f"{self.engine} engine, {format_time(self.wall_s)}{by}"
        ]
        lines += [f"  {name}: {value:.6g}" for name in _IN_REPR if (value := self.metrics.get(name, np.nan)) == value]
        return fit_repr("\n".join(lines))

    def _repr_html_(self) -> str:
        rows = {name: f"{value} {unit}".strip() for name, value, unit in self._rows()}
        paragraphs = "".join(f"<p>{escape(line)}</p>" for line in (*self.sanity.sentences, self.population))
        return paragraphs + html_table(f"{self._title}: {self.jobs} jobs", rows)


def scheduler_text(scheduler: Scheduler) -> str:
    """Describe a scheduler by its class, or by its order, backfill and placement if it is list scheduling."""
    rule = rule_of(scheduler)
    parts = (scheduler,) if rule is None else (rule.order, rule.backfill, rule.placement)
    return " + ".join(short_value(part) for part in parts)


def measured(
    schedule: Schedule,
    engine_name: str,
    wall_s: float,
    baseline: Schedule | None = None,
    measures: Sequence[Measure] = (),
    remarks: Sequence[str] = (),
    *,
    scheduler: Scheduler | None = None,
    warm_up: int = 0,
) -> SimulatedRun:
    """Measure a schedule over all jobs that finished after a warm-up; without a warm-up, over all that finished.

    `measures` extend the registered ones, and `remarks` follow the notes of the schedule. Fairness
    metrics need a `baseline`, the schedule under FCFS without backfilling.
    """
    run, measures = MeasuredRun.of(schedule, baseline, warm_up), every_measure(measures)
    metrics = measure_run(run, measures)
    described = metrics_named(measures, metrics)
    remarks = (*notes(schedule), *remarks)
    return SimulatedRun(schedule, run.outcomes, metrics, described, engine_name, wall_s, remarks, scheduler, warm_up)


def notes(schedule: Schedule) -> tuple[str, ...]:
    """Return the sentences that a reader of a schedule's metrics must know."""
    workload, machine = schedule.workload, schedule.machine
    sentences = list(workload.notes)
    if len(machine.of_kind(Kind.POOL)) and "nodes" in machine.resources and len(workload):
        share = float((workload.memory > machine.racks.local.max(initial=0)).mean())
        if share < SPARSE_SHARE:
            few = f"only {100 * share:.2g} % of the jobs need" if share else "no job needs"
            effect = "can have little effect" if share else "have no effect"
            sentences.append(f"{few} remote memory: memory pools {effect}")
    if lost := sum(outcome is Outcome.LOST for outcome in schedule.outcome):
        unfinished = int((np.bincount(schedule.job, minlength=len(workload)) > 0).sum() - schedule.done.sum())
        sentences.append(f"{lost} runs lost a node to a failure; {unfinished} of their jobs never finished")
    requeued = Counter(stop.reason for stop in schedule.stops if stop.requeue)
    sentences += [f"jobs requeued after a stop ({reason}): {count:,}" for reason, count in sorted(requeued.items())]
    sentences += [f"jobs canceled ({reason}): {count:,}" for reason, count in schedule.cancellations().items()]
    if schedule.waiting:
        sentences.append(f"{len(schedule.waiting)} jobs were still waiting when the simulation ended")
    if schedule.refused:
        reasons = dict(schedule.refused)
        sentences.append(f"the machine refused {sum(reasons.values())} decisions of the scheduler: {reasons}")
    return tuple(sentences)
