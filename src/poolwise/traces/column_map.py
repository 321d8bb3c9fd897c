"""Maps from job fields to the columns of a table and their units: parsed from text, or guessed from column names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from poolwise.errors import InputError
from poolwise.model.licenses import LICENSE
from poolwise.quantities import UNITS

CellKind = Literal["whole", "instant", "length", "count", "memory", "text"]


@dataclass(frozen=True)
class ColumnField:
    """A job field that a column of a table may hold, with the type of its cells and common names of the column.

    The names are in lower case without spaces and underscores.
    """

    kind: CellKind
    names: tuple[str, ...]


FIELDS: Mapping[str, ColumnField] = {
    "id": ColumnField("whole", ("id", "job", "jobid", "jobnumber", "jobidraw")),
    "submit": ColumnField(
        "instant",
        ("submit", "submitted", "submission", "submittime", "submissiontime", "submittimestamp", "arrival", "arrivaltime"),
    ),
    "start": ColumnField("instant", ("start", "started", "starttime", "starttimestamp", "begin", "begintime")),
    "end": ColumnField("instant", ("end", "ended", "endtime", "endtimestamp", "finish", "finished", "finishtime")),
    "wait": ColumnField("length", ("wait", "waittime", "waitingtime", "queuetime")),
    "duration": ColumnField("length", ("duration", "runtime", "elapsed", "elapsedtime", "elapsedraw", "wallclocktime")),
    "requested": ColumnField(
        "length",
        ("requested", "requestedtime", "requestedwalltime", "reqtime", "timelimit", "walltimelimit", "wallclocklimit"),
    ),
    "nodes": ColumnField(
        "count", ("nodes", "nnodes", "numnodes", "nodecount", "nodesallocated", "allocatednodes", "allocnodes")
    ),
    "cores": ColumnField(
        "count", ("cores", "ncores", "numcores", "cpus", "ncpus", "numcpus", "processors", "procs", "nprocs", "alloccpus")
    ),
    "gpus": ColumnField("count", ("gpus", "ngpus", "numgpus", "gpucount")),
    "memory": ColumnField("memory", ("memory", "mem", "memorypernode", "mempernode", "nodememory", "maxmemory")),
    "cpu_memory": ColumnField("memory", ("memorypercpu", "mempercpu", "memorypercore", "mempercore", "cpumemory")),
    "job_memory": ColumnField("memory", ("jobmemory", "totalmemory", "memorytotal", "memoryofjob")),
    "preceding": ColumnField("whole", ("preceding", "precedingjob", "predecessor")),
    "think": ColumnField("length", ("think", "thinktime")),
    "user": ColumnField("text", ("user", "username", "userid", "uid")),
    "account": ColumnField("text", ("account", "project")),
    "group": ColumnField("text", ("group", "groupid", "gid")),
    "partition": ColumnField("text", ("partition",)),
    "queue": ColumnField("text", ("queue", "queuename")),
    "qos": ColumnField("text", ("qos",)),
    "constraint": ColumnField("text", ("constraint", "constraints")),
    "exclusive": ColumnField("text", ("exclusive",)),
}  # fmt: skip
"""Known job fields; any other field that a map names becomes an attribute of the jobs."""

_SUFFIXES = {
    "ns": "ns", "us": "us", "ms": "ms", "s": "s", "sec": "s", "secs": "s", "seconds": "s", "min": "min", "mins": "min",
    "minutes": "min", "h": "h", "hr": "h", "hrs": "h", "hours": "h", "d": "d", "days": "d",
    "b": "B", "bytes": "B", "kb": "KB", "mb": "MB", "gb": "GB", "tb": "TB", "kib": "KiB", "mib": "MiB", "gib": "GiB",
    "tib": "TiB",
}  # fmt: skip
"""Last word of a column's name -> the unit that it denotes."""

_PARTS = re.compile(r"[A-Za-z0-9]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PAIR = re.compile(
    r"\s*(?P<field>license/[A-Za-z0-9_.@-]+|[A-Za-z_][A-Za-z0-9_.]*)\s*(?P<equals>=)?"
    r'\s*(?P<column>"[^"]*"\s*|[^,:"]*)(?P<unit>:\s*(?:"[^"]*"|[^,"]*))?\s*(?:,|\Z)'
)
_TICKS = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)?\s*([A-Za-z/]+)")


class MappedColumn(NamedTuple):
    """A column and the unit of its values; the unit is empty if the cells state it, the column if the field is ignored."""

    column: str
    unit: str = ""

    def __str__(self) -> str:
        column = f'"{self.column}"' if re.search(r"[,:]", self.column) else self.column
        unit = f'"{self.unit}"' if re.search(r"[,:]", self.unit) else self.unit
        return f"{column}:{unit}" if unit else column


ColumnMap = Mapping[str, MappedColumn]
"""Field -> column that holds it."""


def parse_map(text: str) -> dict[str, MappedColumn]:
    """Parse a map such as "submit=submit_time:10s, duration=elapsed:s, id=jobid".

    A pair is FIELD=COLUMN or FIELD=COLUMN:UNIT. FIELD:UNIT refers to the column of the same name, and "FIELD=" ignores the
    field. Names that contain commas or colons are enclosed in double quotes. Raises InputError for invalid syntax and for
    units that do not suit the field.
    """
    mapped: dict[str, MappedColumn] = {}
    at, end = 0, len(text.rstrip().rstrip(","))
    while at < end:
        pair = _PAIR.match(text, at)
        if pair is None or (pair["equals"] is None and (pair["unit"] is None or pair["column"].strip())):
            raise InputError(f"'{text[at : at + 60]}' is not FIELD=COLUMN:UNIT", field="map", remedy=_REMEDY)
        name, unit = pair["field"], (pair["unit"] or ":")[1:].strip().strip('"')
        if name in mapped:
            raise InputError(f"'{name}' is mapped twice", field="map", remedy="map each field to one column")
        column = pair["column"].strip().strip('"') if pair["equals"] else name
        check_unit(name, unit)
        mapped[name] = MappedColumn(column, unit)
        at = pair.end()
    return mapped


_REMEDY = 'such as "submit=submit_time:10s, duration=elapsed:s, memory=mem_gb:GB, id=jobid"'


def kind_of_field(name: str) -> CellKind | None:
    """Return the cell type of a field, or None for an attribute."""
    return FIELDS[name].kind if name in FIELDS else None


def check_unit(name: str, unit: str) -> None:
    """Raise InputError if the unit is not valid for the field."""
    kind = kind_of_field(name)
    if not unit or (kind == "instant" and ("%" in unit or unit == "date")) or (kind == "length" and unit == "clock"):
        return
    if kind in ("instant", "length") and _ticks(unit, "time"):
        return
    if kind == "memory" and _ticks(unit, "memory"):
        return
    if kind in ("instant", "length"):
        more = '"date" or a format such as "%d.%m.%Y %H:%M"' if kind == "instant" else '"clock" for 1-02:03:04'
        remedy = f"use ns, us, ms, s, min, h or d, ticks such as 10s, or {more}"
    else:
        remedy = f"use {', '.join(UNITS['memory'])}" if kind == "memory" else "omit the unit"
    raise InputError(f"'{unit}' is not a valid unit for '{name}'", field="map", remedy=remedy)


def _ticks(unit: str, dimension: str) -> float:
    """Return the size of a unit, or of a tick such as 10s, in ns or MiB; 0 if it is not valid."""
    match = _TICKS.fullmatch(unit.strip())
    return float(match[1] or 1) * UNITS[dimension].get(match[2], 0.0) if match else 0.0


def size_of(unit: str, dimension: Literal["time", "memory"]) -> float:
    """Return the size in ns or MiB of a unit that `check_unit` accepts."""
    return _ticks(unit, dimension)


def guess_columns(names: Sequence[str], columns: ColumnMap) -> tuple[dict[str, MappedColumn], list[str]]:
    """Guess the columns of unmapped fields from unambiguous column names, with the unit that the name states, if any.

    If the map names any time field, only missing required ones are guessed, because the table may count in ticks. Also returns
    one sentence for each field that several columns match; such fields stay unmapped.
    """
    taken = {mapped.column for mapped in columns.values()}
    timed = {name for name in columns if kind_of_field(name) in ("instant", "length") and columns[name].column}
    guessed: dict[str, MappedColumn] = {}
    doubts: list[str] = []
    for field_name, field in FIELDS.items():
        if field_name in columns:
            continue
        if timed and field.kind in ("instant", "length") and not _needed(field_name, timed):
            continue
        matches = [mapped for name in names if name not in taken and (mapped := _match(name, field))]
        if len(matches) == 1:
            guessed[field_name] = matches[0]
        elif matches:
            doubts.append(f"several columns match {field_name}: {', '.join(mapped.column for mapped in matches)}")
    guessed |= {name: MappedColumn(name) for name in names if name.startswith(LICENSE) and name not in {*taken, *columns}}
    return guessed, doubts


def _needed(name: str, timed: set[str]) -> bool:
    if name == "submit":
        return not {"submit", "start"} & timed
    return name == "duration" and not ({"duration"} & timed or {"start", "end"} <= timed)


def _match(name: str, field: ColumnField) -> MappedColumn | None:
    """Return the column if it has a common name of the field, with the unit at the end of that name."""
    if _normalized(name) in field.names:
        return MappedColumn(name)
    dimension = "memory" if field.kind == "memory" else "time" if field.kind in ("instant", "length") else None
    for words in (_PARTS.findall(name), _WORDS.findall(name)):
        unit = _SUFFIXES.get(words[-1].lower(), "") if words else ""
        if dimension and unit in UNITS[dimension] and "".join(words[:-1]).lower() in field.names:
            return MappedColumn(name, unit)
    return None


def _normalized(name: str) -> str:
    """Return a column name in lower case, with only its letters and digits."""
    return "".join(_PARTS.findall(name)).lower()


def nearest(field_name: str, names: Sequence[str]) -> str | None:
    """Return the column whose name is most similar to the common names of a field; None if none is similar."""
    normalized = {_normalized(name): name for name in names}
    scores = [
        (difflib.SequenceMatcher(None, common, other).ratio(), name)
        for other, name in normalized.items()
        for common in FIELDS[field_name].names
    ]
    best = max(scores, default=(0.0, ""))
    return best[1] if best[0] >= 0.6 else None
