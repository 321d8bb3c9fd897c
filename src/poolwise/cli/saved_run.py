"""Saved runs: select one run in the results of a study, or read the run that a provenance file describes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from poolwise.errors import InputError
from poolwise.quantities import format_count

if TYPE_CHECKING:
    from poolwise.files.component import Component
    from poolwise.studies.cells import Cell
    from poolwise.studies.description import RecordedRun

SHOWN = 12
"""Maximum number of runs that an error lists."""


R = TypeVar("R", "Cell", "RecordedRun")


def run_in_folder(folder: Path, selection: Sequence[str]) -> tuple[str, Cell]:
    """Return the name of the study whose results a folder holds, and the selected run, ready to be simulated again.

    Raises InputError if another version of Poolwise made the results, or if an input file has changed since.
    """
    from poolwise.studies.cells import cell_sources
    from poolwise.studies.description import read_descriptions

    facts = _provenance(folder)
    runs = read_descriptions(folder / "provenance.json")
    if facts.get("sources_sha256") != cell_sources():
        remedy = "run the study again with this version"
        raise InputError("the results were made by another version of Poolwise", file=folder, remedy=remedy)
    return str(facts.get("study")), _check_saved(choose(runs, folder, selection).cell(), folder)


def run_of_study(folder: Path, study: str, settings: Sequence[Any], selection: Sequence[str]) -> tuple[str, Cell]:
    """Return the name of a study and one of its runs, from a folder that several studies wrote to.

    Raises InputError if the folder does not hold that run.
    """
    from poolwise import studies

    _provenance(folder)
    loaded = studies.load(study, dict(settings))
    return loaded.name, _check_saved(choose(loaded.cells, folder, selection), folder)


def simulated_run(file: Path) -> RecordedRun | None:
    """Return the run from which `poolwise simulate` wrote a file; None if the file has no provenance."""
    from poolwise.studies.description import read_descriptions

    record = _provenance_of(file)
    return read_descriptions(record)[0] if record.is_file() else None


def _provenance_of(file: Path) -> Path:
    """Return the path of the provenance file of a file."""
    return file.with_name(f"{file.name}.provenance.json")


def read_recorded_run(file: Path, settings: Sequence[Any]) -> tuple[Cell, tuple[Component, ...]]:
    """Return the run that a provenance file describes, with some values replaced, and its additional metrics.

    Raises InputError as `RecordedRun.cell`.
    """
    from poolwise.studies.description import read_descriptions

    record = _provenance_of(file)
    if record.is_file():
        raise InputError("this is the output of a run, not its description", file=file, remedy=f"give {record.name} instead")
    if not file.is_file():
        raise InputError("no such file", file=file, remedy="give FILE.provenance.json of an earlier run")
    if file.suffix != ".json":
        remedy = f"give {record.name}, which `poolwise simulate` writes next to it"
        raise InputError("this file does not describe a run", file=file, remedy=remedy)
    runs = read_descriptions(file)
    if len(runs) > 1:
        raise InputError(f"the file describes {len(runs)} runs", file=file, remedy="give the provenance of a single run")
    return runs[0].cell(dict(settings)), runs[0].metrics


def check_recorded(file: Path, job: int, until: int, started: bool) -> None:
    """Raise InputError unless the job's last start in a schedule of `poolwise simulate` is at `until` (ns)."""
    import polars as pl

    from poolwise.traces.parquet import read_parquet

    if file.suffix not in (".csv", ".parquet"):
        return  # a timeline
    frame = pl.read_csv(file) if file.suffix == ".csv" else read_parquet(file)[0]
    starts: list[int] = frame.filter(pl.col("id") == job)["start_ns"].to_list()
    if starts and (max(starts) != until or not started):
        problem = f"job {job} is recorded to start at {max(starts)} ns, but starts at {until} ns when simulated again"
        raise InputError(problem, file=file, remedy="simulate it again with this version of Poolwise")


def choose(runs: Sequence[R], folder: Path, selection: Sequence[str]) -> R:
    """Return the one run that matches all parts of a selection.

    A part is the beginning of a key, PATH=VALUE of a varied parameter (the end of the path suffices), or seed=N. Raises an
    InputError that lists the candidates if no run matches, or several do.
    """
    matching = [run for run in runs if all(_matches(run, text) for text in selection)]
    if len({run.key for run in matching}) == 1:  # rows that differ only in power and prices share a run
        return matching[0]
    candidates = matching or runs
    listed: list[str] = [f"  {run.key[:8]}  {run.label}" for run in candidates[:SHOWN]]
    if len(candidates) > SHOWN:
        listed.append(f"  and {len(candidates) - SHOWN} more")
    problem = f"the results contain {format_count(len(runs), 'cell')}"
    if selection:
        problem = f"{len(matching) or 'no'} cells match {' and '.join(selection)}"
    remedy = "\n".join(["select one by PATH=VALUE or by its key:", *listed])
    raise InputError(problem, file=folder, field="--cell", remedy=remedy)


def _matches(run: Cell | RecordedRun, text: str) -> bool:
    path, equals, value = text.partition("=")
    if not equals:
        return run.key.startswith(text)
    parameters: Mapping[str, object] = {**run.parameters, "seed": run.seed}
    return any((name == path or name.endswith(f".{path}")) and str(parameters[name]) == value for name in parameters)


def _check_saved(cell: Cell, folder: Path) -> Cell:
    """Return the cell; raises InputError unless the folder holds its results."""
    from poolwise.studies.cell_store import CellStore

    if CellStore(folder).facts(cell) is None:
        problem = f"no results for this run ({cell.label}): they came from another version of Poolwise or from other inputs"
        raise InputError(problem, file=folder, remedy="run the study again")
    return cell


def _provenance(folder: Path) -> dict[str, Any]:
    file = folder / "provenance.json"
    remedy = "give a folder that `poolwise run` has written to"
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise InputError("these are not the results of a study", file=file, remedy=remedy) from error
    except ValueError as error:
        raise InputError(f"invalid JSON: {error}", file=file, remedy="run the study again") from error
    return content if isinstance(content, dict) else {}
