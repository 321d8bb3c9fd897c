"""What `poolwise run` left in a folder: the study that it came from, and the cell that is meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poolwise.errors import InputError

if TYPE_CHECKING:
    from poolwise.cli.one_run import OneRun
    from poolwise.studies import Study
    from poolwise.studies.cells import Cell

SHOWN = 12
"""Cells that an error lists."""


def study_of(folder: Path, study: str | None, settings: Sequence[str]) -> Study:
    """Load the study whose results stand in a folder.

    It is found by the command that the folder's provenance.json names, or is given with the settings it was run with.
    Raises InputError where there is no telling, and where the study is another one by now.
    """
    from poolwise import studies
    from poolwise.identity import sources
    from poolwise.studies.study import find, parse_setting

    known = _provenance(folder)
    if study is None:
        study, settings = _asked(known, folder)
        if not find(study).is_file():
            remedy = "name it with --study, and what it was run with by --set"
            raise InputError(f"the study that these results came from is not at {study}", file=folder, remedy=remedy)
    loaded = studies.load(study, dict(parse_setting(text) for text in settings))
    if known.get("sources_sha256") != sources():
        remedy = "run the study again with this one"
        raise InputError("the results were made by another version of Poolwise", file=folder, remedy=remedy)
    if loaded.sha256 != known.get("study_sha256") and not _has_cells(folder, loaded):
        raise InputError(
            f"the study '{study}' is not what these results came from: it has changed, or was run with other settings",
            file=folder,
            remedy="run it again, or name the study with --study and its settings with --set",
        )
    return loaded


def simulated(file: Path) -> OneRun | None:
    """Set up again the run of which `poolwise simulate` wrote a file; None for a file of another origin.

    Raises InputError where an input of that run has changed since, and where it cannot be explained.
    """
    from poolwise.cli.one_run import set_up
    from poolwise.cli.output import provenance
    from poolwise.cli.simulate import simulate

    record = file.with_name(f"{file.name}.provenance.json")
    try:
        known = json.loads(record.read_bytes())
        called = [str(word) for word in known["command"]]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    if called[:2] != ["poolwise", "simulate"]:
        return None
    given = options_of(called[2:], simulate)
    found = set_up(given)
    now = provenance(found.seed, found.files)["inputs"]
    if changed := [name for name in now if known.get("inputs", {}).get(name) != now[name]]:
        problem = f"{', '.join(changed)} changed since the run was simulated"
        raise InputError(problem, file=record, field="inputs", remedy="simulate it again")
    return found


def check_recorded(file: Path, job: int, until: int, started: bool) -> None:
    """Raise InputError unless a schedule that `poolwise simulate` wrote has the last start of a job at `until` ns."""
    import polars as pl

    if file.suffix not in (".csv", ".parquet"):
        return  # a timeline
    frame = pl.read_csv(file) if file.suffix == ".csv" else pl.read_parquet(file)
    starts: list[int] = frame.filter(pl.col("id") == job)["start_ns"].to_list()
    if starts and (max(starts) != until or not started):
        problem = f"job {job} is recorded to start at {max(starts)} ns, its replay says: {until} ns"
        raise InputError(problem, file=file, remedy="simulate it again with this version of Poolwise")


def choose(study: Study, folder: Path, selection: Sequence[str]) -> Cell:
    """Find the one run of a study that is meant.

    `selection` holds beginnings of keys, or PATH=VALUE of what the study varies (the path's end will do), or seed=N. All
    must hold. Raises InputError that lists the cells where none or several fit.
    """
    cells = [cell for cell in study.cells if all(_fits(cell, text) for text in selection)]
    if len({cell.key for cell in cells}) == 1:  # rows that differ in watts and prices alone are one run
        return cells[0]
    listed = [f"  {cell.key[:8]}  {cell.label}" for cell in (cells or study.cells)[:SHOWN]]
    more = len(cells or study.cells) - len(listed)
    raise InputError(
        f"{len(cells) or 'no'} cells fit {' and '.join(selection)}" if selection else f"the results hold {len(cells)} cells",
        file=folder,
        field="--cell",
        remedy="\n".join(["name one by PATH=VALUE or by its key:", *listed, *([f"  and {more} more"] if more > 0 else [])]),
    )


def _fits(cell: Cell, text: str) -> bool:
    path, equals, value = text.partition("=")
    if not equals:
        return cell.key.startswith(text)
    known: Mapping[str, object] = {**cell.parameters, "seed": cell.seed}
    return any((name == path or name.endswith(f".{path}")) and str(known[name]) == value for name in known)


def _provenance(folder: Path) -> dict[str, Any]:
    file = folder / "provenance.json"
    remedy = "give a folder that `poolwise run` has written to"
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError as error:
        raise InputError("these are no results of a study", file=file, remedy=remedy) from error
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=file, remedy="run the study again") from error
    return content if isinstance(content, dict) else {}


def _asked(known: Mapping[str, Any], folder: Path) -> tuple[str, list[str]]:
    """Study and settings of the command that made the results, read by that command's own definition."""
    from poolwise.cli.run import run_study

    called = [str(word) for word in known.get("command", [])]
    if called[:2] != ["poolwise", "run"]:
        raise InputError(
            "the results do not say which study file they came from",
            file=folder / "provenance.json",
            field="command",
            remedy="name it with --study, and what it was run with by --set",
        )
    given = options_of(called[2:], run_study)
    return str(given["study"]), list(given["set_"])


def options_of(words: Sequence[str], command: Callable[..., None]) -> dict[str, Any]:
    """Read the words of a recorded command by the command's own definition, without running it."""
    import typer

    found: dict[str, Any] = {}

    @wraps(command)
    def note(**given: Any) -> None:
        found.update(given)

    reader = typer.Typer(add_completion=False)
    reader.command()(note)
    typer.main.get_command(reader).main(list(words), standalone_mode=False)
    return found


def _has_cells(folder: Path, study: Study) -> bool:
    """Whether all runs of a study stand in a folder that several studies share."""
    from poolwise.studies.simulation import CellStore

    return all(CellStore(folder).facts(cell) is not None for cell in study.runs)
