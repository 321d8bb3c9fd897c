"""Jobs as a scheduler sees them: a table of those that have arrived, without their durations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model.table_columns import Column, Kinds, Scalar, ShownColumns, grown, log10
from poolwise.quantities import SECOND

SPARE_ROWS = 2048
"""Minimum number of rows of departed jobs at which a table counts as crowded."""
_NOTHING = (None, 0, np.zeros(0), 0)


@dataclass(slots=True)
class _Held:
    """The columns that every table has, with spare capacity at their end."""

    id: IntArray
    submit: IntArray
    requested: IntArray
    tasks: IntArray
    draw: IntArray


class JobTable:
    """Jobs that have arrived, one row each.

    A row identifies a job for as long as the job exists, but does not define its position: jobs are ordered by submission, then
    id, then name (`order_key`). On a real cluster, later jobs reuse the rows of jobs that are gone: the platform then replaces
    the table by another, in which all other jobs keep their rows (`recycled`). Within one table, a row that a job
    has used therefore always refers to this job. The table contains neither real durations nor jobs that have not arrived.

    A job has one or more identical tasks. A task that requests `nodes` gets that many, and its other requests are per
    node: whole nodes, or parts of different nodes if nodes are shared. Any other task gets one node.

    Attributes
    ----------
    id : (n_job,) int64; id of the job in the trace or the cluster
    submit : (n_job,) int64, ns since `epoch`
    requested : (n_job,) int64, requested time, ns; `units.UNKNOWN` without one
    tasks : (n_job,) int64, tasks of the job
    requests : resource name -> (n_job,) int64, amount per task (per node for tasks with nodes), base units
    attributes : name -> (n_job,) any other column that a policy or model reads
    draw : (n_job,) int64, counter of a job's random draws; it stays with the job in every table
    name : n_job names; None where ids are the names
    length : number of rows shown; None for all
    epoch : ns since 1970 of time 0; 0 in simulations

    Examples
    --------
    >>> import poolwise
    >>> table = poolwise.Workload.of(["0 s", "1 min"], "1 h", requests={"nodes": [4, 2]}).table
    >>> table.nodes, table.requested_s
    (array([4, 2]), array([3600., 3600.]))
    >>> table.job(1).nodes
    2
    """

    def __init__(
        self,
        id: IntArray,
        submit: IntArray,
        requested: IntArray,
        tasks: IntArray,
        requests: Mapping[str, IntArray],
        attributes: Mapping[str, Column],
        *,
        draw: IntArray | None = None,
        name: Sequence[str] | None = None,
        length: int | None = None,
        epoch: int = 0,
    ) -> None:
        self._held = _Held(id, submit, requested, tasks, np.arange(len(id), dtype=np.int64) if draw is None else draw)
        self._requests, self._attributes = dict(requests), dict(attributes)
        self._name = None if name is None else list(name)
        self._length = len(id) if length is None else length
        self._spare: list[int] = []  # rows for later jobs, ascending
        self._refilled: list[slice] = []  # rows that were spare and have a job now, in the order in which they got it
        self._derived: dict[Hashable, tuple[Any, int, Any, int]] = {}  # (with spare capacity, rows, as shown, refills)
        self._kinds: dict[Hashable, Kinds] = {}
        self._shared: JobTable | None = None
        self.epoch = epoch

    def __len__(self) -> int:
        return self._length

    # Columns

    @property
    def id(self) -> IntArray:
        """(n_job,) id of each job in the trace or the cluster."""
        return self._held.id[: self._length]

    @property
    def submit(self) -> IntArray:
        """(n_job,) submissions, ns since `epoch`."""
        return self._held.submit[: self._length]

    @property
    def requested(self) -> IntArray:
        """(n_job,) requested times, ns."""
        return self._held.requested[: self._length]

    @property
    def tasks(self) -> IntArray:
        """(n_job,) tasks of each job."""
        return self._held.tasks[: self._length]

    @property
    def draw(self) -> IntArray:
        """(n_job,) counters of random draws."""
        return self._held.draw[: self._length]

    @property
    def requests(self) -> Mapping[str, IntArray]:
        """Resource name -> (n_job,) amounts per task."""
        return ShownColumns(self._requests, self.__len__)

    @property
    def attributes(self) -> Mapping[str, Column]:
        """Name -> (n_job,) values."""
        return ShownColumns(self._attributes, self.__len__)

    def request(self, resource: str) -> IntArray:
        """Return the requested amounts of a resource, (n_job,); zeros if no job requests it."""
        column = self._requests.get(resource)
        if column is None:
            return self.derived("zeros", lambda table, rows: np.zeros_like(table.tasks[rows]))
        return column[: self._length]

    def job(self, row: int) -> Job:
        """Return a view of one row."""
        return Job(self, row)

    def order_key(self, row: int) -> tuple[int, int, str]:
        """Return (submit, id, name), the key that orders the queue and breaks ties."""
        held = self._held
        return int(held.submit[row]), int(held.id[row]), "" if self._name is None else self._name[row]

    @property
    def named(self) -> bool:
        """True if jobs have names in addition to their ids."""
        return self._name is not None

    def name(self, row: int) -> str:
        """Return the name that the platform gave a job, else its id."""
        return str(int(self._held.id[row])) if self._name is None else self._name[row]

    # Derived columns

    def derived(self, key: Hashable, make: Callable[[JobTable, slice], NDArray[Scalar]]) -> NDArray[Scalar]:
        """Return a column, (n_job,), that is computed from other columns and cached under a key.

        `make(table, rows)` computes some rows; each row of its result must depend on that row of the table alone. It is called
        once for each row that arrives.
        """
        held: NDArray[Scalar] | None
        view: NDArray[Scalar]
        n, refills = self._length, len(self._refilled)
        held, done, view, seen_refills = self._derived.get(key, _NOTHING)
        if held is not None and done == n and seen_refills == refills:
            return view
        for rows in self._refilled[seen_refills:] if held is not None else ():
            part = np.asarray(make(self, rows))
            held = grown(held, done, part[:0])
            held[rows] = part
        if held is None or done < n:
            part = np.asarray(make(self, slice(done, n)))
            held = part if held is None else grown(held, done, part)
        view = held[:n]
        view.flags.writeable = False
        self._derived[key] = held, n, view, refills
        return view

    def kinds(self, key: Hashable, columns: Callable[[JobTable, slice], Sequence[Column]]) -> Kinds:
        """Assign numbers to jobs, so that jobs with equal values in some columns have equal numbers; cached under a key.

        `columns(table, rows)` returns the columns of some rows. Kinds are numbered in the order in which they are first seen,
        so a job keeps its number when others arrive.
        """
        numbered = self._kinds.get(key)
        if numbered is None:
            numbered = self._kinds[key] = Kinds(refills=len(self._refilled))
        for rows in self._refilled[numbered.refills :]:
            numbered.refill(rows, columns(self, rows))
        numbered.refills = len(self._refilled)
        if len(numbered.of) < self._length:
            numbered.append(columns(self, slice(len(numbered.of), self._length)))
        return numbered

    def _standard(self, key: str, make: Callable[[JobTable, slice], NDArray[Scalar]]) -> NDArray[Scalar]:
        """Return one of the columns below, cached as in `derived`; a table that shows part of another reads it from there."""
        view: NDArray[Scalar]
        _, done, view, refills = self._derived.get(key, _NOTHING)
        if done == self._length and refills == len(self._refilled):  # called many times per pass
            return view
        if self._shared is None:
            return self.derived(key, make)
        view = self._shared._standard(key, make)[: self._length]
        self._derived[key] = view, self._length, view, 0
        return view

    @property
    def nodes(self) -> IntArray:
        """(n_job,) nodes of one task, at least 1 (a task that shares a node counts as one)."""
        return self._standard("nodes", lambda table, rows: np.maximum(table.request("nodes")[rows], 1))

    @property
    def memory(self) -> IntArray:
        """(n_job,) MiB per node."""
        return self.request("memory")

    @property
    def submit_s(self) -> FloatArray:
        """(n_job,) submissions in seconds since the trace began, at least 1 (specs, queue order: s)."""
        return self._standard("submit_s", lambda table, rows: np.maximum(table.submit[rows] / SECOND, 1.0))

    @property
    def requested_s(self) -> FloatArray:
        """(n_job,) requested times in seconds (specs, queue order: r)."""
        return self._standard("requested_s", lambda table, rows: table.requested[rows] / SECOND)

    @property
    def log10_nodes(self) -> FloatArray:
        """(n_job,) log10 of the nodes; computed once by `math.log10` so that every engine sees the same bits."""
        return self._standard("log10_nodes", lambda table, rows: log10(table.nodes[rows]))

    @property
    def log10_requested(self) -> FloatArray:
        """(n_job,) log10 of the requested seconds."""
        return self._standard("log10_requested", lambda table, rows: log10(table.requested_s[rows]))

    @property
    def log10_submit(self) -> FloatArray:
        """(n_job,) log10 of the submit seconds."""
        return self._standard("log10_submit", lambda table, rows: log10(table.submit_s[rows]))

    # Used by platforms

    def first(self, length: int) -> JobTable:
        """Return a table that shows only the first rows of this one; `show` makes it show more."""
        part = JobTable.__new__(JobTable)
        part._held, part._requests, part._attributes, part._name = self._held, self._requests, self._attributes, self._name
        part._length, part._derived, part._kinds, part._shared = length, {}, {}, self
        part.epoch, part._spare, part._refilled = self.epoch, [], []
        return part

    def show(self, length: int) -> None:
        """Show the rows up to `length`, whose jobs have arrived. Rows never disappear."""
        if length > self._length:
            self._length = length

    def append(self, more: JobTable) -> list[int]:
        """Add the jobs of another table with the same columns, filling spare rows first, and return their rows.

        Raises ValueError if the columns differ.
        """
        if self._shared is not None:
            raise ValueError("a table that shows a part of another cannot be appended to")
        mine, others = {*self._requests, *self._attributes}, {*more._requests, *more._attributes}
        if mine != others or (self._name is None) != (more._name is None):
            raise ValueError(f"the columns differ: {', '.join(sorted(mine ^ others)) or 'name'}")
        n, k = self._length, len(more)
        spare, self._spare = self._spare[:k], self._spare[k:]
        s = len(spare)

        def added(column: NDArray[Scalar], values: NDArray[Scalar]) -> NDArray[Scalar]:
            column = grown(column, n, values[s:k])
            column[spare] = values[:s]
            return column

        for field in fields(_Held):
            setattr(self._held, field.name, added(getattr(self._held, field.name), getattr(more._held, field.name)))
        self._requests = {name: added(column, more._requests[name]) for name, column in self._requests.items()}
        self._attributes = {name: added(column, more._attributes[name]) for name, column in self._attributes.items()}
        rows = [*spare, *range(n, n + k - s)]
        if self._name is not None and more._name is not None:
            self._name[n:] = more._name[s:k]
            for row, name in zip(spare, more._name, strict=False):
                self._name[row] = name
        for part in np.split(np.array(spare), np.flatnonzero(np.diff(spare) > 1) + 1) if spare else ():
            self._refilled.append(slice(int(part[0]), int(part[-1]) + 1))
        self._length = n + k - s
        return rows

    def crowded(self, live: int) -> bool:
        """Return whether more than half of the used rows, and at least `SPARE_ROWS`, do not belong to `live` jobs."""
        return self._length - len(self._spare) - live >= max(SPARE_ROWS, live)

    def recycled(self, live: Iterable[int]) -> JobTable:
        """Return a table that keeps the rows of `live` jobs and gives all others to later jobs.

        Events about the other jobs must have been handled before.
        """
        live_rows = np.fromiter(live, np.int64)
        spare = np.setdiff1d(np.arange(self._length), live_rows)
        n = int(live_rows.max(initial=-1)) + 1
        table = self.taken(np.arange(n))
        table._spare = spare[spare < n].tolist()
        return table

    def replaced(self, rows: Sequence[int], jobs: JobTable) -> JobTable:
        """Return a table with the columns of `jobs`, which fill the (k,) `rows`; other rows keep only their names and times."""

        def spread(column: NDArray[Scalar]) -> NDArray[Scalar]:
            blank = "" if column.dtype == np.object_ else column.dtype.type()
            values = np.full(self._length, blank, dtype=column.dtype)
            values[rows] = column
            return values

        held = {field.name: getattr(self, field.name).copy() for field in fields(_Held)}
        for name, column in held.items():
            column[rows] = getattr(jobs, name)
        names = [self.name(row) for row in range(self._length)]
        for k, row in enumerate(rows):
            names[row] = jobs.name(k)
        requests = {name: spread(column) for name, column in jobs.requests.items()}
        attributes = {name: spread(column) for name, column in jobs.attributes.items()}
        id, submit, requested, tasks = (held[name] for name in ("id", "submit", "requested", "tasks"))
        table = JobTable(
            id, submit, requested, tasks, requests, attributes, draw=held["draw"], name=names if jobs.named else None,
            epoch=jobs.epoch,
        )  # fmt: skip
        table._spare = list(self._spare)
        return table

    def taken(self, rows: IntArray, submit: IntArray | None = None) -> JobTable:
        """Return a table of some rows, (k,), in the given order; `submit`, (k,), replaces the submissions."""
        return JobTable(
            self.id[rows],
            self.submit[rows] if submit is None else submit,
            self.requested[rows],
            self.tasks[rows],
            {name: column[rows] for name, column in self._requests.items()},
            {name: column[rows] for name, column in self._attributes.items()},
            draw=self.draw[rows],
            name=None if self._name is None else [self._name[row] for row in rows.tolist()],
            epoch=self.epoch,
        )


@dataclass(frozen=True, slots=True)
class Job:
    """One row of a job table, or some tasks of it.

    Attributes
    ----------
    table : the table
    index : row of the job
    numbers_waiting : numbers of the tasks in this view; None for all tasks of the job

    Examples
    --------
    >>> import poolwise
    >>> workload = poolwise.Workload.of("0 s", "1 h", requests={"nodes": 4, "memory": "64 GiB"})
    >>> job = workload.table.job(0)
    >>> job.id, job.nodes, job.memory, job.request("gpu")
    (1, 4, 65536, 0)
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id}, row={self.index}, tasks={self.tasks})"

    table: JobTable
    index: int
    numbers_waiting: tuple[int, ...] | None = None

    @property
    def id(self) -> int:
        """Id of the job in the trace or the cluster."""
        return self.table._held.id.item(self.index)

    @property
    def submit(self) -> int:
        """Submission, ns since time 0 of the table."""
        return self.table._held.submit.item(self.index)

    @property
    def requested(self) -> int:
        """Requested time, ns."""
        return self.table._held.requested.item(self.index)

    @property
    def tasks(self) -> int:
        """Number of tasks in this view."""
        return self.table._held.tasks.item(self.index) if self.numbers_waiting is None else len(self.numbers_waiting)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the tasks in this view, ascending."""
        return tuple(range(self.tasks)) if self.numbers_waiting is None else self.numbers_waiting

    @property
    def nodes(self) -> int:
        """Nodes of one task, at least 1."""
        column = self.table._requests.get("nodes")
        return 1 if column is None else column.item(self.index) or 1

    @property
    def memory(self) -> int:
        """MiB per node."""
        column = self.table._requests.get("memory")
        return 0 if column is None else column.item(self.index)

    def request(self, resource: str) -> int:
        """Return the requested amount of a resource per task (per node for tasks with nodes), 0 if the job requests none."""
        column = self.table._requests.get(resource)
        return 0 if column is None else column.item(self.index)

    def attribute(self, name: str) -> float:
        """Return a numeric attribute of the job; raises InputError if the table has no such column."""
        column = self.table._attributes.get(name)
        if column is None:
            raise InputError(
                f"the workload has no attribute '{name}'",
                field=name,
                remedy=f"it has: {', '.join(sorted(self.table._attributes)) or 'none'}",
            )
        return float(column[self.index])
