"""State directories: snapshots of a running machine as folders of plain files.

state.toml contains the time and the source, and machine.toml the machine. running.csv and waiting.csv list the jobs with the
columns of a job table (`traces.table`), and for running jobs also the start and the resources that they hold. A study.toml is
optional.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tomli_w
from numpy.typing import NDArray
from pydantic import Field

from poolwise.arrays import IntArray
from poolwise.atomic_write import sync_folder, write_whole
from poolwise.errors import InputError, UnknownNameError
from poolwise.files.document import Document
from poolwise.files.fields import Count, Section
from poolwise.files.machine import load_machine
from poolwise.files.machine_formats.owners import owner_tables
from poolwise.files.validation import validate
from poolwise.model import JobTable, Machine, Placement
from poolwise.model.schedule import owners_text
from poolwise.model.state import InitialRun, MachineState
from poolwise.quantities import format_count
from poolwise.traces.table import job_columns, read_job_columns
from poolwise.traces.table_checks import check_unique, require
from poolwise.traces.table_columns import Source, columns_of_csv, csv_text

STATE, MACHINE, RUNNING, WAITING = "state.toml", "machine.toml", "running.csv", "waiting.csv"
FILES = (STATE, MACHINE, RUNNING, WAITING)
STUDY = "study.toml"
"""Study of the state, for `poolwise run FOLDER`."""
_NAME, _START, _PLACEMENT, _DRAW = "name", "start_ns", "placement", "draw"
_STATE_COLUMNS = (_NAME, _START, _PLACEMENT, _DRAW)
_SEPARATORS = (";", ":", "=")


class StateFile(Section):
    """The state.toml of a state directory."""

    version: Annotated[Literal[1], Field(description="version of the file format")]
    origin: str = Field(description="time 0, the origin of all times (UTC): 2026-11-22T18:00:00Z")
    now: str = Field(description="time of the snapshot (UTC)")
    source: str = Field(default="", description="source of the snapshot")
    scheduler: str = Field(default="", description="scheduler file or catalog:NAME in use at the source, if known")
    named: bool = Field(default=False, description="whether jobs have names in addition to ids")
    running: Count = Field(description="number of rows in running.csv")
    waiting: Count = Field(description="number of rows in waiting.csv")


def is_state(path: Path) -> bool:
    """Return whether a path is a state directory."""
    return (path / STATE).is_file()


def write_state(state: MachineState, folder: Path, study: Mapping[str, Any] | None = None) -> None:
    """Write a state directory atomically.

    An existing state directory is replaced, but its study.toml is kept. If it has no study.toml, the tables in `study`, if
    given, are written as one. Raises InputError if the path is anything else.
    """
    if folder.exists() and not is_state(folder):
        raise InputError("exists and is not a state directory", file=folder, remedy="choose a path that does not exist")
    jobs, running = state.jobs, [run.job for run in state.running]
    facts = {
        "version": 1,
        "origin": iso_time(jobs.epoch),
        "now": iso_time(jobs.epoch + state.now),
        "source": state.source,
        "scheduler": state.scheduler,
        "named": jobs.named,
        "running": len(running),
        "waiting": len(state.waiting),
    }
    starts = np.array([run.start for run in state.running], dtype=np.int64)
    places = np.array([_placement_text(state.machine, run.placement) for run in state.running], dtype=np.str_)
    tables = {
        RUNNING: {**_columns(jobs, np.array(running, dtype=np.int64)), _START: starts, _PLACEMENT: places},
        WAITING: _columns(jobs, state.waiting),
    }
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        for name, columns in tables.items():
            write_whole(draft / name, csv_text(columns).encode())
        write_whole(draft / MACHINE, tomli_w.dumps(owner_tables(state.machine)).encode())
        write_whole(draft / STATE, tomli_w.dumps(facts).encode())
        if (folder / STUDY).is_file():
            write_whole(draft / STUDY, (folder / STUDY).read_bytes())
        elif study is not None:
            write_whole(draft / STUDY, tomli_w.dumps(study).encode())
        draft.chmod(0o755)
        _replace(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _replace(draft: Path, folder: Path) -> None:
    """Rename a folder; an existing target is moved aside first and removed last."""
    if folder.exists():
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
        folder.replace(aside)
        draft.replace(folder)
        shutil.rmtree(aside)
    else:
        draft.replace(folder)
    sync_folder(folder.parent)


def _columns(jobs: JobTable, rows: IntArray) -> dict[str, NDArray[Any]]:
    part = jobs.taken(rows)
    columns = {**job_columns(part, _STATE_COLUMNS), _DRAW: part.draw}
    if part.named:
        columns = {_NAME: np.array([part.name(row) for row in range(len(part))], dtype=np.str_), **columns}
    return columns


def read_state(folder: Path) -> MachineState:
    """Read a state directory; raises InputError with file, line, field and remedy."""
    if not is_state(folder):
        remedy = "give the folder that `poolwise snapshot ... --out` wrote"
        raise InputError(f"not a state directory: {STATE} is missing", file=folder, remedy=remedy)
    document = Document.read(folder / STATE)
    facts = validate(StateFile, document)
    origin, now = (_instant(document, name, getattr(facts, name)) for name in ("origin", "now"))
    machine = load_machine(folder / MACHINE)
    tables, starts, places = [], np.zeros(0, dtype=np.int64), list[Placement]()
    if facts.running:
        source = _source(folder / RUNNING, facts.running, facts.named)
        require(source, (_START, _PLACEMENT))
        starts, texts = source.wholes(_START), source.texts(_PLACEMENT).tolist()
        places = [_placement(machine, text, source, row) for row, text in enumerate(texts)]
        tables.append(_jobs(source, facts.named))
    if facts.waiting:
        source = _source(folder / WAITING, facts.waiting, facts.named)
        tables.append(_jobs(source, facts.named))
        _check_disjoint(tables, source, facts.named)
    jobs = _concatenated(tables, origin)
    runs = zip(range(facts.running), starts.tolist(), places, strict=True)
    try:
        return MachineState(
            machine,
            jobs,
            now - origin,
            [InitialRun(*run) for run in runs],
            np.arange(facts.running, len(jobs), dtype=np.int64),
            facts.source,
            facts.scheduler,
        )
    except InputError as error:
        raise InputError(error.message, file=folder, field=error.field, remedy=error.remedy) from error


def _source(path: Path, rows: int, named: bool) -> Source:
    source = columns_of_csv(path)
    if len(source) != rows:
        problem = f"{format_count(len(source), 'row')}, but {STATE} states {rows}"
        raise InputError(problem, file=path, remedy="take the snapshot again")
    require(source, ("id", "submit_ns", "requested_ns", "tasks", *((_NAME,) if named else ())))
    return source


def _jobs(source: Source, named: bool) -> JobTable:
    whole, requested, attributes = read_job_columns(source, _STATE_COLUMNS)
    if named:
        _check_names(source)
    else:
        check_unique(source, whole["id"], "id")
    return JobTable(
        whole["id"],
        whole["submit_ns"],
        whole["requested_ns"],
        whole["tasks"],
        requested,
        attributes,
        draw=source.wholes(_DRAW) if _DRAW in source.names else None,
        name=source.texts(_NAME).tolist() if named else None,
    )


def _check_names(source: Source) -> None:
    """Raise InputError if two rows have the same name; named jobs are identified by name, not by id."""
    first: dict[str, int] = {}
    for row, name in enumerate(source.texts(_NAME).tolist()):
        if first.setdefault(name, row) != row:
            problem = f"job {name} is already in {source.location(first[name])}"
            raise source.error(row, _NAME, problem, "keep one row per job")


def _check_disjoint(tables: list[JobTable], waiting: Source, named: bool) -> None:
    """Raise InputError if a job is both running and waiting, because `--job` and reports identify jobs by name or id."""
    running = {tables[0].name(row) for row in range(len(tables[0]))} if len(tables) > 1 else set()
    for row in range(len(tables[-1])):
        if (name := tables[-1].name(row)) in running:
            problem = f"job {name} is also in {RUNNING}"
            raise waiting.error(row, _NAME if named else "id", problem, "keep one row per job")


def _concatenated(tables: list[JobTable], origin: int) -> JobTable:
    none = np.zeros(0, dtype=np.int64)
    if not tables:
        return JobTable(none, none, none, none, {}, {}, epoch=origin)
    first, *more = tables
    for table in more:
        try:
            first.append(table)
        except ValueError as error:
            remedy = "take the snapshot again"
            raise InputError(f"{RUNNING} and {WAITING} have different columns: {error}", file=WAITING, remedy=remedy) from error
    first.epoch = origin
    return first


# Placements and instants


def _placement_text(machine: Machine, placement: Placement) -> str:
    """Write a placement as `owners_text` does; raises InputError for names that contain a separator."""
    for owner, resource in zip(placement.owner.tolist(), placement.resource.tolist(), strict=True):
        for word in (machine.owners[owner], machine.resources[resource]):
            if any(mark in word for mark in _SEPARATORS):
                problem = f"the name '{word}' contains one of the separators {' '.join(_SEPARATORS)}"
                raise InputError(problem, field="name", remedy="rename it")
    return owners_text(machine, ((owner, resource, amount) for _, owner, resource, amount in placement.rows()))


def _placement(machine: Machine, text: str, source: Source, row: int) -> Placement:
    rows = []
    for part in text.split(";"):
        owner, *amounts = part.split(":")
        for text_amount in amounts:
            resource, _, amount = text_amount.partition("=")
            try:
                rows.append((0, machine.owner(owner), machine.resource(resource), _parse_amount(amount)))
            except UnknownNameError as error:
                raise source.error(row, _PLACEMENT, error.message, error.remedy or "") from error
            except ValueError as error:
                raise source.error(row, _PLACEMENT, str(error), "write OWNER:RESOURCE=AMOUNT;...") from error
    if not rows:
        raise source.error(row, _PLACEMENT, f"'{text}' is an empty placement", "write OWNER:RESOURCE=AMOUNT;...")
    return Placement.of(rows)


def _parse_amount(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"'{text}' is not a valid amount")
    return int(text)


def iso_time(ns: int) -> str:
    """Format ns since 1970 as 2026-11-22T18:00:00.000000000Z."""
    return f"{np.datetime64(ns, 'ns')}Z"


def _instant(document: Document, field: str, text: str) -> int:
    try:
        if not text.endswith("Z"):
            raise ValueError("the time is not in UTC")
        return int(np.datetime64(text[:-1], "ns").astype(np.int64))
    except ValueError as error:
        raise document.error((field,), str(error), "write it as 2026-11-22T18:00:00Z") from error
