"""Shapes of jobs: jobs with equal requests have the same shape."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import JobTable
from poolwise.model.table_columns import Column
from poolwise.schedulers.flow.flow_layout import FlowLayout

ON_LINKS = ("bandwidth",)
"""Requests that nodes and devices do not reserve: the traffic of a task on links is read, not allocated."""
Rows = IntArray | slice
ANYWHERE, NOWHERE = -1, -2
"""Special positions of pinned nodes: any node, or an owner that is not a node."""


@dataclass(frozen=True)
class Requests:
    """Requests that a flow reads, as they are in the job table."""

    def names(self, table: JobTable) -> Iterable[str]:
        """Return the names of all requests."""
        return table.requests

    def amounts(self, table: JobTable, name: str, rows: Rows) -> IntArray:
        """Return the amount of a resource that one task of each job requests, (k,)."""
        return table.request(name)[rows]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes of the jobs of a round, in ascending order.

    The order is that of `numpy.unique` over demand, tasks, kind, pinned, data. It depends only on the jobs, and not on the
    times or the sequence of their arrival.

    Attributes
    ----------
    demand : (n_shape, n_resource + n_kind) demand of one task
    tasks : (n_shape,) number of waiting tasks
    kind : n_shape kinds of jobs
    pinned : (n_shape,) position of the node that a shape must run on, `ANYWHERE` or `NOWHERE`
    data, data_at : (n_shape,) bytes and (n_shape, 2) position of input data
    number : (n_shape,) number of each in `ShapeTable`; shapes that differ only in tasks have the same number
    """

    demand: IntArray
    tasks: IntArray
    kind: tuple[str, ...]
    pinned: IntArray
    data: FloatArray
    data_at: IntArray
    number: IntArray

    def names(self, shapes: IntArray) -> list[IntArray]:
        """Return columns, (k,) each, that identify shapes in every round of a dispatcher."""
        return [self.number[shapes], self.tasks[shapes]]


class ShapeTable:
    """Shapes of jobs, numbered in the order in which they first occur; the numbers are only identifiers.

    The table depends only on the job table: another instance, opened later, gives equal results.
    """

    def __init__(self, layout: FlowLayout, requests: Requests) -> None:
        self.layout, self.requests = layout, requests
        self._n = len(layout.resources)
        self._kind: list[Any] = []  # (n_shape,) value of the attribute "kind" in the job table
        self._key = np.zeros((0, self._n + 5), dtype=np.int64)  # (n_shape, ...) demand, pinned, data (3), unknown request

    def of(self, table: JobTable, rows: IntArray) -> IntArray:
        """Return the shape numbers of (k,) jobs."""
        numbered = table.kinds(("flow shapes", self.layout.resources, self.requests), self._columns)
        first = len(self._kind)
        if fresh := numbered.value[first:]:
            self._kind += [kind for kind, *_ in fresh]
            if len(self._kind) > len(self._key):
                self._key = np.concatenate([self._key, np.empty((len(self._kind), self._key.shape[1]), dtype=np.int64)])
            self._key[first : len(self._kind)] = [key for _, *key in fresh]
            self._key[first : len(self._kind), self._n] = self._node(self._key[first : len(self._kind), self._n])
        return numbered.of[rows]

    def demand(self, number: IntArray) -> IntArray:
        """Return the demand of one task of each shape, (k, n_resource + n_kind)."""
        return self._key[number, : self._n]

    def pinned(self, number: IntArray) -> IntArray:
        """Return the position of the node on which each shape must run, (k,); `ANYWHERE` or `NOWHERE`."""
        positions: IntArray = self._key[number, self._n]
        return positions

    def foreign(self, number: IntArray) -> BoolArray:
        """Return a mask of the shapes, (k,), that request a resource which the machine's nodes and devices lack."""
        unknown: BoolArray = self._key[number, -1] >= 0
        return unknown

    def live(self, number: IntArray, tasks: IntArray) -> tuple[Shapes, IntArray]:
        """Return the shapes of jobs with given numbers of waiting tasks, (k,), and the position of each job's shape, (k,)."""
        width = int(tasks.max(initial=0)) + 1
        pair, at = np.unique(number * width + tasks, return_inverse=True)
        number, tasks = np.divmod(pair, width)
        key, kind = self._key[number], [self._kind[k] for k in number.tolist()]
        named = np.unique(np.array(kind), return_inverse=True)[1].reshape(-1) if kind else number
        columns = (*key[:, : self._n].T, tasks, named, *key[:, self._n :].T)
        order = np.lexsort(columns[::-1])
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        key = key[order]
        shapes = Shapes(
            key[:, : self._n],
            tasks[order],
            tuple(str(kind[k]) for k in order.tolist()),
            key[:, self._n],
            key[:, self._n + 1].astype(np.float64),
            key[:, self._n + 2 : self._n + 4],
            number[order],
        )
        return shapes, place[at.reshape(-1)]

    def problem(self, table: JobTable, rows: IntArray) -> InputError | None:
        """Return an error for the first of (k,) jobs that requests an unknown resource or is pinned to a non-node, or None."""
        machine = self.layout.machine
        for name in self._foreign(table):
            requesting = self.requests.amounts(table, name, rows) > 0
            if requesting.any():
                return InputError(
                    f"job {int(table.id[rows[np.argmax(requesting)]])} requests {name}, "
                    f"which machine '{machine.name}' does not have on shared nodes or devices",
                    field=name,
                    remedy=f"available resources: {', '.join(self.layout.resources)}",
                )
        wrong = self._node(_pinned(table, rows)) == NOWHERE
        if wrong.any():
            row = int(rows[np.argmax(wrong)])
            return InputError(
                f"job {int(table.id[row])} is pinned to owner {int(table.attributes['pinned'][row])}, which is not a node",
                field="pinned",
                remedy="give the number of a node among the machine's owners, or -1 for any node",
            )
        return None

    def check(self, table: JobTable) -> None:
        """Raise the error that `problem` finds in the whole table, if any."""
        problem = self.problem(table, np.arange(len(table)))
        if problem is not None:
            raise problem

    def _foreign(self, table: JobTable) -> list[str]:
        """Return the requests that no node, device or link serves."""
        return [name for name in self.requests.names(table) if name not in (*self.layout.resources, *ON_LINKS)]

    def _columns(self, table: JobTable, rows: slice) -> list[Column]:
        """Return the columns of some jobs that make up their shape; they depend on the machine only through its resources."""
        resources = [self.requests.amounts(table, name, rows) for name in self.layout.resources]
        kind = table.attributes.get("kind")
        none = np.zeros_like(table.tasks[rows])
        data = [table.attributes.get(name) for name in ("data_size", "data_x", "data_y")]
        foreign = none - 1
        for k, name in enumerate(self._foreign(table)):
            foreign = np.where(self.requests.amounts(table, name, rows) > 0, k, foreign)
        return [
            np.full(len(none), "") if kind is None else kind[rows],
            *resources,
            _pinned(table, rows),
            *(none if column is None else column[rows].astype(np.float64).astype(np.int64) for column in data),
            foreign,
        ]

    def _node(self, owner: IntArray) -> IntArray:
        """Return the node positions of owners, (k,): `ANYWHERE` for -1, `NOWHERE` for owners that are not nodes."""
        n_owner = self.layout.machine.n_owner
        number = np.full(n_owner + 2, NOWHERE, dtype=np.int64)
        number[self.layout.nodes] = np.arange(len(self.layout.nodes))
        number[-1] = ANYWHERE  # position of owner -1
        return number[np.where((owner < -1) | (owner >= n_owner), n_owner, owner)]


def _pinned(table: JobTable, rows: Rows) -> IntArray:
    """Return the owners to which the attribute "pinned" pins jobs, (k,), -1 for any."""
    column = table.attributes.get("pinned")
    return np.full_like(table.tasks[rows], -1) if column is None else column[rows].astype(np.int64)
