"""Functions that read a trace of any format, cut a range of jobs from it, and summarize it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolwise import catalog, registry
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, Workload
from poolwise.quantities import SECOND, format_count
from poolwise.traces import time_of_day
from poolwise.traces.format import TraceFormat
from poolwise.traces.only import Filter, from_first_job, keep_only, select_jobs
from poolwise.traces.table_columns import is_table
from poolwise.traces.text_files import beginning

_QUANTILES = {"min": 0.0, "5%": 0.05, "25%": 0.25, "50%": 0.5, "75%": 0.75, "95%": 0.95, "99%": 0.99, "max": 1.0}


def read(
    path: str | Path, machine: Machine, format: str = "auto", *, only: Mapping[str, Filter] | None = None, **options: Any
) -> Workload:
    """Read a trace for a machine.

    On a machine without memory, such as `Machine.flat`, requests for memory are dropped; the jobs are counted as repaired.

    Parameters
    ----------
    path
        File, or "catalog:NAME" for a shipped trace.
    machine
        Machine on which the jobs will run. It determines how many nodes the processors of a log occupy, and which rows are
        excluded.
    format
        Registered format, "module:Name" or "file.py:Name"; "auto" detects it, and reads a table that no format recognizes as
        "columns".
    only
        Jobs to keep: attribute -> a value or a list of values, such as {"partition": ["batch", "gpu"]}; and "from" and "to",
        the submission of the first job and the end of submissions: a date, or a time since the first job ("7 d"). All other
        jobs are counted as excluded.
    options
        Fields of the format, such as `extra_columns=3` for "swf".

    Returns
    -------
    Workload

    Raises
    ------
    TypeError
        The machine is not a Machine.
    InputError
        The file cannot be read, the format does not have an option, or no job has a value in `only`.

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(2, 16, local="64 GiB", pool="1 TiB", cores=32)
    >>> poolwise.read("catalog:example-sacct.txt", machine).name
    'example-sacct'
    >>> month = poolwise.read("catalog:example-sacct.txt", machine, only={"state": "COMPLETED", "from": "2026-03-02"})
    >>> month.excluded["state other than COMPLETED"]
    68
    """
    if not isinstance(machine, Machine):
        raise TypeError(f"read() takes the path first and the machine second; the machine is a {type(machine).__name__}")
    path = catalog.resolve("traces", path)
    workload = read_all(choose_format(path, format, **options), path, machine, only or {})
    return workload if _has_memory(machine) else _without_memory(workload)


def read_all(chosen: TraceFormat, path: Path, machine: Machine, only: Mapping[str, Filter]) -> Workload:
    """Read the jobs that match all filters, in a configured format."""
    workload = chosen.read(path, machine)
    return keep_only(workload, only, path, time_of_day.zone(getattr(chosen, "timezone", "UTC"))) if only else workload


def choose_format(path: Path, format: str = "auto", **options: Any) -> TraceFormat:
    """Configure the format of a file; see `read`."""
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="check the path")
    if format == "auto":
        format = "columns" if "map" in options else _detect_format(path)
    chosen: TraceFormat = registry.make("formats", format, **options)
    return chosen


def _detect_format(path: Path) -> str:
    """Return the only registered format that recognizes a file, or "columns" for another table; raise InputError if none."""
    start = beginning(path)
    if path.is_file() and (path.stat().st_size == 0 or start.isspace()):
        raise InputError("the file is empty", file=path, remedy="give a file with jobs")
    names = registry.names("formats")
    formats = [name for name in names if registry.find("formats", name)().recognizes(path)]
    if len(formats) == 1:
        return formats[0]
    if not formats and is_table(start):
        return "columns"
    problem = f"several formats match the file: {', '.join(formats)}" if formats else "no known format matches the file"
    raise InputError(problem, file=path, field="format", remedy=f"name the format (--format): {', '.join(formats or names)}")


def _has_memory(machine: Machine) -> bool:
    local = machine.per_node.get("memory")
    shared = machine.capacity[:, machine.resource("memory")] if "memory" in machine.resources else np.zeros(0)
    return bool(shared.any()) or (local is not None and bool(local.any()))


def _without_memory(workload: Workload) -> Workload:
    requesting = int((workload.memory > 0).sum())
    if not requesting:
        return workload
    return replace(
        workload,
        requests={name: column for name, column in workload.requests.items() if name != "memory"},
        repaired={**workload.repaired, "memory ignored, because the machine has none": requesting},
    )


def excerpt(workload: Workload, first: int, jobs: int) -> Workload:
    """Return consecutive jobs of a workload; time begins with the first of them.

    Ids are kept, and so are the counts of excluded and repaired rows.

    Parameters
    ----------
    workload
        Workload to take the jobs from.
    first
        Row of the first job, counting from 0.
    jobs
        Number of jobs.

    Returns
    -------
    Workload

    Raises
    ------
    InputError
        The workload does not have these rows.

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "1 min", "2 min"], "1 h")
    >>> poolwise.excerpt(workload, first=1, jobs=2).submit // 10**9
    array([ 0, 60])
    """
    if first < 0 or jobs < 1 or first + jobs > len(workload):
        problem = f"'{workload.name}' has {format_count(len(workload), 'job')}, not {jobs:,} starting at row {first:,}"
        remedy = f"rows are numbered from 0: first + jobs must be at most {len(workload):,}"
        raise InputError(problem, field="excerpt", remedy=remedy)
    subset = select_jobs(workload, slice(first, first + jobs))
    return from_first_job(subset)


def without(workload: Workload, ids: Collection[int]) -> Workload:
    """Remove the jobs with the given ids; the times of all other jobs are unchanged.

    Raises InputError for unknown ids, and if no job remains.
    """
    if not ids:
        return workload
    keep = ~np.isin(workload.id, list(ids))
    if unknown := sorted(set(ids) - set(workload.id.tolist())):
        problem = f"'{workload.name}' has no job {unknown[0]}"
        raise InputError(problem, field="without", remedy="use the job ids of the workload")
    if not keep.any():
        raise InputError("no job remains", field="without", remedy="remove fewer jobs")
    return select_jobs(workload, keep)


def info(workload: Workload, machine: Machine | None = None) -> dict[str, Any]:
    """Summarize a workload: size, span, quantiles, excluded and repaired rows; and, with a machine, the offered load.

    `load` is the node-seconds of the jobs that fit the machine, divided by the node-seconds that it offers between the first
    and the last submission. It is None if all jobs are submitted at once, and is missing for a machine without whole nodes.
    `memory_known` is the share of jobs whose memory the trace contains. Quantiles of memory are per node and cover these jobs;
    quantiles of `requests` (other resources, such as cores and gpu) are per task and cover all jobs.
    """
    known = workload.attributes.get("memory_known", workload.memory > 0).astype(np.bool_)
    content: dict[str, Any] = {
        "name": workload.name,
        "jobs": len(workload),
        "span_s": float(np.ptp(workload.submit)) / SECOND if len(workload) else 0.0,
        "nodes": _quantiles(workload.nodes),
        "runtime_s": _quantiles(workload.duration / SECOND),
        "memory_mib": _quantiles(workload.memory[known]),
        "requests": {
            name: _quantiles(amounts) for name, amounts in workload.requests.items() if name not in ("nodes", "memory")
        },
        "memory_known": float(known.mean()) if len(known) else 0.0,
        "node_seconds": float(workload.node_seconds.sum()),
    }
    if machine is not None:
        content.update(_demand(workload, machine, content["span_s"]))
    return {**content, "excluded": dict(workload.excluded), "repaired": dict(workload.repaired)}


def _demand(workload: Workload, machine: Machine, span_s: float) -> dict[str, Any]:
    if "nodes" not in machine.resources:
        return {"machine": machine.name}
    owners = machine.of_kind(Kind.NODE)
    nodes = int(machine.capacity[owners, machine.resource("nodes")].sum())
    fits = workload.nodes <= nodes
    offered = nodes * span_s
    work = float(workload.node_seconds[fits].sum())
    load = work / offered if offered else None
    return {"machine": machine.name, "load": load, "larger_than_machine": int((~fits).sum())}


def _quantiles(column: NDArray[Any]) -> dict[str, float]:
    """Return quantiles that are values of the column (inverse of the empirical distribution); empty without values."""
    if not len(column):
        return {}
    values = np.quantile(column, list(_QUANTILES.values()), method="inverted_cdf")
    return {name: float(value) for name, value in zip(_QUANTILES, values, strict=True)}
