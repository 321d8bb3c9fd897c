"""Reading a trace of any format, cutting a stretch out of it, and saying what is in it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolwise import catalog, registry
from poolwise.arrays import BoolArray
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, Workload
from poolwise.traces.format import TraceFormat
from poolwise.traces.table_columns import is_table
from poolwise.traces.text_files import beginning
from poolwise.units import SECOND

_QUANTILES = {"min": 0.0, "5%": 0.05, "25%": 0.25, "50%": 0.5, "75%": 0.75, "95%": 0.95, "99%": 0.99, "max": 1.0}


def read(path: str | Path, machine: Machine, format: str = "auto", **options: Any) -> Workload:
    """Read a trace for a machine.

    On a machine that has no memory anywhere, such as `Machine.flat`, memory does not matter: the jobs do not ask
    for it, and those that would have are counted as repaired. Raises InputError for a file that cannot be read and for
    options that the format does not have.

    Parameters
    ----------
    path
        A file, or "catalog:NAME" for a shipped trace.
    format
        A registered format, "module:Name" or "file.py:Name"; "auto" asks each registered one whether it knows the file, and
        takes a table that none of them knows for one of "columns".
    options
        Fields of the format, such as `extra_columns=3` for "swf".
    """
    path = catalog.resolve("traces", path)
    workload = choose_format(path, format, **options).read(path, machine)
    return workload if _has_memory(machine) else _without_memory(workload)


def choose_format(path: Path, format: str = "auto", **options: Any) -> TraceFormat:
    """Configure the format of a file; see `read`."""
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="check the path")
    if format == "auto":
        format = "columns" if "map" in options else _recognise(path)
    chosen: TraceFormat = registry.make("formats", format, **options)
    return chosen


def _recognise(path: Path) -> str:
    """Name of the one registered format that knows a file, "columns" for another table; raises InputError otherwise."""
    known = registry.names("formats")
    found = [name for name in known if registry.find("formats", name)().recognises(path)]
    if len(found) == 1:
        return found[0]
    if not found and is_table(beginning(path)):
        return "columns"
    problem = f"the file may be of several formats: {', '.join(found)}" if found else "the file is of no known format"
    raise InputError(problem, file=path, field="format", remedy=f"name the format (--format): {', '.join(found or known)}")


def _has_memory(machine: Machine) -> bool:
    local = machine.per_node.get("memory")
    shared = machine.capacity[:, machine.resource("memory")] if "memory" in machine.resources else np.zeros(0)
    return bool(shared.any()) or (local is not None and bool(local.any()))


def _without_memory(workload: Workload) -> Workload:
    asked = int((workload.memory > 0).sum())
    if not asked:
        return workload
    return replace(
        workload,
        requests={name: column for name, column in workload.requests.items() if name != "memory"},
        repaired={**workload.repaired, "memory left out, since the machine has none": asked},
    )


def stretch(workload: Workload, first: int, jobs: int) -> Workload:
    """Cut out `jobs` rows from row `first` on; time begins with the first of them; ids and counts stay.

    Raises InputError if the workload does not have these rows.
    """
    if first < 0 or jobs < 1 or first + jobs > len(workload):
        raise InputError(
            f"'{workload.name}' has {len(workload)} jobs, not {jobs} from row {first} on",
            field="stretch",
            remedy=f"rows count from 0: first + jobs must be at most {len(workload)}",
        )
    taken = _taken(workload, slice(first, first + jobs))
    return replace(taken, submit=taken.submit - workload.submit[first])


def without(workload: Workload, ids: Collection[int]) -> Workload:
    """Leave out the jobs with some ids; the times of all others stay.

    Raises InputError for ids that no job has, and where no job is left.
    """
    if not ids:
        return workload
    left = ~np.isin(workload.id, list(ids))
    if unknown := sorted(set(ids) - set(workload.id.tolist())):
        problem = f"'{workload.name}' has no job {unknown[0]}"
        raise InputError(problem, field="without", remedy="name jobs by the ids of the workload")
    if not left.any():
        raise InputError("no job is left", field="without", remedy="leave out fewer")
    return _taken(workload, left)


def _taken(workload: Workload, rows: slice | BoolArray) -> Workload:
    return replace(
        workload,
        id=workload.id[rows],
        submit=workload.submit[rows],
        duration=workload.duration[rows],
        requested=workload.requested[rows],
        tasks=workload.tasks[rows],
        requests={name: column[rows] for name, column in workload.requests.items()},
        attributes={name: column[rows] for name, column in workload.attributes.items()},
    )


def info(workload: Workload, machine: Machine | None = None) -> dict[str, Any]:
    """Describe a workload: size, span, quantiles, what was left out; with a machine how much it is asked to do.

    `load` is the node-seconds of the jobs that fit, over those that all nodes offer between the first and the last
    submission: None where all jobs are submitted at once, left out for a machine without whole nodes. `memory_known` is the
    share of jobs whose memory the trace gives; quantiles of memory are per node and of those jobs, those of `requests` (of
    anything else: cores, gpu) per task and of all jobs.
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
    return {
        "machine": machine.name,
        "load": work / offered if offered else None,
        "larger_than_machine": int((~fits).sum()),
    }


def _quantiles(column: NDArray[Any]) -> dict[str, float]:
    """Quantiles that are values of the column (inverse of the empirical distribution); empty for no values."""
    if not len(column):
        return {}
    values = np.quantile(column, list(_QUANTILES.values()), method="inverted_cdf")
    return {name: float(value) for name, value in zip(_QUANTILES, values, strict=True)}
