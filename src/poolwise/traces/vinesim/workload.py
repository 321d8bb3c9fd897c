"""Conversion of tasks to a workload with one row per run of identical tasks of a job."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Machine, TaskGraph, Workload
from poolwise.model.task_graph import PREDECESSORS
from poolwise.performance.affinity import compute_times, rates
from poolwise.performance.transfer import places
from poolwise.traces.vinesim.tasks import FIELDS, TaskList

_COLUMNS = tuple(name for name in FIELDS if name != "parent_job_id")


def workload_of_tasks(tasks: TaskList, machine: Machine, arrivals: IntArray, name: str = "trace") -> Workload:
    """Build the workload of a trace on a machine from `machine_of_units`.

    A row is a run of consecutive tasks of one job with equal fields, so a job with data at several locations has several rows.
    In a task graph, the tasks of a row also wait for the same tasks, and the same tasks wait for them.

    Columns: those of the trace, "parent" (number of the job, from 0, in file order), "parent_job_id", and in a task graph
    "predecessors" (the rows that a row waits for). The duration is that on the fastest unit of the machine.

    Parameters
    ----------
    arrivals
        (n_job,) ns.

    Raises InputError for a task that no unit can run, and for data at a location that is not on the network.
    """
    job = np.cumsum(tasks.first_of_job) - 1
    begins = tasks.first_of_job.copy()
    begins[1:] |= (tasks.table[1:] != tasks.table[:-1]).any(axis=1)
    if tasks.graph is not None:
        begins |= _graph_changes(tasks.graph)
    first = np.flatnonzero(begins)
    counts = np.diff(np.append(first, len(tasks)))
    columns = {field: tasks.column(field)[first] for field in _COLUMNS}
    graph = {} if tasks.graph is None else {PREDECESSORS: _predecessors(tasks.graph, first)}
    _check_places(tasks, machine)
    duration = _fastest(columns["task_type"], columns["operations"], machine)
    no_operations = int(counts[columns["operations"] == 0].sum())
    return Workload.of(
        arrivals[job[first]],
        duration,
        id=np.arange(len(first), dtype=np.int64),
        tasks=counts,
        requests={"slots": np.ones(len(first), dtype=np.int64)},
        attributes={**columns, **graph, "parent": job[first], "parent_job_id": tasks.column("parent_job_id")[first]},
        repaired={"task without operations, set to 1 ns": no_operations} if no_operations else {},
        name=name,
    )


def _graph_changes(graph: TaskGraph) -> BoolArray:
    """Return an (n_task,) mask of the tasks whose predecessors or successors differ from those of the task before."""
    changes = np.zeros(len(graph), dtype=np.bool_)
    changes[:1] = True
    for direction in (graph, graph.reversed):
        offset, before = direction.offset.tolist(), direction.before.tolist()
        for k in range(1, len(graph)):
            changes[k] |= before[offset[k - 1] : offset[k]] != before[offset[k] : offset[k + 1]]
    return changes


def _predecessors(graph: TaskGraph, first: IntArray) -> NDArray[np.object_]:
    """Return the rows that each row waits for, as text, (n_row,); `first` has the first task of each row."""
    row = np.searchsorted(first, graph.before, side="right") - 1
    values = np.empty(len(first), dtype=np.object_)
    for k, task in enumerate(first.tolist()):
        values[k] = ",".join(map(str, np.unique(row[graph.offset[task] : graph.offset[task + 1]]).tolist()))
    return values


def _fastest(kinds: IntArray, operations: IntArray, machine: Machine) -> IntArray:
    """Return the times on the fastest unit, (n_row,) ns."""
    table = rates(machine)
    if not len(table):
        raise InputError(
            f"the units of machine '{machine.name}' have no affinities",
            field="affinity",
            remedy="build it from a deployment and an affinity table, as `poolwise simulate vinesim` does",
        )
    best = table.max(axis=1)
    missing = (kinds >= len(best)) | (best[np.minimum(kinds, len(best) - 1)] <= 0)
    if missing.any():
        kind = int(kinds[int(np.argmax(missing))])
        raise InputError(
            f"no unit of '{machine.name}' can run tasks of type {kind}",
            field="task_type",
            remedy="deploy a unit with an affinity for it, or exclude its jobs",
        )
    return compute_times(operations.astype(np.float64), best[kinds])


def _check_places(tasks: TaskList, machine: Machine) -> None:
    owners_at = places(machine)
    for x, y in tasks.places:
        if (x, y) not in owners_at:
            raise InputError(
                f"data is at x = {x}, y = {y}, which is not on the network",
                field="data_x",
                remedy="build the machine with the locations of the trace's data, as `poolwise simulate vinesim` does",
            )
