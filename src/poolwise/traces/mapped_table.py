"""Trace format for any table with one row per job, whose columns are named by a map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError, UnknownNameError
from poolwise.model import Machine, Workload
from poolwise.model.exclusive import EXCLUSIVE
from poolwise.quantities import SECOND
from poolwise.registry import register
from poolwise.traces import time_of_day
from poolwise.traces.column_cells import JobCells, has_unit
from poolwise.traces.column_map import FIELDS, ColumnMap, guess_columns, nearest, parse_map
from poolwise.traces.column_times import read_times
from poolwise.traces.demand import Demand, Request, recorded_limits
from poolwise.traces.format import TraceFormat
from poolwise.traces.memory import LARGEST, check_memory, with_unknown
from poolwise.traces.numbers import round_up
from poolwise.traces.selection import select
from poolwise.traces.table_checks import check_unique, exclusive_flags
from poolwise.traces.table_columns import Source, table_of
from poolwise.traces.text_files import stem
from poolwise.traces.unreadable_rows import read_readable

_MEMORY = ("memory", "cpu_memory", "job_memory")
_MAX = {"nodes": 2**24, "cores": 2**31, "gpus": 2**24}  # multiplied by the MiB on each, they stay below 2**63


@register("formats", "columns")
@dataclass(frozen=True)
class MappedTable(TraceFormat):
    """Generic job table, CSV (comma, semicolon, tab or bar separated) or Parquet, with a map of its columns.

    The map is written "submit=submit_time:10s, duration=elapsed:s, memory=mem_gb:GB, id=jobid": field, column, and the unit of
    the column's values. Fields are id; submit, start and end (units or ticks since any origin, "date", or a strptime format
    such as "%d.%m.%Y %H:%M"); wait, duration and requested (units or ticks; 1-02:03:04 needs none); nodes; cores and gpus (of
    the whole job); memory (per node), cpu_memory, job_memory; preceding (the id of a job) and think (the user's think time
    after it, units or ticks), which only a closed loop reads; user, account, group, partition, queue, qos, constraint. Any
    other field becomes an attribute of that name. "FIELD=" ignores a field. Unmapped fields are guessed from unambiguous
    column names, and a note lists the guesses. Numbers without a unit in time columns count seconds.

    The table must have submit (or start), duration (or start and end), and nodes, cores or gpus. On a machine that allocates
    whole nodes, a job takes the number of nodes in the table, or else as many as its cores and GPUs need. On shared nodes, it
    takes the number of nodes in the table, by default one, with an equal part of its cores and GPUs on each; it takes more
    nodes if a part has more cores than any node. Jobs without submit time, runtime or processors are excluded and counted. So
    are unreadable rows, unless `strict` is set.

    Parameters
    ----------
    map
        Field -> column and unit, as above.
    strict
        Raise an error for an unreadable row instead of skipping it.
    memory_unknown
        Treatment of jobs whose memory is unknown or 0: "zero", "exclude", or an amount per node such as "4 GiB".
    memory_scale
        Factor applied to known memory.
    timezone
        Time zone of dates without an offset, such as "Europe/Berlin".
    closed_loop
        Submit a job with a predecessor once that job has finished and its user's think time has passed, not at the time in
        the table.
    """

    map: str = ""
    strict: bool = False
    memory_unknown: str = "zero"
    memory_scale: float = 1.0
    timezone: str = "UTC"
    closed_loop: bool = False

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a table for a machine of whole or shared nodes."""
        check_memory(self.memory_scale, self.memory_unknown)
        time_of_day.zone(self.timezone)
        mapping = parse_map(self.map)
        uneven_lines: list[int] = []
        source = table_of(path, None if self.strict else uneven_lines)
        for mapped in mapping.values():
            if mapped.column and mapped.column not in source.names:
                raise UnknownNameError.of("column", mapped.column, source.names, file=path, field="map")
        guessed, notes = guess_columns(source.names, mapping)
        for name in [name for name in guessed if name in _MEMORY and not has_unit(source, guessed[name])]:
            column = guessed.pop(name).column
            notes.append(f"the column '{column}' was ignored, because its unit is unknown: --map \"{name}={column}:GB\"")
        columns = {name: mapped for name, mapped in {**guessed, **mapping}.items() if mapped.column}
        _require(source, columns, notes)
        if guessed:
            written = ", ".join(f"{name}={mapped}" for name, mapped in guessed.items())
            notes.insert(0, f'columns were guessed: --map "{written}"')

        def read(rows: Source) -> Workload:
            return self._read(rows, columns, mapping, machine)

        workload, uneven = read_readable(source, read, strict=self.strict), dict[str, int]()
        if uneven_lines:
            uneven["cannot be read (cells missing or too many)"] = len(uneven_lines)
            notes.append(f"skipped, for example, line {uneven_lines[0]}: its number of cells differs from the header's")
        return replace(
            workload,
            closed_loop=self.closed_loop,
            excluded={**uneven, **workload.excluded},
            notes=(*notes, *workload.notes),
            name=stem(path),
        )

    def _read(self, source: Source, columns: ColumnMap, given: ColumnMap, machine: Machine) -> Workload:
        cells, notes = JobCells(source, columns, time_of_day.zone(self.timezone)), _Notes(given)
        times = read_times(cells)
        counts = {name: cells.counts(name, most) for name, most in _MAX.items() if name in cells}
        reasons = {
            "submit time unknown": ~times.submit.known,
            "runtime unknown or 0": times.duration.ns <= 0,
            "nodes, cores and GPUs unknown or 0": ~np.any([column > 0 for column in counts.values()], axis=0),
        }
        if "nodes" in counts and "nodes" in machine.resources:
            reasons["nodes unknown or 0"] = counts["nodes"] == 0
        memory, per_node = self._memory(cells, counts)
        if self.memory_unknown == "exclude":
            reasons["memory unknown or 0"] = memory <= 0
        keep, excluded = select(reasons, source.path, "map the columns that hold submit time, runtime and nodes")
        ids, names = _ids(cells, notes)
        kept_counts = {name: column[keep] for name, column in counts.items()}
        request = _request(kept_counts, memory[keep], per_node, machine)
        known, repaired = memory[keep] > 0, dict(request.repaired)
        amounts = {**request.amounts, "memory": with_unknown(request.amounts["memory"], known, self.memory_unknown, repaired)}
        others = {name: cells.numbers_or_texts(name) for name in columns if name not in FIELDS}
        texts: dict[str, NDArray[np.generic]] = {
            name: cells.texts(name) for name in columns if name in FIELDS and FIELDS[name].kind == "text"
        }
        if EXCLUSIVE in columns:
            texts[EXCLUSIVE] = exclusive_flags(source, columns[EXCLUSIVE].column)
        submit = times.submit.ns[keep]
        return Workload.of(
            submit - submit.min(),
            times.duration.ns[keep],
            id=None if ids is None else ids[keep],
            requested=times.requested[keep],
            tasks=request.tasks,
            requests=amounts,
            attributes={
                **{name: column[keep] for name, column in {**others, **texts, **names, **times.attributes}.items()},
                **({name: column[keep] for name, column in _feedback(cells).items()} if self.closed_loop else {}),
                **recorded_limits(machine, times.recorded[keep], times.requested[keep]),
                "memory_known": known.astype(np.int64),
            },
            excluded=excluded,
            repaired={**times.repaired(keep), **repaired},
            notes=[*notes.messages, *times.notes(keep)],
            epoch=int(submit.min()) if cells.dated else None,
        )

    def _memory(self, cells: JobCells, counts: Mapping[str, IntArray]) -> tuple[FloatArray, bool]:
        """Return the MiB on each node of a job, (n_row,), 0 where unknown, and whether the table gives memory per node."""
        none = np.zeros(len(cells.source), dtype=np.float64)
        fields = [name for name in _MEMORY if name in cells]
        if len(fields) > 1:
            problem = f"both {' and '.join(fields)} specify the memory of a job"
            raise InputError(problem, field="map", remedy=f'add "{fields[1]}=" to ignore one')
        if not fields:
            return none, True
        name = fields[0]
        mapped = cells.column_map[name]
        if not has_unit(cells.source, mapped):
            remedy = f'state it, such as --map "{name}={mapped.column}:GB"'
            raise InputError(f"the unit of '{mapped.column}' is unknown", file=cells.source.path, field="map", remedy=remedy)
        amount = cells.memory(name) * self.memory_scale
        if name == "cpu_memory":
            if "cores" not in counts:
                raise InputError("memory per CPU requires the number of cores", field="map", remedy='add "cores=COLUMN"')
            amount = amount * counts["cores"]
        parts = np.maximum(counts["nodes"], 1) if "nodes" in counts else np.ones(len(none), dtype=np.int64)
        memory = amount if name == "memory" else amount / parts
        cells.refuse(memory > LARGEST, name, "is more than 2**31 MiB on a node")
        return memory, name == "memory"


@dataclass
class _Notes:
    """The fields that the user mapped, and messages for the user."""

    given: ColumnMap
    messages: list[str] = field(default_factory=list)


def _require(source: Source, columns: ColumnMap, notes: list[str]) -> None:
    """Raise InputError, with the table's columns and the most similar ones, if a required field is not mapped."""
    lacking = {
        "submit": not {"submit", "start"} & {*columns},
        "duration": "duration" not in columns and not {"start", "end"} <= {*columns},
        "nodes": not {"nodes", "cores", "gpus"} & {*columns},
    }
    missing = [name for name, lacks in lacking.items() if lacks]
    if not missing:
        return
    free = [name for name in source.names if name not in {mapped.column for mapped in columns.values()}]
    similar = {name: nearest(name, free) or "COLUMN" for name in missing}
    written = ", ".join(f"{name}={column}" for name, column in similar.items())
    doubts = f" ({'; '.join(notes)})" if notes else ""
    problem = f"no column is mapped to {' or '.join(missing)}{doubts}; the table has {', '.join(source.names)}"
    remedy = f'map them, with units unless they are in seconds: --map "{written}"'
    raise InputError(problem, file=source.path, line=source.header_line, field="map", remedy=remedy)


def _feedback(cells: JobCells) -> dict[str, NDArray[np.generic]]:
    """Return predecessors, -1 for none, and the think times after them in s, 0 where unknown, (n_row,) each."""
    if "preceding" not in cells or "id" not in cells:
        lacking = "preceding" if "id" in cells else "id"
        problem = f"no column is mapped to {lacking}, which closed_loop requires to find each job's predecessor"
        remedy = f'map it, --map "{lacking}=COLUMN", or do not set closed_loop'
        raise InputError(problem, file=cells.source.path, line=cells.source.header_line, field="map", remedy=remedy)
    think = cells.lengths("think").ns / SECOND if "think" in cells else np.zeros(len(cells.source))
    return {"preceding": cells.references("preceding"), "think_s": think}


def _ids(cells: JobCells, notes: _Notes) -> tuple[IntArray | None, dict[str, NDArray[np.generic]]]:
    """Return ids, (n_row,), or None to number the kept rows; and the attribute job_name if the ids are not unique numbers."""
    if "id" not in cells:
        return None, {}
    column, ids = cells.column_map["id"].column, cells.wholes("id")
    if ids is not None and int(ids.min()) >= 0:
        twice = len(np.unique(ids)) < len(ids)
        if twice and "id" in notes.given:
            check_unique(cells.source, ids, column)
        if not twice:
            return ids, {}
    elif "id" in notes.given:
        problem = f"'{column}' does not contain whole numbers of at least 0"
        raise InputError(problem, file=cells.source.path, field="map", remedy='add "id=" to number the jobs from 1')
    notes.messages.append(
        f"jobs are numbered from 1, because '{column}' contains no job numbers; it becomes the attribute job_name"
    )
    return None, {"job_name": cells.texts("id")}


def _request(counts: Mapping[str, IntArray], memory: FloatArray, per_node: bool, machine: Machine) -> Request:
    """Return the requests of jobs: on machines with whole nodes, the table's nodes, else as many as cores and GPUs need."""
    mebibytes = round_up(memory).astype(np.int64)
    none = np.zeros(len(memory), dtype=np.int64)
    if "nodes" in counts and "nodes" in machine.resources:
        return Request(none + 1, {"nodes": counts["nodes"], "memory": mebibytes}, {})
    parts = np.maximum(counts.get("nodes", none), 1)
    demand = Demand(parts, counts.get("cores", none) * 1000, memory, counts.get("gpus", none) * 1000)
    request = demand.to_request(machine, separate_nodes=True)
    if per_node and "nodes" in machine.resources:
        return replace(request, amounts={**request.amounts, "memory": mebibytes})
    return request
