"""Runs saved in files: cells of a study's results, or a schedule that `poolwise simulate` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from poolwise.errors import InputError
from poolwise.files.component import Component
from poolwise.hashing import digest
from poolwise.metrics import Outcomes, Status
from poolwise.model import Schedule, Workload
from poolwise.studies.cell_simulation import simulate_again
from poolwise.studies.cell_store import CellStore
from poolwise.studies.cells import Cell, Parameter, workload_of
from poolwise.studies.description import RecordedRun, read_descriptions
from poolwise.traces.parquet import read_parquet

MAX_LISTED = 12
"""Maximum number of runs that an error lists."""
_TIMES = ("id", "submit_ns", "start_ns", "end_ns")


@dataclass(frozen=True, eq=False)
class SavedRun:
    """One setting under one or more seeds.

    Attributes
    ----------
    parameters : varied parameter -> its value; a parameter is named by the end of its path if that is unique
    source : the folder or file
    outcomes : seed -> outcomes of all jobs
    warm_up : number of jobs, the first submitted, that are not measured
    times_only : whether only the submission, start and end of jobs that ran are known
    inputs : file -> SHA-256
    records : seed -> configuration of the run, if its provenance file exists
    """

    parameters: Mapping[str, str]
    source: Path
    outcomes: Mapping[int, Outcomes]
    warm_up: int
    times_only: bool
    inputs: Mapping[str, str]
    records: Mapping[int, RecordedRun] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[Component, ...]:
        """Metrics that the run requested in addition to the standard ones."""
        return next(iter(self.records.values())).metrics if self.records else ()

    def workload(self, seed: int) -> Workload:
        """Read the jobs as submitted; raise InputError without a provenance file, or if the jobs have changed since."""
        return workload_of(self._cell(seed))

    def schedule(self, seed: int) -> Schedule:
        """Simulate the run again; raise InputError without a provenance file, or if the run differs from the saved one."""
        return simulate_again(self._cell(seed), self.outcomes[seed])

    def with_full_outcomes(self) -> SavedRun:
        """Return the run with complete outcomes; a run with times only is simulated again.

        Raises InputError without a provenance file, or if the simulated times differ from the saved ones.
        """
        if not self.times_only:
            return self
        outcomes = {seed: Outcomes.of(simulate_again(self._cell(seed))) for seed in self.outcomes}
        for seed, complete in outcomes.items():
            saved, ran = self.outcomes[seed], complete.finished
            if not all(np.array_equal(getattr(saved, name), getattr(complete, name)[ran]) for name in ("id", "start", "end")):
                problem = "a metric needs more than the saved times, but a new simulation of the run gives different times"
                raise InputError(problem, file=self.source, field="metrics", remedy="simulate the run again and save it")
        return replace(self, outcomes=outcomes, times_only=False)

    def _cell(self, seed: int) -> Cell:
        if seed not in self.records:
            problem = "a metric needs the configuration of the run, but its provenance file is missing"
            remedy = "give the output of `poolwise run` or `poolwise simulate` together with its provenance file"
            raise InputError(problem, file=self.source, field="metrics", remedy=remedy)
        return self.records[seed].cell()


def read_runs(reference: str) -> list[SavedRun]:
    """Read the runs of a reference: FOLDER, FOLDER:SELECTION or SCHEDULE.csv.

    A selection is a comma-separated list of PATH=VALUE (the end of the path suffices), seed=N or key prefixes; all must match.
    Cells that differ only in the seed form one run. Raises InputError if nothing matches.
    """
    path, selection = _split(reference)
    if path.is_file():
        if selection:
            raise InputError(
                "a file contains one run, so there is nothing to select", file=path, field="RUN", remedy="give FILE alone"
            )
        return [_read_schedule(path)]
    if not path.is_dir():
        raise InputError("no such folder or file", file=path, field="RUN", remedy="give the folder of `poolwise run --out`")
    return _read_folder(path, selection)


def _split(reference: str) -> tuple[Path, list[str]]:
    """Split a reference into path and selection; an existing path that contains a colon takes precedence."""
    if Path(reference).exists() or ":" not in reference:
        return Path(reference), []
    path, _, selection = reference.partition(":")
    return Path(path), [part.strip() for part in selection.split(",") if part.strip()]


def _read_folder(folder: Path, selection: list[str]) -> list[SavedRun]:
    file = folder / "results.parquet"
    try:
        frame, _ = read_parquet(file)
    except FileNotFoundError as error:
        raise InputError(
            "the folder has no study results", file=file, remedy="give the folder of `poolwise run --out`"
        ) from error
    varied = frame.columns[: frame.columns.index("seed")]  # varied parameters are the columns before the seed
    rows = [row for row in frame.iter_rows(named=True) if all(_matches(row, varied, text) for text in selection)]
    if not rows:
        listed = [f"  {row['key'][:8]}  {_label(row, varied)} seed={row['seed']}" for row in frame.iter_rows(named=True)]
        more = [f"  and {len(listed) - MAX_LISTED} more"] if len(listed) > MAX_LISTED else []
        raise InputError(
            f"no run matches '{','.join(selection)}'",
            file=folder,
            field="RUN",
            remedy="\n".join(["available runs:", *listed[:MAX_LISTED], *more]),
        )
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_label(row, varied), []).append(row)
    return [_read_cells(folder, _parameters(cells[0], varied), cells) for cells in groups.values()]


def _matches(row: Mapping[str, Any], varied: list[str], text: str) -> bool:
    path, equals, value = text.partition("=")
    if not equals:
        return str(row["key"]).startswith(text)
    return any((name == path or name.endswith(f".{path}")) and str(row[name]) == value for name in [*varied, "seed"])


def _parameters(row: Mapping[str, Parameter], varied: list[str]) -> dict[str, str]:
    ends = [name.rpartition(".")[2] for name in varied]
    names = [end if ends.count(end) == 1 else name for name, end in zip(varied, ends, strict=True)]
    return {short: str(row[name]) for short, name in zip(names, varied, strict=True)}


def _label(row: Mapping[str, Parameter], varied: list[str]) -> str:
    return " ".join(f"{name}={value}" for name, value in _parameters(row, varied).items())


def _read_cells(folder: Path, parameters: dict[str, str], rows: list[dict[str, Any]]) -> SavedRun:
    outcomes: dict[int, Outcomes] = {}
    store, warm_up, inputs = CellStore(folder), 0, {}
    for row in rows:
        facts, outcomes[int(row["seed"])] = store.load(row["key"])
        warm_up = int(facts["inputs"]["warm_up"])
        inputs[f"{row['key']}.parquet"] = digest(store.read_file(row["key"], "parquet") or b"")
    record_of = {record.key: record for record in _records(folder / "provenance.json")}
    records = {int(row["seed"]): record_of[row["key"]] for row in rows if row["key"] in record_of}
    return SavedRun(parameters, folder, outcomes, warm_up, False, inputs, records)


def _records(file: Path) -> list[RecordedRun]:
    """Read the runs that a provenance file describes; return an empty list if the file is missing."""
    return read_descriptions(file) if file.is_file() else []


def _read_schedule(path: Path) -> SavedRun:
    """Read a schedule as a run with `times_only`; fields that the file lacks (memory, other durations) get empty values."""
    try:
        content = path.read_bytes()
        frame = pl.read_csv(BytesIO(content)) if path.suffix == ".csv" else read_parquet(path)[0]
        frame = frame.select(_TIMES)
    except pl.exceptions.PolarsError as error:
        remedy = "give a file that `poolwise simulate --schedule` wrote"
        raise InputError(f"not a schedule: {str(error).splitlines()[0]}", file=path, field="RUN", remedy=remedy) from error
    if wrong := [name for name in _TIMES if not frame[name].dtype.is_integer() or frame[name].null_count()]:
        problem = "times must be whole numbers of ns"
        raise InputError(problem, file=path, field=wrong[0], remedy="give the output of `poolwise simulate --schedule`")
    if frame["id"].n_unique() < len(frame):  # tasks of a job that ran separately: first start to last end
        frame = frame.group_by("id", "submit_ns").agg(pl.min("start_ns"), pl.max("end_ns"))
    frame = frame.sort("submit_ns", "id")
    columns = {name: np.array(frame[name], dtype=np.int64) for name in _TIMES}
    n, spent = len(frame), columns["end_ns"] - columns["start_ns"]
    outcomes = Outcomes(
        id=columns["id"],
        submit=columns["submit_ns"],
        start=columns["start_ns"],
        end=columns["end_ns"],
        duration=spent,
        requested=spent.copy(),
        nodes=np.ones(n, dtype=np.int64),
        memory=np.zeros(n, dtype=np.int64),
        nodes_held=np.zeros(n),
        status=np.full(n, Status.FINISHED, dtype=np.uint8),
        reason=("",) * n,
        n_nodes=0,
        whole_nodes=False,
        local_memory=0,
        node_memory=0,
        pool_memory=0,
        first_submit=int(columns["submit_ns"][0]) if n else 0,
    )
    records = dict(enumerate(_records(path.with_name(f"{path.name}.provenance.json"))[:1]))
    warm_up = records[0].warm_up if records else 0
    return SavedRun({}, path, {0: outcomes}, warm_up, True, {path.name: digest(content)}, records)
