"""Run of a study, and its results: one row per cell on a common population of jobs, and their provenance."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from poolwise.atomic_write import write_whole
from poolwise.errors import InputError
from poolwise.files import costs
from poolwise.files.cost_items import cost_items, dollars_to_buy
from poolwise.files.factory import warm_up_policy
from poolwise.hashing import Json, canonical, pretty_parts
from poolwise.metrics import METRICS, MeasuredRun, Metric, Window
from poolwise.metrics.summary import STANDARD, hidden_metrics, measure_run, metric_columns, metrics_named
from poolwise.metrics.window import after_warm_up
from poolwise.model import Kind
from poolwise.presentation.format import population_note
from poolwise.quantities import SECOND
from poolwise.runner import Executor, Local, Progress, TaskRunner
from poolwise.short_repr import fit_repr, short_value
from poolwise.studies.cell_simulation import Cells, simulate_again
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, workload_of
from poolwise.studies.description import describe, describe_metrics
from poolwise.studies.diagnostics import MachineDiagnostics, by_machine
from poolwise.studies.distributions import as_csv, distributions, memory_over_time, varied
from poolwise.studies.measured import CellResult, MeasuredStudy, Runs, StoredFacts
from poolwise.studies.metric_rows import MetricRows
from poolwise.studies.notes import description, notes
from poolwise.studies.resources import resource_frame
from poolwise.studies.study import Study, load
from poolwise.traces.parquet import sealed_parquet
from poolwise.version import __version__


class StudyResult(MeasuredStudy):
    """The results of a study as tables, sentences and files; `run` returns it.

    Attributes
    ----------
    study : the study
    folder : folder of the cells and results
    cells : one result per cell, in the order of the study
    facts : cell key -> record of its simulation

    Examples
    --------
    >>> import poolwise
    >>> settings = {"workload.jobs": 600, "scheduler.order": "fm", "machine.pool.memory.memory": "768 GiB"}
    >>> result = poolwise.run(poolwise.load("cerit-pools", settings), "results/fm", jobs=1)
    >>> result.cells[0].parameters
    {}
    """

    def __repr__(self) -> str:
        lines = [f"StudyResult '{self.study.name}': {len(self.cells):,} cells in {self.folder}"]
        return fit_repr("\n".join([*lines, *(f"  {path}: {short_value(values)}" for path, values in self.study.vary.items())]))

    def frame(self) -> pl.DataFrame:
        """Return one row per cell: varied values, seed, counts, metrics."""
        table: dict[str, Any] = varied(self.study, self.cells)
        for name in ("seed", "key", "engine", "jobs"):
            table[name] = [getattr(c, name) for c in self.cells]
        for name in ("excluded", "repaired", "rejected"):
            table[name] = [sum(getattr(c, name).values()) for c in self.cells]
        table["waiting"] = [c.waiting for c in self.cells]
        table["rejected_reasons"] = [canonical(dict(c.rejected)) for c in self.cells]
        for name in self.described:
            table[name] = [c.metrics[name] for c in self.cells]
        return pl.DataFrame(table)

    @property
    def described(self) -> Mapping[str, Metric]:
        """Metric name -> description; additional metrics of the study come last."""
        return metrics_named((*STANDARD, *self.study.measures), self.cells[0].metrics)

    @property
    def more_metrics(self) -> tuple[str, ...]:
        """Names of the metrics that the study requests in addition to the standard ones."""
        return tuple(name for name in self.described if name not in METRICS)

    @cached_property
    def hidden_metrics(self) -> frozenset[str]:
        """Names of the metrics that tables omit: no run has them, or they measure remote memory and no machine has any."""
        pools = any(len(cell.machine.of_kind(Kind.POOL)) for cell in self.study.cells)
        return hidden_metrics([cell.metrics for cell in self.cells], pools)

    def notes(self) -> list[str]:
        """Return notes that readers of the results need."""
        return notes(self)

    def diagnostics(self) -> list[MachineDiagnostics]:
        """Return the diagnostics of each machine of the study."""
        return by_machine(self)

    def description(self) -> list[tuple[str, str]]:
        """Return a summary of the study as (name, value) pairs."""
        return description(self)

    def population_text(self) -> str:
        """Describe the jobs on which every run is measured."""
        counts = (int(self.population(cell).sum()) for cell in self.cells)
        common = self.study.measure.population == "common"
        condition, policy = "every run finished" if common else "the paper counts", ""
        if self.study.measure.warm_up:
            policy = warm_up_policy(cell.scheduler for cell in self.study.cells)
        return population_note(counts, self.study.measure.warm_up, condition, policy)

    def provenance(self) -> Json:
        """Return the origin of the results: version, command, hashes of all inputs, seeds."""
        traces = {Path(cell.workload.path).name: cell.workload.sha256 for cell in self.study.cells}
        called = Path(sys.argv[0]).name
        return {
            "poolwise": __version__,
            "command": ["poolwise", *sys.argv[1:]] if called == "poolwise" else ["poolwise.studies.run"],
            "study": self.study.name,
            "study_sha256": self.study.sha256,
            "sources_sha256": self.study.cells[0].sources,
            "traces_sha256": traces,
            "seeds": sorted({cell.seed for cell in self.study.cells}),
            "engines": sorted({str(facts["engine"]) for facts in self.facts.values()}),
            "python": platform.python_version(),
            "numpy": np.__version__,
            "polars": pl.__version__,
        }

    def runs(self) -> Iterator[Json]:
        """Describe each cell for a file in the results folder: key, varied values, and `describe`."""
        return self._described(self.study.cells)

    def today_runs(self) -> Json:
        """Describe the runs of today's configuration, and map each cell to its run."""
        today = self.study.today
        runs = self._described({cell.key: cell for cell in today.values()}.values())
        return {"of": {key: cell.key for key, cell in today.items()}, "runs": [*runs]}

    def _described(self, cells: Iterable[Cell]) -> Iterator[Json]:
        return ({"key": cell.key, "parameters": dict(cell.parameters), **describe(cell, self.folder)} for cell in cells)

    def write(self) -> None:
        """Write the tables and provenance.json, each atomically."""
        frame = self.frame()
        write_whole(self.folder / "results.parquet", sealed_parquet(frame))
        write_whole(self.folder / "results.csv", frame.write_csv().encode())
        write_whole(self.folder / "distributions.csv", as_csv(distributions(self)))
        write_whole(self.folder / "memory_over_time.csv", as_csv(memory_over_time(self)))
        if (used := resource_frame(self)) is not None:
            write_whole(self.folder / "resources.csv", used.write_csv().encode())
        metrics = describe_metrics(self.study.metrics, self.folder)
        source = {**dict(sorted(self.provenance().items())), "metrics": metrics, "runs": iter(self.runs())}  # not nested keys
        if self.study.today:
            source["today"] = self.today_runs()
        write_whole(self.folder / "provenance.json", pretty_parts(source))

    def _repr_html_(self) -> str:
        shown = [name for name in ("mean_bounded_slowdown", "mean_wait_s", "utilization") if name in METRICS]
        names = [*self.study.vary, "seed", *shown]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows = [
            "".join(
                f"<td>{escape(str(value))}</td>"
                for value in (*cell.parameters.values(), cell.seed, *(f"{cell.metrics[name]:.6g}" for name in shown))
            )
            for cell in self.cells
        ]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><caption>{escape(self.study.title)}</caption><tr>{head}</tr>{body}</table>"


def run(
    study: str | Path | Study,
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> StudyResult:
    """Run the cells of a study that are missing, measure all cells and write the results; re-run to resume.

    Parameters
    ----------
    study
        STUDY.toml, the name of a shipped study, or what `load` returned.
    out
        Folder for cells, results and provenance, created if necessary; cells that it already contains are not repeated. By
        default results/STUDY.
    jobs
        Number of processes on this computer; all cores if not given or -1. The results do not depend on it.
    progress
        Receives the progress, such as `poolwise.runner.progress.ConsoleProgress`.
    executor
        Simulates the cells instead of this computer; see `poolwise.runner.find_executor`.

    Returns
    -------
    StudyResult

    Raises
    ------
    InputError
        The study is invalid, a cell cannot run (the error names the cell), or another process writes to the same folder.

    Examples
    --------
    >>> import poolwise
    >>> settings = {"workload.jobs": 600, "scheduler.order": "fm", "machine.pool.memory.memory": "768 GiB"}
    >>> result = poolwise.run(poolwise.load("cerit-pools", settings), "results/fm", jobs=1)
    >>> result.frame().select("key", "mean_bounded_slowdown").shape
    (1, 2)
    """
    study = study if isinstance(study, Study) else load(study)
    executor = Local(jobs) if executor is None else executor
    store = CellStore(Path("results") / study.name if out is None else Path(out))
    with store.writing():
        TaskRunner(store, executor, progress).run(Cells(), study.runs)
        result = measure(study, store)
        result.write()
    return result


def measure(study: Study, store: CellStore) -> StudyResult:
    """Measure all cells of a study that has run.

    Raises InputError if a cell is missing, or if a requested metric applies to no run.
    """
    runs, measures = Runs(study, store), (*STANDARD, *study.measures)
    facts = StoredFacts(study, store)
    rows = MetricRows()
    values_of_cells = {
        cell.key: rows.row(measure_run(_run(study, cell, runs), measures))
        for cell in {cell.key: cell for cell in study.cells}.values()
    }
    for component, requested in zip(study.metrics, study.measures, strict=True):
        if not any(name.partition(".")[0] in requested.metrics for names in rows.layouts for name in names):
            problem, remedy = f"the metric '{component}' does not apply to any run of this study", "remove it"
            raise InputError(problem, file=study.file, field="measure.metrics", remedy=remedy)
    names = metric_columns(measures, rows.layouts)
    metrics = {key: rows.row({name: values.get(name, math.nan) for name in names}) for key, values in values_of_cells.items()}
    cells = tuple(_cell_result(cell, metrics[cell.key], facts[cell.key]) for cell in study.cells)
    return StudyResult(study, store.folder, cells, facts, runs)


def _run(study: Study, cell: Cell, runs: Runs) -> MeasuredRun:
    outcomes = runs.outcomes(cell)
    other = study.memory_baseline(cell)
    return MeasuredRun(
        outcomes,
        runs.population(cell) & after_warm_up(outcomes, cell.warm_up),
        Window.of(outcomes, cell.warm_up),
        cell.warm_up,
        baseline=runs.outcomes(cell.baseline()) if study.measure.baseline else None,
        memory_baseline=None if other is None else runs.outcomes(other),
        tau_s=study.measure.tau / SECOND,
        dollars_per_gb=study.measure.dollars_per_gb,
        read_workload=lambda: workload_of(cell),
        read_schedule=lambda: simulate_again(cell, outcomes),
    )


def _cell_result(cell: Cell, metrics: Mapping[str, float], facts: Json) -> CellResult:
    reasons: dict[str, Any] = {name: _shared(tuple(facts[name].items())) for name in ("excluded", "repaired", "rejected")}
    watts, dollars = watts_and_dollars(facts, cell)
    counts = {"jobs": facts["jobs"], "waiting": facts["waiting"], "engine": sys.intern(facts["engine"])}
    return CellResult(cell.parameters, cell.seed, cell.key, metrics, **counts, **reasons, watts=watts, dollars=dollars)


@lru_cache(maxsize=1024)
def _shared(counts: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    """Return the same mapping for equal counts, to save memory in studies of up to a million cells."""
    return dict(counts)


def watts_and_dollars(facts: Json, cell: Cell) -> tuple[float, float]:
    """Return the mean power (W) and purchase price ($) of a run, from the cell's tables or its machine; NaN if unknown."""
    stored: Json = facts.get("resources", {})
    watts, dollars = (math.nan if stored.get(name) is None else float(stored[name]) for name in ("watts", "dollars"))
    measured = {name: [math.nan if v is None else v for v in values] for name, values in stored.get("things", {}).items()}
    if cell.costs.power is not None:
        watts = costs.watts(cell.costs.power, measured)
    if cell.costs.prices is not None:
        dollars = dollars_to_buy(cost_items(cell.costs.prices, cell.machine))
    return watts, dollars
