"""What a study came to: one row a cell, on jobs that all compared runs ran, and where it comes from."""

from __future__ import annotations

import io
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from poolwise import __version__
from poolwise.arrays import BoolArray
from poolwise.atomic import write_whole
from poolwise.identity import Json, canonical
from poolwise.metrics import METRICS, Outcomes, Window, common_population, paper_population, summarise
from poolwise.studies.cells import Cell, Parameter
from poolwise.studies.distributions import distributions, memory_over_time, varied
from poolwise.studies.notes import description, notes
from poolwise.studies.resources import resource_frame, watts_and_dollars
from poolwise.studies.store import Store, text
from poolwise.studies.study import Study
from poolwise.units import SECOND


@dataclass(frozen=True)
class CellResult:
    """One run of a study, measured.

    Attributes
    ----------
    parameters : dotted path -> value as written, of what the study varies
    seed : of this run
    key : names the cell's files
    metrics : name -> value, the names of `poolwise.metrics.METRICS`
    jobs : jobs of the workload
    excluded, repaired : reason -> rows of the trace that were left out or changed
    rejected : reason -> jobs that can never run on this machine
    waiting : jobs that never started
    engine : which engine ran it
    watts, dollars : mean power and purchase price of the machine, NaN where nothing says
    """

    parameters: Mapping[str, Parameter]
    seed: int
    key: str
    metrics: Mapping[str, float]
    jobs: int
    excluded: Mapping[str, int]
    repaired: Mapping[str, int]
    rejected: Mapping[str, int]
    waiting: int
    engine: str
    watts: float
    dollars: float


@dataclass(frozen=True, eq=False)
class StudyResult:
    """All cells of a study, measured on the same jobs.

    Attributes
    ----------
    study : what was asked
    folder : where the cells and results stand
    cells : one a cell of the study, in its order
    facts : cell key -> what its simulation left behind beside the outcomes, baselines included
    """

    study: Study
    folder: Path
    cells: tuple[CellResult, ...]
    facts: Mapping[str, Json] = field(repr=False)
    _runs: _Runs = field(repr=False)

    def outcomes(self, cell: CellResult) -> Outcomes:
        """What became of every job in a cell."""
        return self._runs.outcomes(self._cell(cell))

    def baseline(self, cell: CellResult) -> Outcomes:
        """What became of every job under FCFS without backfilling on the same machine; needs `measure.baseline`."""
        return self._runs.outcomes(self._cell(cell).baseline())

    def memory_baseline(self, cell: CellResult) -> Outcomes | None:
        """What became of every job on the machine of `measure.memory_baseline`; None if there is none."""
        there = self.study.memory_baseline(self._cell(cell))
        return None if there is None else self._runs.outcomes(there)

    def window(self, cell: CellResult) -> Window:
        """Time in which throughput and utilisation of a cell were measured."""
        return Window.of(self.outcomes(cell), self._cell(cell).warm_up)

    def population(self, cell: CellResult) -> BoolArray:
        """(n_job,) jobs on which a cell was measured."""
        return self._runs.population(self._cell(cell))

    def frame(self) -> pl.DataFrame:
        """One row a cell: what was varied, seed, counts, metrics."""
        columns: dict[str, Any] = varied(self.study, self.cells)
        for name in ("seed", "key", "engine", "jobs"):
            columns[name] = [getattr(c, name) for c in self.cells]
        for name in ("excluded", "repaired", "rejected"):
            columns[name] = [sum(getattr(c, name).values()) for c in self.cells]
        columns["waiting"] = [c.waiting for c in self.cells]
        columns["rejected_reasons"] = [canonical(dict(c.rejected)) for c in self.cells]
        for name in METRICS:
            columns[name] = [float(c.metrics[name]) for c in self.cells]
        return pl.DataFrame(columns)

    def notes(self) -> list[str]:
        """Sentences that a reader of the results must know."""
        return notes(self)

    def description(self) -> list[tuple[str, str]]:
        """What was run, as (name, value) pairs for the eye."""
        return description(self)

    def provenance(self) -> Json:
        """Where the results come from: version, command, hashes of all inputs, seeds."""
        traces = {Path(cell.trace.path).name: cell.trace.sha256 for cell in self.study.cells}
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

    def write(self) -> None:
        """Write the tables and provenance.json, each whole or not at all."""
        frame, buffer = self.frame(), io.BytesIO()
        frame.write_parquet(buffer, compression="zstd")
        write_whole(self.folder / "results.parquet", buffer.getvalue())
        write_whole(self.folder / "results.csv", frame.write_csv().encode())
        write_whole(self.folder / "distributions.csv", distributions(self).write_csv().encode())
        write_whole(self.folder / "memory_over_time.csv", memory_over_time(self).write_csv().encode())
        if (used := resource_frame(self)) is not None:
            write_whole(self.folder / "resources.csv", used.write_csv().encode())
        write_whole(self.folder / "provenance.json", text(self.provenance()))

    def _cell(self, result: CellResult) -> Cell:
        return next(cell for cell in self.study.cells if cell.key == result.key)

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


class _Runs:
    """Outcomes of the cells, read once, and the jobs that are compared."""

    def __init__(self, study: Study, store: Store) -> None:
        self._study, self._store = study, store
        self._outcomes: dict[str, Outcomes] = {}
        self._common: dict[str, BoolArray] = {}

    def outcomes(self, cell: Cell) -> Outcomes:
        if cell.key not in self._outcomes:
            self._outcomes[cell.key] = self._store.outcomes(cell)
        return self._outcomes[cell.key]

    def population(self, cell: Cell) -> BoolArray:
        """(n_job,) jobs that every cell on the same workload ran, or the paper's rule for one cell."""
        if self._study.measure.population == "paper":
            return paper_population(self.outcomes(cell), cell.warm_up)
        workload = canonical(cell.trace.content())
        if workload not in self._common:
            together = [c for c in self._study.cells if canonical(c.trace.content()) == workload]
            self._common[workload] = common_population([self.outcomes(c) for c in together], cell.warm_up)
        return self._common[workload]


def measure(study: Study, store: Store) -> StudyResult:
    """Measure all cells of a study that has run; raises InputError if a cell is missing."""
    runs = _Runs(study, store)
    facts = {cell.key: store.facts(cell) or {} for cell in study.runs}
    metrics = {cell.key: _measured(study, cell, runs) for cell in {cell.key: cell for cell in study.cells}.values()}
    cells = tuple(_told(cell, metrics[cell.key], facts[cell.key]) for cell in study.cells)
    return StudyResult(study, store.folder, cells, facts, runs)


def _measured(study: Study, cell: Cell, runs: _Runs) -> Mapping[str, float]:
    outcomes = runs.outcomes(cell)
    there = study.memory_baseline(cell)
    return summarise(
        outcomes,
        warm_up=cell.warm_up,
        population=runs.population(cell),
        window=Window.of(outcomes, cell.warm_up),
        baseline=runs.outcomes(cell.baseline()) if study.measure.baseline else None,
        memory_baseline=None if there is None else runs.outcomes(there),
        tau_s=study.measure.tau / SECOND,
        dollars_per_gb=study.measure.dollars_per_gb,
    )


def _told(cell: Cell, metrics: Mapping[str, float], facts: Json) -> CellResult:
    counts = {name: facts[name] for name in ("jobs", "excluded", "repaired", "rejected", "waiting", "engine")}
    watts, dollars = watts_and_dollars(facts, cell)
    return CellResult(cell.parameters, cell.seed, cell.key, metrics, **counts, watts=watts, dollars=dollars)
