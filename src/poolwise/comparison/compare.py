"""Comparison of runs, in memory or in files, with each other and with the runs of a study's `[today]`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poolwise.comparison.run_comparison import MOST_RUNS, ComparedOver, Comparison
from poolwise.comparison.saved_run import SavedRun, read_runs
from poolwise.files.component import Component
from poolwise.model import Schedule, Workload
from poolwise.simulation import SimulatedRun
from poolwise.simulation.simulated_run import scheduler_text
from poolwise.studies import CellResult, StudyResult
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell
from poolwise.studies.description import read_descriptions


def compare_with_today(result: StudyResult, cells: Sequence[CellResult]) -> Comparison | None:
    """Compare the cells of one setting, one per seed, with today's configuration.

    Returns None if the study has no `[today]`, or if the two configurations have no jobs in common.
    """
    if not result.study.today:
        return None
    keys = {cell.key for cell in cells}
    chosen = [cell for cell in result.study.cells if cell.key in keys]
    return compare_cells_with_today(chosen, result.study.today, CellStore(result.folder))


def compare_cells_with_today(cells: Sequence[Cell], today: Mapping[str, Cell], store: CellStore) -> Comparison | None:
    """Compare the simulated cells of one setting, one per seed, with those of today's configuration.

    Returns None if they have no jobs in common.
    """
    ours = {cell.seed: store.outcomes(cell) for cell in cells}
    current = {cell.seed: store.outcomes(today[cell.key]) for cell in cells}
    if not all((current[seed].finished & ours[seed].finished).any() for seed in current):
        return None
    first = cells[0]
    label = {path.rpartition(".")[2]: str(value) for path, value in first.parameters.items()} or {"run": "the study's"}
    name = str(today[first.key].parameters["today"])
    return Comparison.of(
        [
            SavedRun({"today": name}, store.folder, current, first.warm_up, False, {}),
            SavedRun(label, store.folder, ours, first.warm_up, False, {}),
        ]
    )


def prepend_today(runs: Sequence[SavedRun]) -> list[SavedRun]:
    """Put the run of today's configuration, if the study has one, before its other runs, unless `MOST_RUNS` is reached."""
    first = _today_of(runs[0]) if runs and len(runs) < MOST_RUNS else None
    return [*runs] if first is None else [first, *runs]


def _today_of(run: SavedRun) -> SavedRun | None:
    """Return the run of today's configuration with the seeds of a study's run, to compare the two; None without a `[today]`."""
    file = run.source / "provenance.json"
    today = json.loads(file.read_bytes()).get("today") if run.records and file.is_file() else None
    if today is None:
        return None
    described = {record.key: record for record in read_descriptions(file, today=True)}
    records = {seed: described[today["of"][record.key]] for seed, record in run.records.items()}
    store = CellStore(run.source)
    outcomes = {seed: store.load(record.key)[1] for seed, record in records.items()}
    name = str(next(iter(records.values())).parameters["today"])
    return SavedRun({"today": name}, run.source, outcomes, run.warm_up, False, {}, records)


@dataclass(frozen=True, eq=False)
class RunInMemory(SavedRun):
    """A simulated run in the form of a saved one; it keeps its workload and schedule, so nothing is simulated again."""

    run: SimulatedRun | None = None

    @classmethod
    def of(cls, run: SimulatedRun) -> RunInMemory:
        """Name a run after its scheduler and machine; names that differ between runs become part of the labels."""
        parameters = {"machine": run.machine.name}
        if run.scheduler is not None:
            parameters["scheduler"] = scheduler_text(run.scheduler)
        return cls(parameters, Path(run.workload.name), {0: run.outcomes}, 0, False, {}, {}, run)

    def workload(self, seed: int) -> Workload:
        """Return the workload of the run."""
        return self._run.workload

    def schedule(self, seed: int) -> Schedule:
        """Return the schedule of the run."""
        return self._run.schedule

    @property
    def _run(self) -> SimulatedRun:
        assert self.run is not None
        return self.run


def compare(*runs: SimulatedRun | str | Path, over: ComparedOver | None = None, metrics: Sequence[str] = ()) -> Comparison:
    """Compare two or more runs of the same jobs with the first of them.

    Parameters
    ----------
    runs
        Runs that `simulate` returned, or references to runs in files: a folder of `poolwise run`, FOLDER:PATH=VALUE,... for
        some of its runs, or a file that `poolwise simulate --schedule` wrote. The same run may be given twice.
    over
        Population of the confidence intervals: "seeds" or "jobs". By default the seeds, if all runs share three or more.
    metrics
        Names of metrics in addition to the standard ones and those that the runs already have.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        There are fewer than two runs, the runs have different jobs, or one cannot be read.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s", "0 s"], ["30 min", "1 min", "2 min"])
    >>> fcfs, sjf = (
    ...     poolwise.simulate(workload, poolwise.Machine.flat(1), order=order, engine="reference") for order in ("fcfs", "sjf")
    ... )
    >>> comparison = poolwise.compare(fcfs, sjf)
    >>> [d.value < d.first for d in comparison.differences if d.metric == "mean_wait_s"]
    [True]
    """
    saved: list[SavedRun] = []
    for run in runs:
        saved += [RunInMemory.of(run)] if isinstance(run, SimulatedRun) else read_runs(str(run))
    if saved and not isinstance(saved[0], RunInMemory):
        saved = prepend_today(saved)
    return Comparison.of(saved, over, [Component(name=name).in_folder("metrics", Path()) for name in metrics])
