"""Workloads: jobs as columns, durations included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.model.html import html_table
from poolwise.model.job_table import Job, JobTable
from poolwise.model.machine_builder import DIMENSIONS
from poolwise.model.memory_use import MemoryUse
from poolwise.model.task_graph import PREDECESSORS, TaskGraph, graph_of
from poolwise.quantities import SECOND, Dimension, format_time, parse
from poolwise.short_repr import fit_repr

Amounts = IntArray | Sequence[int | str] | int | str
"""Amounts of all jobs: integers in base units, or texts such as "64 GiB" or "10 min"; or a single amount for all jobs."""


@dataclass(frozen=True, slots=True, repr=False)
class TraceJob(Job):
    """One row of a workload, its duration included.

    Attributes
    ----------
    duration : ns of work of one task at reference speed
    """

    duration: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """Jobs in the order (submit, id), one row each. Make one with `Workload.of`, `poolwise.read` or `poolwise.generate`.

    A job has one or more identical tasks. A task that requests `nodes` gets that many, and its other requests are per
    node: whole nodes, or parts of different nodes if nodes are shared. Any other task gets one node.

    Attributes
    ----------
    id : (n_job,) int64, unique; id in the trace
    submit : (n_job,) int64, ns since the trace began
    duration : (n_job,) int64, ns of work of one task at reference speed with all memory local
    requested : (n_job,) int64, ns; requested time, which the scheduler knows in place of the duration
    tasks : (n_job,) int64, tasks per job
    requests : resource name -> (n_job,) int64, base units ("nodes", "memory" MiB, "cores", "bandwidth" MB/s, ...)
    attributes : name -> (n_job,) any other column that a policy or model reads (u, deadline, task_type, user, ...).
        "predecessors" holds the ids of the jobs that a job waits for, such as "3,5"; empty for none
    excluded : reason -> rows of the trace that were excluded
    repaired : reason -> rows that were changed while reading
    name : name in reports
    notes : sentences on how the trace was read, such as guessed columns
    closed_loop : whether jobs are submitted after their predecessors end (attributes "preceding" and "think_s"), not at the
        times in the trace
    memory_use : memory that each job uses over its run; None if it uses what it requests
    epoch : ns since 1970 of time 0; None if the trace has no calendar times

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of(["0 s", "10 min"], ["1 h", "30 min"], requests={"nodes": [4, 2]})
    >>> workload
    Workload 'workload': jobs 2, submitted over 10 min, median runtime 45 min, nodes of a job 2 to 4
    >>> workload.node_seconds
    array([14400.,  3600.])
    """

    id: IntArray
    submit: IntArray
    duration: IntArray
    requested: IntArray
    tasks: IntArray
    requests: Mapping[str, IntArray] = field(default_factory=dict)
    attributes: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    excluded: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    name: str = "workload"
    notes: tuple[str, ...] = ()
    closed_loop: bool = False
    memory_use: MemoryUse | None = None
    epoch: int | None = None

    def __post_init__(self) -> None:
        n = len(self.id)
        columns = {"submit": self.submit, "duration": self.duration, "requested": self.requested, "tasks": self.tasks}
        for name, column in {**columns, **self.requests, **self.attributes}.items():
            if column.shape != (n,):
                raise ValueError(f"column '{name}' has shape {column.shape}, expected ({n},)")
            frozen(column)
        if self.memory_use is not None and len(self.memory_use) != n:
            raise ValueError(f"memory_use has {len(self.memory_use)} jobs, expected {n}")
        frozen(self.id)
        for name, column in {**columns, **self.requests}.items():
            if n and int(column.min()) < 0:
                job = int(self.id[int(np.argmin(column))])
                raise InputError(f"job {job}: {name} is negative", field=name, remedy="correct or exclude the row")
        for name in ("duration", "requested", "tasks"):
            if n and int(columns[name].min()) < 1:
                job = int(self.id[int(np.argmin(columns[name]))])
                raise InputError(f"job {job}: {name} must be at least 1", field=name, remedy="correct or exclude the row")
        if len(np.unique(self.id)) != n:
            raise InputError("job ids are not unique", field="id", remedy="give each job its own id")
        if n and not np.array_equal(np.lexsort((self.id, self.submit)), np.arange(n)):
            raise ValueError("rows must be in the order (submit, id); use Workload.of")

    @classmethod
    def of(
        cls,
        submit: Amounts,
        duration: Amounts,
        *,
        id: IntArray | Sequence[int] | None = None,
        requested: Amounts | None = None,
        tasks: IntArray | Sequence[int] | int = 1,
        requests: Mapping[str, Amounts] | None = None,
        attributes: Mapping[str, NDArray[np.generic] | Sequence[Any]] | None = None,
        excluded: Mapping[str, int] | None = None,
        repaired: Mapping[str, int] | None = None,
        name: str = "workload",
        notes: Iterable[str] = (),
        epoch: int | None = None,
    ) -> Workload:
        """Return a workload made from columns; its rows are sorted by (submit, id).

        Amounts are arrays of integers in base units, or texts with units; a single value applies to all jobs.

        Parameters
        ----------
        submit
            (n_job,) submissions: ns, or texts such as "10 min".
        duration
            (n_job,) work of one task at reference speed: ns, or texts such as "2 h".
        id
            (n_job,) unique integers; by default 1, 2, ... in the order given.
        requested
            (n_job,) requested times, which the scheduler knows; by default the durations.
        tasks
            (n_job,) numbers of tasks.
        requests
            Resource name -> (n_job,) amounts per task, or per node for tasks with "nodes": counts, MiB or texts such as "64
            GiB" for "memory" and "storage", MB/s or texts such as "2 GB/s" for "bandwidth".
        attributes
            Name -> (n_job,) values of any type that policies and models read.
        excluded, repaired
            Reason -> number of rows of the source that were excluded or changed.
        name
            Name in reports.
        notes
            Sentences that a reader of the results must know.
        epoch
            Time 0 in ns since 1970, if known.

        Returns
        -------
        Workload

        Raises
        ------
        InputError
            A text cannot be read, an amount is negative, a duration is 0, or ids are not unique.
        ValueError
            Columns differ in length.

        Examples
        --------
        >>> import poolwise
        >>> workload = poolwise.Workload.of(
        ...     submit=["0 s", "10 min"], duration="1 h", requests={"nodes": [4, 2], "memory": ["64 GiB", "8 GiB"]}
        ... )
        >>> workload.memory  # MiB
        array([65536,  8192])
        """
        times = _column("submit", submit, "time")
        n = len(times)
        lengths = _column("duration", duration, "time", n)
        ids = np.arange(1, n + 1, dtype=np.int64) if id is None else np.asarray(id, dtype=np.int64)
        estimate = lengths if requested is None else _column("requested", requested, "time", n)
        count = np.broadcast_to(np.asarray(tasks, dtype=np.int64), (n,))
        amounts = {key: _column(key, v, DIMENSIONS.get(key, "count"), n) for key, v in (requests or {}).items()}
        rows = np.lexsort((ids, times))
        return cls(
            id=ids[rows],
            submit=times[rows],
            duration=lengths[rows],
            requested=estimate[rows],
            tasks=count[rows],
            requests={key: column[rows] for key, column in amounts.items()},
            attributes={key: np.asarray(v)[rows] for key, v in (attributes or {}).items()},
            excluded=dict(excluded or {}),
            repaired=dict(repaired or {}),
            name=name,
            notes=tuple(notes),
            epoch=epoch,
        )

    def __len__(self) -> int:
        return len(self.id)

    def summary(self) -> dict[str, str]:
        """Return a summary of the workload for readers, as text: name -> amount."""
        words = {"jobs": f"{len(self):,}"}
        if len(self):
            words["submitted over"] = format_time(float(np.ptp(self.submit)) / SECOND)
            words["median runtime"] = format_time(float(np.median(self.duration)) / SECOND)
            words["nodes of a job"] = f"{int(self.nodes.min()):,} to {int(self.nodes.max()):,}"
        words |= {what: f"{sum(rows.values()):,} rows" for what, rows in self._changed.items() if rows}
        return words

    @property
    def _changed(self) -> dict[str, Mapping[str, int]]:
        return {"excluded": self.excluded, "repaired": self.repaired}

    def __repr__(self) -> str:
        return fit_repr(f"Workload '{self.name}': {', '.join(f'{what} {amount}' for what, amount in self.summary().items())}")

    def _repr_html_(self) -> str:
        counts = {f"{what}: {why}": f"{n:,} rows" for what, rows in self._changed.items() for why, n in rows.items()}
        facts = {what: amount for what, amount in self.summary().items() if what not in self._changed}
        notes = {f"note {k}": note for k, note in enumerate(self.notes, start=1)}
        return html_table(f"Workload {self.name}", {**facts, **counts, **notes})

    @cached_property
    def table(self) -> JobTable:
        """All jobs as a scheduler sees them after the last arrival: everything but their durations."""
        return JobTable(self.id, self.submit, self.requested, self.tasks, self.requests, self.attributes)

    @cached_property
    def task_graph(self) -> TaskGraph | None:
        """Graph of the rows that wait for others (attribute "predecessors"); None if all rows are independent.

        Raises InputError for an unknown id, for a job that waits for itself, and for a cycle.
        """
        return graph_of(self.id, self.attributes.get(PREDECESSORS))

    def job(self, index: int) -> TraceJob:
        """Return a view of row `index`, its duration included."""
        return TraceJob(self.table, index, duration=int(self.duration[index]))

    def request(self, resource: str) -> IntArray:
        """Return the requested amounts of a resource, (n_job,); zeros if no job requests it."""
        return self.table.request(resource)

    @property
    def nodes(self) -> IntArray:
        """(n_job,) nodes of one task, at least 1 (a task that shares a node counts as one)."""
        return self.table.nodes

    @property
    def memory(self) -> IntArray:
        """(n_job,) MiB per node."""
        return self.table.memory

    @property
    def submit_s(self) -> FloatArray:
        """(n_job,) submissions in seconds since the trace began, at least 1."""
        return self.table.submit_s

    @property
    def requested_s(self) -> FloatArray:
        """(n_job,) requested times in seconds."""
        return self.table.requested_s

    @cached_property
    def node_seconds(self) -> FloatArray:
        """(n_job,) nodes x duration x tasks, seconds."""
        return self.nodes * self.tasks * (self.duration / SECOND)


def _column(name: str, values: Amounts, dimension: Dimension, length: int | None = None) -> IntArray:
    """Return amounts in base units, (n_job,); a single value is repeated `length` times, or kept once if `length` is None."""
    if isinstance(values, str | int):
        return np.full(1 if length is None else length, _amount(name, values, dimension), dtype=np.int64)
    if not isinstance(values, np.ndarray):
        values = np.array([_amount(name, value, dimension) if isinstance(value, str) else value for value in values])
    elif values.dtype.kind in "UO":
        values = np.array([_amount(name, value, dimension) for value in values.tolist()])
    return np.asarray(values, dtype=np.int64)


def _amount(name: str, value: int | str, dimension: Dimension) -> int:
    try:
        return parse(value, dimension) if isinstance(value, str) else int(value)
    except ValueError as error:
        raise InputError(str(error), field=name) from None
