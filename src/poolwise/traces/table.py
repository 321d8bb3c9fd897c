"""Trace format of Poolwise's own job table, CSV or Parquet: every column of a workload with its name and unit."""

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
from poolwise.model.exclusive import EXCLUSIVE
from poolwise.registry import register
from poolwise.traces.format import TraceFormat
from poolwise.traces.parquet import parquet_names
from poolwise.traces.table_checks import check_unique, exclusive_flags, require
from poolwise.traces.table_columns import (
    Source,
    columns_of_csv,
    columns_of_parquet,
    csv_text,
    is_parquet,
    parquet_bytes,
)
from poolwise.traces.text_files import beginning, stem, write_text

_TIMES = ("submit_ns", "duration_ns")
_REQUESTS = {"nodes": "nodes", "memory_mib": "memory"}
_OWN = ("id", *_TIMES, "requested_ns", "tasks", *_REQUESTS)
_REQUEST, _TEXT = "request.", "text."


@dataclass(frozen=True)
class _Rule:
    """Constraint on a column: whole numbers of at least `least`."""

    least: int
    remedy: str


_RULES = {
    "id": _Rule(0, "number the jobs with whole numbers of at least 0"),
    "submit_ns": _Rule(0, "count nanoseconds from the beginning of the trace"),
    "duration_ns": _Rule(1, "give at least 1 ns, or remove the row"),
    "requested_ns": _Rule(1, "give at least 1 ns"),
    "tasks": _Rule(1, "give at least 1"),
    "nodes": _Rule(1, "give whole nodes, at least 1; omit the column if jobs share nodes"),
    "memory_mib": _Rule(0, "give MiB per node, 0 for none"),
}
_AMOUNT = _Rule(0, "give a whole number of base units, 0 for none")


@register("formats", "table")
@dataclass(frozen=True)
class TableFormat(TraceFormat):
    """Job table, CSV (plain or gzip) or Parquet: submit_ns, duration_ns, nodes; optionally id, requested_ns, tasks, memory_mib.

    A column "request.X" is a request for resource X in base units, "text.X" a text attribute, and any other column a numeric
    attribute X (such as "u"); an empty cell of an attribute is NaN. `exclusive` (true or false) marks jobs that share their
    nodes with no other job. Without `id`, jobs are numbered from 1; without `requested_ns`, they request their duration.
    `nodes` is optional if jobs request other resources.
    """

    def recognizes(self, path: Path) -> bool:
        """Return whether the file is Parquet or CSV with a time column of this format."""
        start = beginning(path)
        if is_parquet(start):
            return any(name in _TIMES for name in parquet_names(path))
        header = start.partition(b"\n")[0].decode("utf-8-sig", "replace")
        return any(word.strip().strip('"') in _TIMES for word in header.split(","))

    def read(self, path: Path, machine: Machine) -> Workload:
        """Read a table; the machine does not affect the result."""
        source = columns_of_parquet(path) if is_parquet(beginning(path, 4)) else columns_of_csv(path)
        _check_header(source)
        whole, requests, attributes = read_job_columns(source)
        if "id" in whole:
            check_unique(source, whole["id"], "id")
        return Workload.of(
            whole["submit_ns"],
            whole["duration_ns"],
            id=whole.get("id"),
            requested=whole.get("requested_ns"),
            tasks=whole.get("tasks", 1),
            requests=requests,
            attributes=attributes,
            excluded=source.counts.get("excluded"),
            repaired=source.counts.get("repaired"),
            name=stem(path),
        )


def read_job_columns(
    source: Source, ignored: Collection[str] = ()
) -> tuple[dict[str, IntArray], dict[str, IntArray], dict[str, NDArray[np.generic]]]:
    """Read the standard columns by name, requests by resource, and attributes by name, except the `ignored` columns.

    Raises InputError for a value that is not valid in its column.
    """
    whole = {name: _whole(source, name, _RULES[name]) for name in _OWN if name in source.names}
    requests = {_REQUESTS[name]: whole[name] for name in _REQUESTS if name in whole}
    attributes: dict[str, NDArray[np.generic]] = {}
    for name in source.names:
        if name.startswith(_REQUEST):
            requests[name.removeprefix(_REQUEST)] = _whole(source, name, _AMOUNT)
        elif name.startswith(_TEXT):
            attributes[name.removeprefix(_TEXT)] = source.texts(name)
        elif name == EXCLUSIVE:
            attributes[name] = exclusive_flags(source, name)
        elif name not in _OWN and name not in ignored:
            attributes[name] = source.numbers(name)
    return whole, requests, attributes


def _check_header(source: Source) -> None:
    has_requests = any(name.startswith(_REQUEST) for name in source.names)
    require(source, _TIMES if has_requests else (*_TIMES, "nodes"))
    for request in _REQUESTS.values():
        if _REQUEST + request in source.names:
            own = next(name for name, r in _REQUESTS.items() if r == request)
            problem = f"'{_REQUEST}{request}' duplicates a standard column"
            raise InputError(problem, file=source.path, field=_REQUEST + request, remedy=f"name the column {own}")


def _whole(source: Source, name: str, rule: _Rule) -> IntArray:
    values = source.wholes(name)
    bad = values < rule.least
    if bad.any():
        row = int(np.argmax(bad))
        raise source.error(row, name, f"{int(values[row])} is below {rule.least}", rule.remedy)
    return values


def write_table(workload: Workload, path: str | Path) -> None:
    """Write a workload as a job table, atomically; the file name ends in ".parquet", ".csv" or ".csv.gz".

    Parquet also stores the counts of excluded and repaired rows; CSV cannot. Raises InputError for any other file name
    extension, and for an attribute with the name of another column.
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
        raise InputError(
            "a job table must be CSV or Parquet", file=path, remedy="end the file name in .parquet, .csv or .csv.gz"
        )


def _columns(workload: Workload) -> Mapping[str, NDArray[Any]]:
    columns = job_columns(workload.table, ("duration_ns",))
    return {"id": workload.id, "submit_ns": workload.submit, "duration_ns": workload.duration, **columns}


def job_columns(jobs: JobTable, reserved: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Return the columns of jobs under their names in job tables; `reserved` are further names that attributes must not have.

    Raises InputError for an attribute with the name of another column.
    """
    columns: dict[str, NDArray[Any]] = {
        "id": jobs.id,
        "submit_ns": jobs.submit,
        "requested_ns": jobs.requested,
        "tasks": jobs.tasks,
    }
    own = {request: name for name, request in _REQUESTS.items()}
    for request, amounts in jobs.requests.items():
        columns[own.get(request, _REQUEST + request)] = amounts
    taken = {*columns, *_OWN, *reserved}
    for name, values in jobs.attributes.items():
        key = _TEXT + name if values.dtype.kind in "UO" else name
        if key in taken or (key == name and name.startswith((_REQUEST, _TEXT))):
            raise InputError(f"attribute '{name}' has the name of another column", field=name, remedy="rename the attribute")
        if values.dtype.kind == "f" and bool(np.isinf(values).any()):
            raise InputError(f"attribute '{name}' has infinite values", field=name, remedy="use NaN for unknown values")
        columns[key] = values
    return columns
