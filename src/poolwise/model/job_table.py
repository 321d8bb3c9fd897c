"""What a scheduler knows of jobs: the table of those that have arrived, without their durations."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.units import SECOND

Column = NDArray[np.generic]
Make = Callable[["JobTable", slice], Column]
"""Works out some rows of a column from other columns: `make(table, rows)` has the length of `rows`, and each row of it
depends on nothing but that row of the table."""


@dataclass
class Kinds:
    """Kinds of jobs that are alike in some columns (see `JobTable.kinds`).

    Attributes
    ----------
    of : (n_job,) number of each job's kind
    value : what the columns hold, kind by kind
    first : a row of each kind
    number : value -> number
    """

    of: IntArray
    value: list[tuple[Any, ...]]
    first: list[int]
    number: dict[tuple[Any, ...], int]
    held: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)  # `of`, with spare room at its end


class JobTable:
    """Jobs that have arrived, one row each. It only grows, at its end.

    A row is a name for a job, not its place in an order: jobs are ordered by submission, then id, then name
    (`order_key`). Nothing in the table tells how long a job will really run, nor of jobs that have not arrived.

    A job has one or more identical tasks. A task that asks for `nodes` takes that many whole nodes and its other requests
    are per node; a task without `nodes` shares a node and its requests are its own.

    Attributes
    ----------
    id : (n_job,) int64; what the trace or the cluster calls the job
    submit : (n_job,) int64, ns since `epoch`
    requested : (n_job,) int64, ns that the user asked for; `units.UNKNOWN` where the user gave no estimate
    tasks : (n_job,) int64, tasks of the job
    draw : (n_job,) int64, the counter of a job's random draws; kept with the job wherever its row moves
    requests : resource name -> (n_job,) int64, base units
    attributes : name -> (n_job,) anything else that a policy or model reads
    epoch : ns since 1970 of time 0; 0 in simulations
    edition : counts the times that rows were renumbered; what is remembered by row is void when it changes
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
        edition: int = 0,
    ) -> None:
        self._held: dict[str, Column] = {
            "id": id,
            "submit": submit,
            "requested": requested,
            "tasks": tasks,
            "draw": np.arange(len(id), dtype=np.int64) if draw is None else draw,
        }
        self._requests, self._attributes = dict(requests), dict(attributes)
        self._name = None if name is None else list(name)
        self._length = len(id) if length is None else length
        self._derived: dict[Hashable, tuple[Column, int, Column]] = {}  # (with room, rows, as shown)
        self._kinds: dict[Hashable, Kinds] = {}
        self._shared: JobTable | None = None
        self.epoch, self.edition = epoch, edition

    def __len__(self) -> int:
        return self._length

    # Columns

    @property
    def id(self) -> IntArray:
        """(n_job,) what the trace or the cluster calls each job."""
        return self._held["id"][: self._length]  # type: ignore[return-value]

    @property
    def submit(self) -> IntArray:
        """(n_job,) ns since `epoch`."""
        return self._held["submit"][: self._length]  # type: ignore[return-value]

    @property
    def requested(self) -> IntArray:
        """(n_job,) ns that the user asked for."""
        return self._held["requested"][: self._length]  # type: ignore[return-value]

    @property
    def tasks(self) -> IntArray:
        """(n_job,) tasks of each job."""
        return self._held["tasks"][: self._length]  # type: ignore[return-value]

    @property
    def draw(self) -> IntArray:
        """(n_job,) counters of random draws."""
        return self._held["draw"][: self._length]  # type: ignore[return-value]

    @property
    def requests(self) -> Mapping[str, IntArray]:
        """Resource name -> (n_job,) amounts of one task."""
        return _Shown(self, self._requests)

    @property
    def attributes(self) -> Mapping[str, Column]:
        """Name -> (n_job,) values."""
        return _Shown(self, self._attributes)

    def request(self, resource: str) -> IntArray:
        """(n_job,) amounts asked of a resource, zeros where nothing asks for it."""
        found = self._requests.get(resource)
        if found is None:
            return self.derived("zeros", _zeros)  # type: ignore[return-value]
        return found[: self._length]

    def job(self, row: int) -> Job:
        """View one row."""
        return Job(self, row)

    def order_key(self, row: int) -> tuple[int, int, str]:
        """(submit, id, name): the order of jobs in a queue, by which ties are broken."""
        held = self._held
        return int(held["submit"][row]), int(held["id"][row]), "" if self._name is None else self._name[row]

    @property
    def named(self) -> bool:
        """Whether jobs have names of their own beside their ids."""
        return self._name is not None

    def name(self, row: int) -> str:
        """Name of a job: its own where the platform gives one, else its id."""
        return str(int(self._held["id"][row])) if self._name is None else self._name[row]

    # Derived columns

    def derived(self, key: Hashable, make: Make) -> Column:
        """(n_job,) column worked out from others, kept under a key; `make` is asked once for each row that arrives."""
        n, known = self._length, self._derived.get(key)
        if known is not None and known[1] == n:
            return known[2]
        held, done = (None, 0) if known is None else known[:2]
        if held is None or done < n:
            part = np.asarray(make(self, slice(done, n)))
            held = part if held is None else _grown(held, done, part)
        view = held[:n]
        view.flags.writeable = False
        self._derived[key] = held, n, view
        return view

    def kinds(self, key: Hashable, columns: Callable[[JobTable, slice], Sequence[Column]]) -> Kinds:
        """Give jobs that are alike in some columns the same number, kept under a key.

        `columns(table, rows)` gives the columns of some rows. Numbers count in the order in which kinds were first seen:
        they are names, and the same whatever arrives later.
        """
        known = self._kinds.get(key)
        if known is None:
            known = self._kinds[key] = Kinds(np.zeros(0, dtype=np.int64), [], [], {})
        done = len(known.of)
        if done < self._length:
            rows = slice(done, self._length)
            numbers = []
            for row, value in enumerate(zip(*(column.tolist() for column in columns(self, rows)), strict=True), start=done):
                number = known.number.setdefault(value, len(known.number))
                if number == len(known.value):
                    known.value.append(value)
                    known.first.append(row)
                numbers.append(number)
            held = _grown(known.held, done, np.array(numbers, dtype=np.int64))
            known.held, known.of = held, held[: self._length]
        return known

    def _standard(self, key: str, make: Make) -> Column:
        """Work as `derived` does, for the columns below; a table that shows a part of another takes them from that one."""
        return self.derived(key, make) if self._shared is None else self._shared._standard(key, make)[: self._length]

    @property
    def nodes(self) -> IntArray:
        """(n_job,) whole nodes of one task, at least 1 (a task that shares a node counts as one)."""
        return self._standard("nodes", _nodes)  # type: ignore[return-value]

    @property
    def memory(self) -> IntArray:
        """(n_job,) MiB per node."""
        return self.request("memory")

    @property
    def submit_s(self) -> FloatArray:
        """(n_job,) submit time in seconds since the trace began, at least 1 (specs, queue order: s)."""
        return self._standard("submit_s", _submit_s)  # type: ignore[return-value]

    @property
    def requested_s(self) -> FloatArray:
        """(n_job,) requested time in seconds (specs, queue order: r)."""
        return self._standard("requested_s", _requested_s)  # type: ignore[return-value]

    @property
    def log10_nodes(self) -> FloatArray:
        """(n_job,) log10 of the nodes; computed once by `math.log10` so that every engine sees the same bits."""
        return self._standard("log10_nodes", _log10_nodes)  # type: ignore[return-value]

    @property
    def log10_requested(self) -> FloatArray:
        """(n_job,) log10 of the requested seconds."""
        return self._standard("log10_requested", _log10_requested)  # type: ignore[return-value]

    @property
    def log10_submit(self) -> FloatArray:
        """(n_job,) log10 of the submit seconds."""
        return self._standard("log10_submit", _log10_submit)  # type: ignore[return-value]

    # The platform's side.

    def first(self, length: int) -> JobTable:
        """Return a table that shows the first rows of this one, and can be told to show more by `show`."""
        part = JobTable.__new__(JobTable)
        part._held, part._requests, part._attributes, part._name = self._held, self._requests, self._attributes, self._name
        part._length, part._derived, part._kinds, part._shared = length, {}, {}, self
        part.epoch, part.edition = self.epoch, self.edition
        return part

    def show(self, length: int) -> None:
        """Show the rows up to `length`: their jobs have arrived. Rows never disappear."""
        if length > self._length:
            self._length = length

    def append(self, more: JobTable) -> range:
        """Append the jobs of another table with the same columns; returns their rows.

        Raises ValueError where the columns differ.
        """
        if self._shared is not None:
            raise ValueError("a table that shows a part of another cannot be appended to")
        mine, others = {*self._requests, *self._attributes}, {*more._requests, *more._attributes}
        if mine != others or (self._name is None) != (more._name is None):
            raise ValueError(f"the columns differ: {', '.join(sorted(mine ^ others)) or 'name'}")
        n, k = self._length, len(more)
        for columns, added in (
            (self._held, more._held),
            (self._requests, more._requests),
            (self._attributes, more._attributes),
        ):
            for key in columns:
                columns[key] = _grown(columns[key], n, added[key][:k])
        if self._name is not None and more._name is not None:
            self._name[n:] = more._name[:k]
        self._length = n + k
        return range(n, n + k)

    def taken(self, rows: IntArray) -> JobTable:
        """Return a table of some rows, (k,), in their order, as the next edition: finished jobs are left out."""
        return JobTable(
            self.id[rows],
            self.submit[rows],
            self.requested[rows],
            self.tasks[rows],
            {name: column[rows] for name, column in self._requests.items()},
            {name: column[rows] for name, column in self._attributes.items()},
            draw=self.draw[rows],
            name=None if self._name is None else [self._name[row] for row in rows.tolist()],
            epoch=self.epoch,
            edition=self.edition + 1,
        )


class _Shown(Mapping[str, Any]):
    """Columns by name, each up to the rows that have arrived."""

    def __init__(self, table: JobTable, columns: Mapping[str, Any]) -> None:
        self._of, self._columns = table, columns

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][: self._of._length]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _grown(column: Any, length: int, more: Any) -> Any:
    """Return a column with `more` appended after its first `length` rows; where room is short, it is doubled."""
    kind = np.result_type(column, more)
    need = length + len(more)
    if need > len(column) or kind != column.dtype or not column.flags.writeable:
        room = np.empty(max(need, 2 * length, 16), dtype=kind)
        room[:length] = column[:length]
        column = room
    column[length:need] = more
    return column


def _zeros(table: JobTable, rows: slice) -> Column:
    return np.zeros(len(range(*rows.indices(len(table)))), dtype=np.int64)


def _nodes(table: JobTable, rows: slice) -> Column:
    return np.maximum(table.request("nodes")[rows], 1)


def _submit_s(table: JobTable, rows: slice) -> Column:
    return np.maximum(table.submit[rows] / SECOND, 1.0)


def _requested_s(table: JobTable, rows: slice) -> Column:
    return table.requested[rows] / SECOND


def _log10_nodes(table: JobTable, rows: slice) -> Column:
    return _log10(table.nodes[rows])


def _log10_requested(table: JobTable, rows: slice) -> Column:
    return _log10(table.requested_s[rows])


def _log10_submit(table: JobTable, rows: slice) -> Column:
    return _log10(table.submit_s[rows])


def _log10(values: Any) -> FloatArray:
    """(n,) log10 of positive values (n,), by `math.log10`; integers with few distinct values are looked up in a table."""
    most = int(values.max(initial=0))
    if values.dtype == np.int64 and most < len(values):
        known = np.array([math.log10(v) for v in range(1, most + 1)], dtype=np.float64)
        found: FloatArray = known[values - 1]
        return found
    return np.array([math.log10(v) for v in values.tolist()], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Job:
    """One row of a job table, or some of its tasks.

    Attributes
    ----------
    numbers_waiting : numbers of the tasks that this view covers, where it does not cover all of the job's
    """

    table: JobTable
    index: int
    numbers_waiting: tuple[int, ...] | None = None

    @property
    def id(self) -> int:
        """What the trace calls the job."""
        return int(self.table._held["id"][self.index])

    @property
    def submit(self) -> int:
        """Nanoseconds since the trace began."""
        return int(self.table._held["submit"][self.index])

    @property
    def requested(self) -> int:
        """Nanoseconds the user asked for."""
        return int(self.table._held["requested"][self.index])

    @property
    def tasks(self) -> int:
        """Number of tasks that this view covers."""
        return int(self.table.tasks[self.index]) if self.numbers_waiting is None else len(self.numbers_waiting)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers of the tasks that this view covers, ascending."""
        return tuple(range(self.tasks)) if self.numbers_waiting is None else self.numbers_waiting

    @property
    def nodes(self) -> int:
        """Whole nodes of one task, at least 1."""
        return max(self.request("nodes"), 1)

    @property
    def memory(self) -> int:
        """MiB per node."""
        return self.request("memory")

    def request(self, resource: str) -> int:
        """Amount one task asks of a resource (per node where it takes whole nodes), 0 if it does not ask."""
        column = self.table._requests.get(resource)
        return 0 if column is None else int(column[self.index])

    def attribute(self, name: str) -> float:
        """A numeric attribute of the job.

        Raises InputError if the table has no such column.
        """
        column = self.table._attributes.get(name)
        if column is None:
            raise InputError(
                f"the workload has no attribute '{name}'",
                field=name,
                remedy=f"it has: {', '.join(sorted(self.table._attributes)) or 'none'}",
            )
        return float(column[self.index])
