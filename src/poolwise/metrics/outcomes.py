"""The outcome of every job: the table from which every metric is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, Schedule
from poolwise.short_repr import short_repr


class Status(IntEnum):
    """The outcome of a job."""

    FINISHED = 0
    REJECTED = 1
    WAITING = 2  # at least one task never started
    LOST = 3  # stopped, or lost with its capacity, and never run again


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Table with one row per job, in the order (submit, id), and the machine facts that metrics divide by.

    Attributes
    ----------
    id : (n_job,) int64
    submit : (n_job,) int64, ns since the beginning of the trace
    start, end : (n_job,) int64, ns: first start and last end of a finished job, -1 for all others
    duration : (n_job,) int64, ns of one task with local memory only
    requested : (n_job,) int64, ns
    nodes : (n_job,) int64, nodes of one task x tasks (a task on a shared node counts as one)
    memory : (n_job,) int64, MiB per node
    nodes_held : (n_job,) float64, whole nodes held between start and end, averaged over that time; 0 for jobs that did not
        finish. Excludes the work of runs that were stopped or lost.
    status : (n_job,) uint8, `Status`
    reason : n_job reasons for rejection, "" if not rejected
    n_nodes : whole nodes of the machine; without whole nodes, the number of its owners that are nodes
    whole_nodes : whether jobs take whole nodes; if not, node and memory utilization are undefined
    local_memory : MiB of local memory per node, the minimum over node types
    node_memory : MiB in all nodes
    pool_memory : MiB in all pools
    first_submit : ns of the first submission (0 without jobs)
    most_local_memory : MiB of local memory of the largest node; None if all have `local_memory`

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], ["1 min", "1 min"])
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(1), engine="reference")
    >>> run.outcomes.start // 10**9
    array([ 0, 60])
    """

    __repr__ = short_repr

    id: IntArray
    submit: IntArray
    start: IntArray
    end: IntArray
    duration: IntArray
    requested: IntArray
    nodes: IntArray
    memory: IntArray
    nodes_held: FloatArray
    status: NDArray[np.uint8]
    reason: tuple[str, ...]
    n_nodes: int
    whole_nodes: bool
    local_memory: int
    node_memory: int
    pool_memory: int
    first_submit: int
    most_local_memory: int | None = None

    def __post_init__(self) -> None:
        n = len(self.id)
        for name in (*_INTEGERS, "nodes_held", "status"):
            column = getattr(self, name)
            if column.shape != (n,):
                raise ValueError(f"column '{name}' has shape {column.shape}, expected ({n},)")
            frozen(column)
        if len(self.reason) != n:
            raise ValueError(f"there are {len(self.reason)} reasons for {n} jobs")
        if not np.array_equal(np.lexsort((self.id, self.submit)), np.arange(n)):
            raise ValueError("rows must be in the order (submit, id)")

    @property
    def nbytes(self) -> int:
        """Memory of the columns in bytes."""
        columns = (self.id, self.submit, self.start, self.end, self.duration, self.requested, self.nodes, self.memory)
        return sum(column.nbytes for column in (*columns, self.nodes_held, self.status)) + 8 * len(self.reason)

    @classmethod
    def of(cls, schedule: Schedule) -> Outcomes:
        """Read the outcomes from a schedule; works for every machine."""
        workload, n = schedule.workload, len(schedule.workload)
        status = np.full(n, Status.LOST, dtype=np.uint8)
        status[schedule.done] = Status.FINISHED
        status[list(schedule.waiting)] = Status.WAITING
        status[list(schedule.rejected)] = Status.REJECTED
        finished = status == Status.FINISHED
        return cls(
            id=workload.id,
            submit=workload.submit,
            start=np.where(finished, schedule.job_start, -1),
            end=np.where(finished, schedule.job_end, -1),
            duration=workload.duration,
            requested=workload.requested,
            nodes=workload.nodes * workload.tasks,
            memory=workload.memory,
            nodes_held=np.where(finished, _nodes_held(schedule), 0.0),
            status=status,
            reason=tuple(schedule.rejected.get(job, "") for job in range(n)),
            **_machine_facts(schedule.machine),
            first_submit=int(workload.submit[0]) if n else 0,
        )

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, facts: Mapping[str, int | bool]) -> Outcomes:
        """Read the frame of `to_frame`, in any row order, and the `facts` written with it.

        Raises InputError for a missing column or fact, an unknown status, an empty cell or a non-numeric column.
        """
        for kind, required, names in (("column", _COLUMNS, frame.columns), ("fact", _FACTS, facts)):
            if missing := [name for name in required if name not in names]:
                raise InputError(
                    f"{kind} '{missing[0]}' is missing", field=missing[0], remedy="write it with Outcomes.to_frame"
                )
        frame = frame.select(_COLUMNS).sort("submit", "id")
        frame = frame.with_columns(pl.col("reason").cast(pl.String).fill_null(""))  # as CSV reads an empty text
        if nulls := [name for name in _COLUMNS if frame[name].null_count()]:
            raise InputError("the column has empty cells", field=nulls[0], remedy="write it with Outcomes.to_frame")
        labels = frame["status"].cast(pl.String)
        if unknown := sorted(set(labels) - set(_LABELS)):
            raise InputError(f"unknown status '{unknown[0]}'", field="status", remedy=f"known: {', '.join(_LABELS)}")
        status = np.array([_LABELS.index(label) for label in labels], dtype=np.uint8)
        numbers: dict[str, Any] = {name: _numbers(frame[name], whole=True) for name in _INTEGERS}
        numbers.update((name, facts[name]) for name in _FACTS)
        numbers["most_local_memory"] = facts.get("most_local_memory")
        numbers["nodes_held"] = _numbers(frame["nodes_held"], whole=False)
        return cls(**numbers, status=status, reason=tuple(frame["reason"]))

    def to_frame(self) -> pl.DataFrame:
        """Return a frame with one row per job and the attributes as columns; write `facts` with it."""
        columns: dict[str, Any] = {name: getattr(self, name) for name in (*_INTEGERS, "nodes_held")}
        columns["status"] = pl.Series([_LABELS[k] for k in self.status.tolist()], dtype=pl.Enum(_LABELS))
        columns["reason"] = pl.Series(self.reason, dtype=pl.String)
        return pl.DataFrame(columns).select(_COLUMNS)

    @property
    def facts(self) -> dict[str, int | bool]:
        """Facts of the machine and the workload that `from_frame` needs in addition to the frame; plain data for JSON."""
        facts = {name: getattr(self, name) for name in _FACTS}
        return facts if self.most_local_memory is None else {**facts, "most_local_memory": self.most_local_memory}

    def __len__(self) -> int:
        return len(self.id)

    @cached_property
    def finished(self) -> BoolArray:
        """(n_job,) jobs that completed all their work."""
        return np.equal(self.status, Status.FINISHED)

    @property
    def unit(self) -> str:
        """Word for the unit that `nodes` counts: "node", or "task" if jobs share nodes."""
        return "node" if self.whole_nodes else "task"

    @property
    def needs_remote_memory(self) -> BoolArray:
        """(n_job,) jobs that request more memory per node than any node has."""
        most = self.local_memory if self.most_local_memory is None else self.most_local_memory
        return np.greater(self.memory, most)

    @property
    def installed_memory(self) -> int:
        """MiB in nodes and pools."""
        return self.node_memory + self.pool_memory

    def rejections(self) -> dict[str, int]:
        """Count rejected jobs by reason."""
        reasons = [self.reason[k] for k in np.flatnonzero(self.status == Status.REJECTED).tolist()]
        return {reason: reasons.count(reason) for reason in sorted(set(reasons))}


_INTEGERS = ("id", "submit", "start", "end", "duration", "requested", "nodes", "memory")
_COLUMNS = (*_INTEGERS, "nodes_held", "status", "reason")
_FACTS = ("n_nodes", "whole_nodes", "local_memory", "node_memory", "pool_memory", "first_submit")
_LABELS = tuple(status.name.lower() for status in Status)


def _numbers(column: pl.Series, *, whole: bool) -> NDArray[Any]:
    if not (column.dtype.is_integer() if whole else column.dtype.is_numeric()):
        problem = f"expected {'integers' if whole else 'numbers'}, got {column.dtype}"
        raise InputError(problem, field=column.name, remedy="write it with Outcomes.to_frame")
    return np.array(column, dtype=np.int64 if whole else np.float64)


def _nodes_held(schedule: Schedule) -> FloatArray:
    """Return the whole nodes held by each job's finished runs, weighted by their shares of the time from start to end."""
    held = np.zeros(len(schedule.workload), dtype=np.float64)
    machine = schedule.machine
    if "nodes" not in machine.resources or not schedule.n_run:
        return held
    rows = (schedule.resource == machine.resource("nodes")) & (machine.kind[schedule.owner] == Kind.NODE)
    run = np.repeat(np.arange(schedule.n_run), np.diff(schedule.offset))
    nodes = np.zeros(schedule.n_run, dtype=np.int64)
    np.add.at(nodes, run[rows], schedule.amount[rows])
    job = schedule.job[schedule.finished]
    span = np.maximum(schedule.job_end - schedule.job_start, 1)[job]
    length = (schedule.end - schedule.start)[schedule.finished]
    np.add.at(held, job, nodes[schedule.finished] * (length / span))
    return held


def _machine_facts(machine: Machine) -> dict[str, Any]:
    """Return the machine facts of `Outcomes`; a shared node has its own memory capacity, and whole nodes have `per_node`."""
    owners = machine.of_kind(Kind.NODE)
    count = machine.capacity[owners, machine.resource("nodes")] if "nodes" in machine.resources else np.zeros_like(owners)
    own = _column(machine, "memory")
    each = machine.per_node.get("memory", np.zeros(machine.n_owner, dtype=np.int64))[owners]
    whole = bool(count.any())
    groups = count > 0 if whole else np.ones(len(owners), dtype=np.bool_)
    per_node = each[groups] if whole else own[owners]
    mixed = len(np.unique(per_node)) > 1
    return {
        "n_nodes": int(count.sum()) if whole else len(owners),
        "whole_nodes": whole,
        "local_memory": int(per_node.min()) if len(per_node) else 0,
        "node_memory": int((count * each).sum() + own[owners].sum()),
        "pool_memory": int(own[machine.of_kind(Kind.POOL)].sum()),
        "most_local_memory": int(per_node.max()) if mixed else None,
    }


def _column(machine: Machine, resource: str) -> IntArray:
    if resource not in machine.resources:
        return np.zeros(machine.n_owner, dtype=np.int64)
    return machine.capacity[:, machine.resource(resource)]
