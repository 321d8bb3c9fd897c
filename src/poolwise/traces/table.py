"""Poolwise's own job table, CSV or Parquet: every column of a workload under its name and unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import IntArray
from poolwise.atomic_write import check_writable, write_whole
from poolwise.errors import InputError
from poolwise.model import JobTable, Machine, Workload
from poolwise.registry import register
from poolwise.traces.format import TraceFormat
from poolwise.traces.parquet import parquet_names
from poolwise.traces.table_checks import check_unique, require
from poolwise.traces.table_columns import (
    Source,
    columns_of_csv,
    columns_of_parquet,
    csv_text,
    is_parquet,
    parquet_bytes,
)
from poolwise.traces.text_files import beginning, write_text

_TIMES = ("submit_ns", "duration_ns")
_REQUESTS = {"nodes": "nodes", "memory_mib": "memory"}
_OWN = ("id", *_TIMES, "requested_ns", "tasks", *_REQUESTS)
_ASK, _TEXT = "request.", "text."


@dataclass(frozen=True)
class _Rule:
    """What a column may hold: whole numbers from `least` on."""

    least: int
    remedy: str


_RULES = {
    "id": _Rule(0, "number the jobs with whole numbers from 0 on"),
    "submit_ns": _Rule(0, "count nanoseconds from the beginning of the trace"),
    "duration_ns": _Rule(1, "give nanoseconds, at least 1, or remove the row"),
    "requested_ns": _Rule(1, "give nanoseconds, at least 1"),
    "tasks": _Rule(1, "give at least 1"),
    "nodes": _Rule(1, "give whole nodes, at least 1; leave the column out if jobs share nodes"),
    "memory_mib": _Rule(0, "give MiB per node, 0 for none"),
}
_AMOUNT = _Rule(0, "give a whole number of base units, 0 for none")


@register("formats", "table")
@dataclass(frozen=True)
class TableFormat(TraceFormat):
    """Job table, CSV (plain or gzip) or Parquet: submit_ns, duration_ns, nodes; optionally id, requested_ns, tasks, memory_mib.

    A column "request.X" is what a job asks of resource X in base units, "text.X" an attribute of text, any other column a
    numeric attribute X (such as "u"); an empty cell of an attribute is NaN. Without `id` jobs count from 1, without
    `requested_ns` they ask for their duration. `nodes` may be missing only where jobs ask for something else.
    """

    def recognises(self, path: Path) -> bool:
        """Whether it is Parquet or CSV that has a time column of ours."""
        start = beginning(path)
        if is_parquet(start):
            return any(name in _TIMES for name in parquet_names(path))
        header = start.partition(b"\n")[0].decode("utf-8-sig", "replace")
        return any(word.strip().strip('"') in _TIMES for word in header.split(","))

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a table; what the machine is like does not matter."""
        source = columns_of_parquet(path) if is_parquet(beginning(path, 4)) else columns_of_csv(path)
        _check_header(source)
        whole, asked, attributes = read_job_columns(source)
        if "id" in whole:
            check_unique(source, whole["id"], "id")
        return Workload.of(
            whole["submit_ns"],
            whole["duration_ns"],
            id=whole.get("id"),
            requested=whole.get("requested_ns"),
            tasks=whole.get("tasks", 1),
            requests=asked,
            attributes=attributes,
            excluded=source.counts.get("excluded"),
            repaired=source.counts.get("repaired"),
            name=path.name.removesuffix(".gz").removesuffix(path.suffix if path.suffix != ".gz" else ".csv"),
        )


def read_job_columns(
    source: Source, beside: Collection[str] = ()
) -> tuple[dict[str, IntArray], dict[str, IntArray], dict[str, NDArray[np.generic]]]:
    """Columns of our own by name, requests by resource, and attributes by name; those `beside` are left to the caller.

    Raises InputError for a value that its column may not hold.
    """
    whole = {name: _whole(source, name, _RULES[name]) for name in _OWN if name in source.names}
    asked = {_REQUESTS[name]: whole[name] for name in _REQUESTS if name in whole}
    attributes: dict[str, NDArray[np.generic]] = {}
    for name in source.names:
        if name.startswith(_ASK):
            asked[name.removeprefix(_ASK)] = _whole(source, name, _AMOUNT)
        elif name.startswith(_TEXT):
            attributes[name.removeprefix(_TEXT)] = source.texts(name)
        elif name not in _OWN and name not in beside:
            attributes[name] = source.numbers(name)
    return whole, asked, attributes


def _check_header(source: Source) -> None:
    asks = any(name.startswith(_ASK) for name in source.names)
    require(source, _TIMES if asks else (*_TIMES, "nodes"))
    for request in _REQUESTS.values():
        if _ASK + request in source.names:
            own = next(name for name, r in _REQUESTS.items() if r == request)
            raise InputError(
                f"'{_ASK}{request}' has a name of its own here", file=source.path, field=_ASK + request, remedy=f"call it {own}"
            )


def _whole(source: Source, name: str, rule: _Rule) -> IntArray:
    values = source.wholes(name)
    bad = values < rule.least
    if bad.any():
        row = int(np.argmax(bad))
        raise source.error(row, name, f"{int(values[row])} is below {rule.least}", rule.remedy)
    return values


def write_table(workload: Workload, path: str | Path) -> None:
    """Write a workload as a job table, whole or not at all: ".parquet", ".csv" or ".csv.gz" by the name.

    Parquet also keeps the counts of rows excluded and repaired, which CSV has no place for. Raises InputError for another
    ending, and for an attribute whose name another column has.
    """
    path = Path(path)
    columns = _columns(workload)
    if path.name.endswith(".parquet"):
        counts = {"excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}
        check_writable(path)
        write_whole(path, parquet_bytes(columns, counts))
    elif path.name.endswith((".csv", ".csv.gz")):
        write_text(path, csv_text(columns))
    else:
        raise InputError("a job table is CSV or Parquet", file=path, remedy="end the name in .parquet, .csv or .csv.gz")


def _columns(workload: Workload) -> Mapping[str, NDArray[Any]]:
    columns = job_columns(workload.table, ("duration_ns",))
    return {"id": workload.id, "submit_ns": workload.submit, "duration_ns": workload.duration, **columns}


def job_columns(jobs: JobTable, beside: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Columns of jobs under the names that a job table has; those `beside` are names that the caller uses.

    Raises InputError for an attribute whose name another column has.
    """
    columns: dict[str, NDArray[Any]] = {
        "id": jobs.id,
        "submit_ns": jobs.submit,
        "requested_ns": jobs.requested,
        "tasks": jobs.tasks,
    }
    own = {request: name for name, request in _REQUESTS.items()}
    for request, amounts in jobs.requests.items():
        columns[own.get(request, _ASK + request)] = amounts
    taken = {*columns, *_OWN, *beside}
    for name, values in jobs.attributes.items():
        key = _TEXT + name if values.dtype.kind in "UO" else name
        if key in taken or (key == name and name.startswith((_ASK, _TEXT))):
            raise InputError(f"attribute '{name}' has the name of another column", field=name, remedy="rename the attribute")
        if values.dtype.kind == "f" and bool(np.isinf(values).any()):
            raise InputError(f"attribute '{name}' is infinite somewhere", field=name, remedy="use NaN where there is no value")
        columns[key] = values
    return columns
