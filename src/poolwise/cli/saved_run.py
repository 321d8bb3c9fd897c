"""Runs whose results stand in files: which one is meant, and how it came about, as their provenance describes it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.files.component import Component
    from poolwise.studies.cells import Cell
    from poolwise.studies.description import RecordedRun

SHOWN = 12
"""Runs that an error lists."""


class Chosen(Protocol):
    """What runs are chosen by."""

    @property
    def key(self) -> str:
        """Name of the cell's files."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Dotted path -> value, of what the study varied."""
        ...

    @property
    def seed(self) -> int:
        """The seed."""
        ...

    @property
    def label(self) -> str:
        """What messages call it."""
        ...


C = TypeVar("C", bound=Chosen)


def in_folder(folder: Path, selection: Sequence[str]) -> tuple[str, Cell]:
    """Name of the study whose results stand in a folder, and the run of it that a selection means, set up again.

    Raises InputError where the results were made by another version, or from files that have changed since.
    """
    from poolwise.studies.cells import cell_sources
    from poolwise.studies.description import read_descriptions

    known = _provenance(folder)
    runs = read_descriptions(folder / "provenance.json")
    if known.get("sources_sha256") != cell_sources():
        remedy = "run the study again with this one"
        raise InputError("the results were made by another version of Poolwise", file=folder, remedy=remedy)
    return str(known.get("study")), _kept(choose(runs, folder, selection).cell(), folder)


def of_study(folder: Path, study: str, settings: Sequence[str], selection: Sequence[str]) -> tuple[str, Cell]:
    """Name of a study whose results stand in a folder that other studies have written to as well, and one of its runs.

    Raises InputError where the folder does not hold that run.
    """
    from poolwise import studies
    from poolwise.studies.study import parse_setting

    _provenance(folder)
    loaded = studies.load(study, dict(parse_setting(text) for text in settings))
    return loaded.name, _kept(choose(loaded.cells, folder, selection), folder)


def simulated(file: Path) -> RecordedRun | None:
    """Find the description of the run of which `poolwise simulate` wrote a file; None for a file of another origin."""
    from poolwise.studies.description import read_descriptions

    record = _beside(file)
    return read_descriptions(record)[0] if record.is_file() else None


def _beside(file: Path) -> Path:
    """Name of the file that says where a file comes from."""
    return file.with_name(f"{file.name}.provenance.json")


def recorded(file: Path, settings: Sequence[str]) -> tuple[Cell, tuple[Component, ...]]:
    """Set up the run that a provenance file describes, with some values replaced; and what was asked for beside its metrics.

    Raises InputError as `RecordedRun.cell`.
    """
    from poolwise.studies.description import read_descriptions
    from poolwise.studies.study import parse_setting

    record = _beside(file)
    if record.is_file():
        problem = "this file is what a run wrote, not the description of it"
        raise InputError(problem, file=file, field="--run", remedy=f"give {record.name}, which stands beside it")
    if not file.is_file():
        raise InputError("no such file", file=file, field="--run", remedy="give FILE.provenance.json of an earlier run")
    if file.suffix != ".json":
        remedy = f"give {record.name}, which 'poolwise simulate' writes beside it"
        raise InputError("this file does not describe a run", file=file, field="--run", remedy=remedy)
    runs = read_descriptions(file)
    if len(runs) > 1:
        problem = f"the file describes {len(runs)} runs"
        raise InputError(problem, file=file, field="--run", remedy="give the provenance of one run")
    return runs[0].cell(dict(parse_setting(text) for text in settings)), runs[0].metrics


def check_recorded(file: Path, job: int, until: int, started: bool) -> None:
    """Raise InputError unless a schedule that `poolwise simulate` wrote has the last start of a job at `until` ns."""
    import polars as pl

    from poolwise.traces.parquet import read_parquet

    if file.suffix not in (".csv", ".parquet"):
        return  # a timeline
    frame = pl.read_csv(file) if file.suffix == ".csv" else read_parquet(file)[0]
    starts: list[int] = frame.filter(pl.col("id") == job)["start_ns"].to_list()
    if starts and (max(starts) != until or not started):
        problem = f"job {job} is recorded to start at {max(starts)} ns, its replay says: {until} ns"
        raise InputError(problem, file=file, remedy="simulate it again with this version of Poolwise")


def choose(runs: Sequence[C], folder: Path, selection: Sequence[str]) -> C:
    """Find the one run that is meant.

    `selection` holds beginnings of keys, or PATH=VALUE of what the study varies (the path's end will do), or seed=N. All
    must hold. Raises InputError that lists the runs where none or several fit.
    """
    fitting = [run for run in runs if all(_fits(run, text) for text in selection)]
    if len({run.key for run in fitting}) == 1:  # rows that differ in watts and prices alone are one run
        return fitting[0]
    listed = [f"  {run.key[:8]}  {run.label}" for run in (fitting or runs)[:SHOWN]]
    more = len(fitting or runs) - len(listed)
    raise InputError(
        f"{len(fitting) or 'no'} cells fit {' and '.join(selection)}" if selection else f"the results hold {len(runs)} cells",
        file=folder,
        field="--cell",
        remedy="\n".join(["name one by PATH=VALUE or by its key:", *listed, *([f"  and {more} more"] if more > 0 else [])]),
    )


def _fits(run: Chosen, text: str) -> bool:
    path, equals, value = text.partition("=")
    if not equals:
        return run.key.startswith(text)
    known: Mapping[str, object] = {**run.parameters, "seed": run.seed}
    return any((name == path or name.endswith(f".{path}")) and str(known[name]) == value for name in known)


def _kept(cell: Cell, folder: Path) -> Cell:
    """Return the cell if the folder holds its results."""
    from poolwise.studies.cell_store import CellStore

    if CellStore(folder).facts(cell) is None:
        problem = f"there are no results of this run ({cell.label}): it was made by another version, or from other inputs"
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
        raise InputError(f"not JSON: {error}", file=file, remedy="run the study again") from error
    return content if isinstance(content, dict) else {}
