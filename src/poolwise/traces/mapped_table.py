"""Any table with a row a job, whatever its columns are called: a map says which of them holds what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.registry import register
from poolwise.traces import time_of_day
from poolwise.traces.column_cells import JobCells, tells_unit
from poolwise.traces.column_map import FIELDS, ColumnMap, guess, nearest, parse_map
from poolwise.traces.column_times import read_times
from poolwise.traces.demand import Demand, Request
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST, check_scale, substitute
from poolwise.traces.numbers import round_up
from poolwise.traces.selection import select
from poolwise.traces.table_checks import check_unique
from poolwise.traces.table_columns import Source, table_of
from poolwise.traces.unreadable_rows import read_readable
from poolwise.units import SECOND

_MEMORY = ("memory", "cpu_memory", "job_memory")
_MOST = {"nodes": 2**24, "cores": 2**31, "gpus": 2**24}  # times as many MiB on each they stay below 2**63


@register("formats", "columns")
@dataclass(frozen=True)
class MappedTable(TraceFormat):
    """Any table of jobs, CSV (with commas, semicolons, tabs or bars) or Parquet, whose columns a map names.

    The map is written "submit=submit_time:10s, duration=elapsed:s, memory=mem_gb:GB, id=jobid": field, column, and the unit of
    one in it. Fields are id; submit, start and end (units or ticks since any zero, "date", or a form of strptime such as
    "%d.%m.%Y %H:%M"); wait, duration and requested (units or ticks; 1-02:03:04 needs none); nodes; cores, gpus (of the whole
    job); memory (per node), cpu_memory, job_memory; preceding (the id of a job) and think (how long its user then thinks, units
    or ticks), which only a closed loop reads; user, account, group, partition, queue, qos, constraint. Any other field
    becomes an attribute of that name. "FIELD=" leaves a field out. What the map leaves open is guessed where the
    names of columns are plain, and told: numbers without a unit in time columns count seconds.

    Needed are submit (or start), duration (or start and end), and nodes, cores or gpus. Where nodes are taken whole and the
    table has nodes, a job takes as many of them; else as many as hold its cores and GPUs. Jobs without submit time, runtime or
    processors are left out and counted, rows that cannot be read as well, unless `strict` is set.

    Parameters
    ----------
    map
        Field -> column and unit, as above.
    strict
        Whether a row that cannot be read is an error.
    memory_unknown
        What to do with a job whose memory is unknown or 0: "zero", "exclude", or an amount per node such as "4 GiB".
    memory_scale
        Factor on the memory of every job for which it is known.
    timezone
        Zone of dates that do not tell theirs, such as "Europe/Berlin".
    closed_loop
        Whether a job with a predecessor is submitted when that is over and its user has thought, not when the table says.
    """

    map: str = ""
    strict: bool = False
    memory_unknown: str = "zero"
    memory_scale: float = 1.0
    timezone: str = "UTC"
    closed_loop: bool = False

    def recognises(self, path: Path) -> bool:
        """Never: it is taken for a table that no other format knows."""
        return False

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a table for a machine of whole or of shared nodes."""
        check_scale(self.memory_scale)
        substitute(self.memory_unknown)
        time_of_day.zone(self.timezone)
        given = parse_map(self.map)
        uneven: list[int] = []
        source = table_of(path, None if self.strict else uneven)
        for place in given.values():
            if place.column and place.column not in source.names:
                raise UnknownNameError.of("column", place.column, source.names, file=path, field="map")
        guessed, notes = guess(source.names, given)
        for name in [name for name in guessed if name in _MEMORY and not tells_unit(source, guessed[name])]:
            column = guessed.pop(name).column
            notes.append(f"the column '{column}' was left out, since nothing tells its unit: --map \"{name}={column}:GB\"")
        places = {name: place for name, place in {**guessed, **given}.items() if place.column}
        _require(source, places, notes)
        if guessed:
            written = ", ".join(f"{name}={place}" for name, place in guessed.items())
            notes.insert(0, f'columns were guessed: --map "{written}"')

        def read(rows: Source) -> Workload:
            return self._read(rows, places, given, machine)

        workload, skipped = read_readable(source, read, strict=self.strict)
        if uneven:
            skipped.counts["cannot be read (cells missing or too many)"] = len(uneven)
            skipped.notes.insert(0, f"left out, for instance, line {uneven[0]}: it has not as many cells as the header")
        return replace(
            workload,
            closed_loop=self.closed_loop,
            excluded={**skipped.counts, **workload.excluded},
            notes=(*notes, *workload.notes, *skipped.notes),
            name=path.name.removesuffix(".gz").rpartition(".")[0] or path.name,
        )

    def _read(self, source: Source, places: ColumnMap, given: ColumnMap, machine: Machine) -> Workload:
        cells, notes = JobCells(source, places, time_of_day.zone(self.timezone)), _Notes(given)
        times = read_times(cells)
        counts = {name: cells.counts(name, most) for name, most in _MOST.items() if name in cells}
        reasons = {
            "submit time unknown": ~times.submit.known,
            "runtime unknown or 0": times.duration.ns <= 0,
            "nodes, cores and GPUs unknown or 0": ~np.any([column > 0 for column in counts.values()], axis=0),
        }
        if "nodes" in counts and "nodes" in machine.resources:
            reasons["nodes unknown or 0"] = counts["nodes"] == 0
        memory, per_node = self._memory(cells, counts)
        unknown = substitute(self.memory_unknown)
        if unknown is None:
            reasons["memory unknown or 0"] = memory <= 0
        keep, excluded = select(reasons, source.path, "map the columns that hold submit time, runtime and nodes")
        ids, names = _ids(cells, notes)
        taken = {name: column[keep] for name, column in counts.items()}
        request = _request(taken, memory[keep], per_node, machine)
        known, repaired = memory[keep] > 0, dict(request.repaired)
        asked = dict(request.amounts)
        if unknown is not None and not known.all():
            asked["memory"] = np.where(known, asked["memory"], unknown)
            repaired[f"memory unknown or 0, taken as {self.memory_unknown}"] = int((~known).sum())
        others = {name: cells.numbers_or_texts(name) for name in places if name not in FIELDS}
        texts = {name: cells.texts(name) for name in places if name in FIELDS and FIELDS[name].kind == "text"}
        submit = times.submit.ns[keep]
        return Workload.of(
            submit - submit.min(),
            times.duration.ns[keep],
            id=None if ids is None else ids[keep],
            requested=times.requested[keep],
            tasks=request.tasks,
            requests=asked,
            attributes={
                **{name: column[keep] for name, column in {**others, **texts, **names, **times.attributes}.items()},
                **({name: column[keep] for name, column in _feedback(cells).items()} if self.closed_loop else {}),
                "memory_known": known.astype(np.int64),
            },
            excluded=excluded,
            repaired={**times.repaired(keep), **repaired},
            notes=[*notes.said, *times.notes(keep)],
        )

    def _memory(self, cells: JobCells, counts: Mapping[str, IntArray]) -> tuple[FloatArray, bool]:
        """(n_row,) MiB on each part of a job, 0 where unknown, and whether the table gives it per node."""
        none = np.zeros(len(cells.source), dtype=np.float64)
        found = [name for name in _MEMORY if name in cells]
        if len(found) > 1:
            raise InputError(f"{' and '.join(found)} both give the memory of a job", field="map", remedy=f'add "{found[1]}="')
        if not found:
            return none, True
        name = found[0]
        place = cells.places[name]
        if not tells_unit(cells.source, place):
            remedy = f'--map "{name}={place.column}:GB", or whatever it counts in'
            raise InputError(f"nothing tells the unit of '{place.column}'", file=cells.source.path, field="map", remedy=remedy)
        amount = cells.memory(name) * self.memory_scale
        if name == "cpu_memory":
            if "cores" not in counts:
                raise InputError("memory per CPU needs the number of cores", field="map", remedy='add "cores=COLUMN"')
            amount = amount * counts["cores"]
        parts = np.maximum(counts["nodes"], 1) if "nodes" in counts else np.ones(len(none), dtype=np.int64)
        memory = amount if name == "memory" else amount / parts
        cells.refuse(memory > LARGEST, name, "is more than 2**31 MiB on a node")
        return memory, name == "memory"


@dataclass
class _Notes:
    """What a map has said, and what a reader must be told."""

    given: ColumnMap
    said: list[str] = field(default_factory=list)


def _require(source: Source, places: ColumnMap, notes: list[str]) -> None:
    """Raise InputError, which lists the columns and those that are nearest, where one is missing that a workload needs."""
    lacking = {
        "submit": not {"submit", "start"} & {*places},
        "duration": "duration" not in places and not {"start", "end"} <= {*places},
        "nodes": not {"nodes", "cores", "gpus"} & {*places},
    }
    missing = [name for name, lacks in lacking.items() if lacks]
    if not missing:
        return
    free = [name for name in source.names if name not in {place.column for place in places.values()}]
    near = {name: nearest(name, free) or "COLUMN" for name in missing}
    written = ", ".join(f"{name}={column}" for name, column in near.items())
    doubts = f" ({'; '.join(notes)})" if notes else ""
    raise InputError(
        f"no column is known to hold {' and '.join(missing)}{doubts}; the table has {', '.join(source.names)}",
        file=source.path,
        line=source.header_line,
        field="map",
        remedy=f'name them, and their units where they are not seconds: --map "{written}"',
    )


def _feedback(cells: JobCells) -> dict[str, NDArray[np.generic]]:
    """(n_row,) predecessor of each job, -1 for none, and seconds that its user thinks after that, 0 where unknown."""
    if "preceding" not in cells or "id" not in cells:
        lacking = "preceding" if "id" in cells else "id"
        problem = f"no column is known to hold {lacking}, without which no job follows another"
        remedy = f'name it, --map "{lacking}=COLUMN", or leave closed_loop out'
        raise InputError(problem, file=cells.source.path, line=cells.source.header_line, field="map", remedy=remedy)
    think = cells.lengths("think").ns / SECOND if "think" in cells else np.zeros(len(cells.source))
    return {"preceding": cells.references("preceding"), "think_s": think}


def _ids(cells: JobCells, notes: _Notes) -> tuple[IntArray | None, dict[str, NDArray[np.generic]]]:
    """(n_row,) ids, None to count the rows that are kept; and what jobs are called where that is no number."""
    if "id" not in cells:
        return None, {}
    column, found = cells.places["id"].column, cells.wholes("id")
    if found is not None and int(found.min()) >= 0:
        twice = len(np.unique(found)) < len(found)
        if twice and "id" in notes.given:
            check_unique(cells.source, found, column)
        if not twice:
            return found, {}
    elif "id" in notes.given:
        problem = f"'{column}' does not hold whole numbers from 0 on"
        raise InputError(problem, file=cells.source.path, field="map", remedy='add "id=": jobs count from 1')
    notes.said.append(f"jobs count from 1, since '{column}' does not number them; it is kept as the attribute job_name")
    return None, {"job_name": cells.texts("id")}


def _request(counts: Mapping[str, IntArray], memory: FloatArray, per_node: bool, machine: Machine) -> Request:
    """What jobs ask for: the nodes of the table where nodes are taken whole, else what their cores and GPUs need."""
    mebibytes = round_up(memory).astype(np.int64)
    none = np.zeros(len(memory), dtype=np.int64)
    if "nodes" in counts and "nodes" in machine.resources:
        return Request(none + 1, {"nodes": counts["nodes"], "memory": mebibytes}, {})
    parts = np.maximum(counts.get("nodes", none), 1)
    demand = Demand(parts, counts.get("cores", none) * 1000, memory, counts.get("gpus", none) * 1000)
    request = demand.on(machine)
    if per_node and "nodes" in machine.resources:
        return replace(request, amounts={**request.amounts, "memory": mebibytes})
    return request
