"""The jobs of one study, as columns. A job is a row number; `Job` is a view of one row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.units import SECOND


@dataclass(frozen=True, eq=False)
class Workload:
    """Jobs in the order (submit, id), one row each.

    A job has one or more identical tasks. A task that asks for `nodes` takes that many whole nodes and its other requests
    are per node; a task without `nodes` shares a node and its requests are its own.

    Attributes
    ----------
    id : (n_job,) int64, unique; what the trace calls the job
    submit : (n_job,) int64, ns since the trace began
    duration : (n_job,) int64, ns of work for one task at reference speed, all memory local
    requested : (n_job,) int64, ns; what the scheduler may know of the duration (the user's estimate)
    tasks : (n_job,) int64, tasks per job
    requests : resource name -> (n_job,) int64, base units ("nodes", "memory" MiB, "cores", "bandwidth" MB/s, ...)
    attributes : name -> (n_job,) anything else a policy or model reads (u, deadline, task_type, user, ...)
    excluded : reason -> rows of the trace that were left out
    repaired : reason -> rows that were changed while reading
    name : what reports call it
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

    def __post_init__(self) -> None:
        n = len(self.id)
        columns = {"submit": self.submit, "duration": self.duration, "requested": self.requested, "tasks": self.tasks}
        for name, column in {**columns, **self.requests, **self.attributes}.items():
            if column.shape != (n,):
                raise ValueError(f"column '{name}' has shape {column.shape}, expected ({n},)")
            frozen(column)
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
            raise InputError("job ids are not unique", field="id", remedy="number the jobs anew")
        if n and not np.array_equal(np.lexsort((self.id, self.submit)), np.arange(n)):
            raise ValueError("rows must stand in the order (submit, id); build with Workload.of")

    @classmethod
    def of(
        cls,
        submit: IntArray,
        duration: IntArray,
        *,
        id: IntArray | None = None,
        requested: IntArray | None = None,
        tasks: IntArray | int = 1,
        requests: Mapping[str, IntArray] | None = None,
        attributes: Mapping[str, NDArray[np.generic]] | None = None,
        excluded: Mapping[str, int] | None = None,
        repaired: Mapping[str, int] | None = None,
        name: str = "workload",
    ) -> Workload:
        """Build a workload from columns in any row order: sorts by (submit, id), fills in defaults.

        Every array has shape (n_job,). `id` counts from 1 and `requested` equals `duration` unless given.
        """
        submit = np.asarray(submit, dtype=np.int64)
        n = len(submit)
        duration = np.asarray(duration, dtype=np.int64)
        ids = np.arange(1, n + 1, dtype=np.int64) if id is None else np.asarray(id, dtype=np.int64)
        estimate = duration if requested is None else np.asarray(requested, dtype=np.int64)
        count = np.broadcast_to(np.asarray(tasks, dtype=np.int64), (n,))
        rows = np.lexsort((ids, submit))
        return cls(
            id=ids[rows],
            submit=submit[rows],
            duration=duration[rows],
            requested=estimate[rows],
            tasks=count[rows],
            requests={k: np.asarray(v, dtype=np.int64)[rows] for k, v in (requests or {}).items()},
            attributes={k: np.asarray(v)[rows] for k, v in (attributes or {}).items()},
            excluded=dict(excluded or {}),
            repaired=dict(repaired or {}),
            name=name,
        )

    def __len__(self) -> int:
        return len(self.id)

    def job(self, index: int) -> Job:
        """View row `index`."""
        return Job(self, index)

    def request(self, resource: str) -> IntArray:
        """(n_job,) amounts asked of a resource, zeros where nothing asks for it."""
        found = self.requests.get(resource)
        return self._zeros if found is None else found

    @cached_property
    def _zeros(self) -> IntArray:
        zeros = np.zeros(len(self), dtype=np.int64)
        zeros.setflags(write=False)
        return zeros

    @cached_property
    def nodes(self) -> IntArray:
        """(n_job,) whole nodes of one task, at least 1 (a task that shares a node counts as one)."""
        return np.maximum(self.request("nodes"), 1)

    @cached_property
    def memory(self) -> IntArray:
        """(n_job,) MiB per node."""
        return self.request("memory")

    @cached_property
    def submit_s(self) -> FloatArray:
        """(n_job,) submit time in seconds since the trace began, at least 1 (specs, queue order: s)."""
        return np.maximum(self.submit / SECOND, 1.0)

    @cached_property
    def requested_s(self) -> FloatArray:
        """(n_job,) requested time in seconds (specs, queue order: r)."""
        return self.requested / SECOND

    @cached_property
    def log10_nodes(self) -> FloatArray:
        """(n_job,) log10 of the nodes; computed once by `math.log10` so that every engine sees the same bits."""
        return _log10(self.nodes)

    @cached_property
    def log10_requested(self) -> FloatArray:
        """(n_job,) log10 of the requested seconds."""
        return _log10(self.requested_s)

    @cached_property
    def log10_submit(self) -> FloatArray:
        """(n_job,) log10 of the submit seconds."""
        return _log10(self.submit_s)

    @cached_property
    def node_seconds(self) -> FloatArray:
        """(n_job,) nodes x duration x tasks, seconds."""
        return self.nodes * self.tasks * (self.duration / SECOND)


def _log10(values: NDArray[np.int64] | NDArray[np.float64]) -> FloatArray:
    """(n,) log10 of positive values (n,), by `math.log10`; integers that are few are looked up in a table."""
    most = int(values.max(initial=0))
    if values.dtype == np.int64 and most < len(values):
        table = np.array([math.log10(v) for v in range(1, most + 1)], dtype=np.float64)
        return table[values - 1]
    return np.array([math.log10(v) for v in values.tolist()], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Job:
    """One row of a workload."""

    table: Workload
    index: int

    @property
    def id(self) -> int:
        """What the trace calls the job."""
        return int(self.table.id[self.index])

    @property
    def submit(self) -> int:
        """Nanoseconds since the trace began."""
        return int(self.table.submit[self.index])

    @property
    def duration(self) -> int:
        """Nanoseconds of work of one task at reference speed."""
        return int(self.table.duration[self.index])

    @property
    def requested(self) -> int:
        """Nanoseconds the user asked for."""
        return int(self.table.requested[self.index])

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.table.tasks[self.index])

    @property
    def nodes(self) -> int:
        """Whole nodes of one task, at least 1."""
        return int(self.table.nodes[self.index])

    @property
    def memory(self) -> int:
        """MiB per node."""
        return int(self.table.memory[self.index])

    def request(self, resource: str) -> int:
        """Amount one task asks of a resource (per node where it takes whole nodes), 0 if it does not ask."""
        column = self.table.requests.get(resource)
        return 0 if column is None else int(column[self.index])

    def attribute(self, name: str) -> float:
        """A numeric attribute of the job.

        Raises InputError if the workload has no such column.
        """
        column = self.table.attributes.get(name)
        if column is None:
            raise InputError(
                f"the workload has no attribute '{name}'",
                field=name,
                remedy=f"it has: {', '.join(sorted(self.table.attributes)) or 'none'}",
            )
        return float(column[self.index])
