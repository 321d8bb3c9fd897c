"""The jobs of one study, as columns: what a trace says of them, their durations included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray, frozen
from poolwise.errors import InputError
from poolwise.model.html import html_table
from poolwise.model.job_table import Job, JobTable
from poolwise.model.memory_use import MemoryUse
from poolwise.units import SECOND, format_time


@dataclass(frozen=True, slots=True)
class TraceJob(Job):
    """One row of a workload: what a job table says of it, and how long it runs.

    Attributes
    ----------
    duration : ns of work of one task at reference speed
    """

    duration: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """Jobs in the order (submit, id), one row each.

    A job has one or more identical tasks. A task that asks for `nodes` takes that many and its other requests are per
    node: whole nodes, or parts of different nodes where the machine's are shared. One that does not takes one node.

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
    notes : sentences on how the trace was read, such as columns that were guessed
    closed_loop : whether jobs are submitted when their predecessors are over (attributes "preceding" and "think_s"), not when
        the trace says
    memory_use : what each job really uses over its run; None: what it asks for
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

    def __post_init__(self) -> None:
        n = len(self.id)
        columns = {"submit": self.submit, "duration": self.duration, "requested": self.requested, "tasks": self.tasks}
        for name, column in {**columns, **self.requests, **self.attributes}.items():
            if column.shape != (n,):
                raise ValueError(f"column '{name}' has shape {column.shape}, expected ({n},)")
            frozen(column)
        if self.memory_use is not None and len(self.memory_use) != n:
            raise ValueError(f"memory in use is known of {len(self.memory_use)} jobs, expected {n}")
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
        notes: Iterable[str] = (),
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
            notes=tuple(notes),
        )

    def __len__(self) -> int:
        return len(self.id)

    def summary(self) -> dict[str, str]:
        """What is in it, in words: name -> amount."""
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
        return f"Workload '{self.name}': {', '.join(f'{what} {amount}' for what, amount in self.summary().items())}"

    def _repr_html_(self) -> str:
        counts = {f"{what}: {why}": f"{n:,} rows" for what, rows in self._changed.items() for why, n in rows.items()}
        facts = {what: amount for what, amount in self.summary().items() if what not in self._changed}
        notes = {f"note {k}": note for k, note in enumerate(self.notes, start=1)}
        return html_table(f"Workload {self.name}", {**facts, **counts, **notes})

    @cached_property
    def table(self) -> JobTable:
        """All jobs as a scheduler would see them once the last has arrived: everything but their durations."""
        return JobTable(self.id, self.submit, self.requested, self.tasks, self.requests, self.attributes)

    def job(self, index: int) -> TraceJob:
        """View row `index`, its duration included."""
        return TraceJob(self.table, index, duration=int(self.duration[index]))

    def request(self, resource: str) -> IntArray:
        """(n_job,) amounts asked of a resource, zeros where nothing asks for it."""
        return self.table.request(resource)

    @property
    def nodes(self) -> IntArray:
        """(n_job,) whole nodes of one task, at least 1 (a task that shares a node counts as one)."""
        return self.table.nodes

    @property
    def memory(self) -> IntArray:
        """(n_job,) MiB per node."""
        return self.table.memory

    @property
    def submit_s(self) -> FloatArray:
        """(n_job,) submit time in seconds since the trace began, at least 1."""
        return self.table.submit_s

    @property
    def requested_s(self) -> FloatArray:
        """(n_job,) requested time in seconds."""
        return self.table.requested_s

    @cached_property
    def node_seconds(self) -> FloatArray:
        """(n_job,) nodes x duration x tasks, seconds."""
        return self.nodes * self.tasks * (self.duration / SECOND)
