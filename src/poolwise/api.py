"""What the command line does, in a few lines of Python: one run from names, and its results as a table.

import poolwise
machine = poolwise.Machine.of_racks(4, 48, local=16 * 1024, pool=512 * 1024, cores=12)
workload = poolwise.read("log.swf.gz", machine)
run = poolwise.simulate(workload, machine, order="fm", backfill="easy")
run.metrics["mean_bounded_slowdown"]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np
import polars as pl

from poolwise import engines, registry
from poolwise.diagnostics import Diagnostics
from poolwise.engines.order_contract import check_order_contract
from poolwise.interfaces import BackfillPolicy, PerformanceModel, PlacementPolicy, QueuePolicy, Scheduler
from poolwise.metrics import Measure, MeasuredRun, Metric, Outcomes
from poolwise.metrics.latency import job_latency_us
from poolwise.metrics.summary import every_measure, measure_run, metrics_named
from poolwise.model import Kind, Machine, Outcome, Schedule, Workload
from poolwise.model.html import html_table
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.presentation.format import population_note
from poolwise.schedulers.list import ListScheduler
from poolwise.units import SECOND, format_time

SPARSE_SHARE = 0.05
"""A result in which fewer jobs than this share need remote memory says so: pools can hardly matter there."""


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """One simulation and its results.

    Attributes
    ----------
    schedule : every run with its start, end and placement
    outcomes : one row per job
    metrics : name -> value over all jobs that finished, of every registered metric that applies (units in the names)
    described : name of each of these metrics -> what it says, its unit, and which way is better
    engine, wall_s : which engine ran, and the seconds of the simulation alone
    notes : sentences that a reader of the result must know
    """

    schedule: Schedule
    outcomes: Outcomes
    metrics: Mapping[str, float]
    described: Mapping[str, Metric]
    engine: str
    wall_s: float
    notes: tuple[str, ...] = ()

    @property
    def jobs(self) -> int:
        """Jobs that ran to their end, all tasks of each."""
        return int(np.count_nonzero(~np.isnan(job_latency_us(self.schedule))))

    @property
    def population(self) -> str:
        """On which jobs the metrics are measured, in words: all of them, while studies leave a warm-up out."""
        return population_note([self.jobs], 0, "ran to their end")

    @cached_property
    def sanity(self) -> Diagnostics:
        """What to know before the numbers: the load, jobs that can never run, outliers."""
        return Diagnostics.of(self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `poolwise simulate --json` prints it."""
        workload = self.schedule.workload
        return {
            "sanity": self.sanity.to_dict(),
            "jobs": self.jobs,
            "excluded": dict(workload.excluded),
            "repaired": dict(workload.repaired),
            "rejected": self.schedule.rejections(),
            "waiting": len(self.schedule.waiting),
            **{name: None if np.isnan(value) else value for name, value in self.metrics.items()},
            "passes": self.schedule.passes,
            "engine": self.engine,
            "wall_s": self.wall_s,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        rows = {
            metric.description: format_time(value) if metric.unit == "s" else f"{value:.6g} {metric.unit}"
            for name, metric in self.described.items()
            if not np.isnan(value := self.metrics[name])
        }
        said = "".join(f"<p>{escape(line)}</p>" for line in self.sanity.sentences)
        said += f"<p>{escape(self.population)}</p>"
        return said + html_table(f"{self.schedule.workload.name} on {self.schedule.machine.name}: {self.jobs} jobs", rows)

    def frame(self) -> pl.DataFrame:
        """One row a job: id, submit_ns, start_ns, end_ns (the last try), wait_s, nodes, memory, how it ended, attributes.

        The wait that the log records, if any, is logged_wait_s.
        """
        outcomes, workload = self.outcomes, self.schedule.workload
        kept = outcomes.to_frame()
        times = {name: kept[name] for name in ("submit", "start", "end", "duration", "requested")}
        waited = (outcomes.start - outcomes.submit) / SECOND
        ran = outcomes.start >= 0
        logged = {("logged_wait_s" if name == "wait_s" else name): column for name, column in workload.attributes.items()}
        more = {name: pl.Series(column) for name, column in logged.items() if name not in kept.columns}
        return kept.drop(*times).with_columns(
            *(column.alias(f"{name}_ns") for name, column in times.items()),
            pl.Series("wait_s", np.where(ran, waited, np.nan)),
            *(column.alias(name) for name, column in more.items()),
        )


def list_scheduler(
    order: str | QueuePolicy = "fcfs",
    backfill: str | BackfillPolicy = "easy",
    placement: str | PlacementPolicy = "racks",
    scope: str | None = None,
) -> ListScheduler:
    """Put a list scheduler together from names (registered, "module:Name" or "file.py:Name") or objects.

    `scope` ("rack" or "system") goes to the placement. Raises UnknownNameError or InputError.
    """
    settings = {} if scope is None else {"scope": scope}
    return ListScheduler(
        order=registry.make("orders", order) if isinstance(order, str) else order,
        backfill=registry.make("backfills", backfill) if isinstance(backfill, str) else backfill,
        placement=registry.make("placements", placement, **settings) if isinstance(placement, str) else placement,
    )


def default_model(machine: Machine, seed: int) -> PerformanceModel:
    """Choose remote memory where racks have pools, the ideal machine elsewhere."""
    return RemoteMemory(seed=seed) if default_model_name(machine) == "remote_memory" else Ideal()


def default_model_name(machine: Machine) -> Literal["remote_memory", "ideal"]:
    """Name of the model that `default_model` chooses."""
    has_pools = bool(len(machine.of_kind(Kind.POOL))) and "nodes" in machine.resources
    return "remote_memory" if has_pools else "ideal"


def simulate(
    workload: Workload,
    machine: Machine,
    order: str | QueuePolicy = "fcfs",
    backfill: str | BackfillPolicy = "easy",
    placement: str | PlacementPolicy = "racks",
    scope: str | None = None,
    *,
    scheduler: Scheduler | None = None,
    truth: PerformanceModel | None = None,
    estimate: PerformanceModel | None = None,
    seed: int = 0,
    engine_name: engines.Engine = "auto",
    pass_per_event: bool = False,
    baseline: Schedule | None = None,
    metrics: Sequence[str | Measure] = (),
) -> SimulatedRun:
    """Run a workload on a machine and measure it over all jobs that finished.

    Parameters
    ----------
    order, backfill, placement, scope
        The list scheduler, by names or objects; `scheduler` replaces them where it is given.
    truth, estimate
        Performance models: what happens, and what the scheduler believes (the truth if not given).
    seed
        Seed of the jobs' sensitivities to remote memory.
    pass_per_event
        A scheduling pass after each event instead of after all events of an instant.
    baseline
        A schedule of the same workload under FCFS without backfilling, against which fairness is measured.
    metrics
        Metrics beside those that are registered, by names or objects.
    """
    chosen = scheduler if scheduler is not None else list_scheduler(order, backfill, placement, scope)
    model = truth if truth is not None else default_model(machine, seed)
    promises = check_order_contract(chosen, machine, workload)
    result = engines.simulate(
        machine,
        workload,
        chosen,
        truth=model,
        estimate=estimate,
        seed=seed,
        engine=engine_name,
        pass_per_event=pass_per_event,
    )
    asked = [registry.make("metrics", name) if isinstance(name, str) else name for name in metrics]
    return measured(result.schedule, result.engine, result.wall_s, baseline, asked, (*result.notes(), *promises))


def measured(
    schedule: Schedule,
    engine_name: str,
    wall_s: float,
    baseline: Schedule | None = None,
    asked: Sequence[Measure] = (),
    said: Sequence[str] = (),
) -> SimulatedRun:
    """Measure a schedule over all jobs that finished, from the first submission to the last end.

    By every measure that is registered and applies, and by those that are asked for; what was `said` of the run comes last
    among its notes.
    """
    run, measures = MeasuredRun.of(schedule, baseline), every_measure(asked)
    metrics = measure_run(run, measures)
    return SimulatedRun(
        schedule, run.outcomes, metrics, metrics_named(measures, metrics), engine_name, wall_s, (*notes(schedule), *said)
    )


def notes(schedule: Schedule) -> tuple[str, ...]:
    """What a reader must know beside the numbers."""
    workload, machine = schedule.workload, schedule.machine
    said = list(workload.notes)
    if len(machine.of_kind(Kind.POOL)) and "nodes" in machine.resources and len(workload):
        share = float((workload.memory > machine.local_memory).mean())
        if share < SPARSE_SHARE:
            said.append(f"only {100 * share:.2g} % of the jobs need remote memory: pools can hardly matter on this workload")
    if lost := sum(outcome is Outcome.LOST for outcome in schedule.outcome):
        over = int((np.bincount(schedule.job, minlength=len(workload)) > 0).sum() - schedule.done.sum())
        said.append(f"{lost} runs lost a node that failed; {over} of their jobs did not run again to their end")
    if schedule.waiting:
        said.append(f"{len(schedule.waiting)} jobs were still waiting when nothing more could happen")
    if schedule.refused:
        said.append(
            f"the machine refused {sum(schedule.refused.values())} decisions of the scheduler: {dict(schedule.refused)}"
        )
    return tuple(said)
