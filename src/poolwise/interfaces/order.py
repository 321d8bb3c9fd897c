"""Queue orders: which of the waiting jobs are considered first."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Protocol, final

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.model import JobTable, Machine, Queue, Snapshot

OrderKind = Literal["static", "linear", "cubic", "affine", "capped", "recalculated", "opaque"]
EXTREME = 1e60
"""Largest size of the columns of an `AgingOrder` or `AffineOrder`, and its inverse the least: nothing worked out overflows."""


class QueuePolicy(Protocol):
    """The order in which waiting jobs are considered. Ties: earlier submit, then lower id.

    `kind` is a promise that lets engines skip work: "static" (a job's priority never changes, and follows from the job table
    and the machine alone), "linear" or "cubic" (it follows from the time waited: see `AgingOrder`), "affine" (the same, from
    a value at submission on: see `AffineOrder`), "capped" (that of another order, until a job has waited too long: see
    `CappedOrder`), "recalculated" (it changes at intervals: see `RecalculatedOrder`), or "opaque" (anything; asked again for
    the whole queue at each pass).
    """

    kind: ClassVar[OrderKind]

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) float64, higher first; row k is `queue.jobs[k]`. NaN is an error."""
        ...


class RecalculatedOrder(QueuePolicy):
    """A queue order whose priorities change only when they are recalculated, at equal intervals.

    Fast engines ask for them at recalculations alone.
    """

    kind: ClassVar[OrderKind] = "recalculated"

    @abstractmethod
    def last(self, now: int) -> int:
        """Ns of the last recalculation up to a time."""
        ...

    @abstractmethod
    def following(self, recalculated: int) -> int:
        """Ns of the recalculation after another."""
        ...

    @abstractmethod
    def at(self, recalculated: int, jobs: IntArray, snapshot: Snapshot) -> FloatArray:
        """(k,) priorities of jobs, (k,) rows, from a recalculation until the next; the snapshot is of a time in between.

        What ended or started after the recalculation must not change them. A job that comes after it may be asked about.
        """
        ...

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities."""
        return self.at(self.last(snapshot.now), queue.jobs, snapshot)


class PreparedOrder(QueuePolicy):
    """A queue order that reads files, or keeps caches from pass to pass: it is opened for each run."""

    def open(self) -> QueuePolicy:
        """Begin a run; returns what holds the files' content and the caches."""
        return self

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError, and warn, for what a study can know of its jobs beforehand."""
        return


def opened(order: QueuePolicy) -> QueuePolicy:
    """Begin a run of an order."""
    return order.open() if isinstance(order, PreparedOrder) else order


def checked_priorities(order: QueuePolicy, priority: FloatArray, n: int) -> FloatArray:
    """Return the priorities that an order gave for n jobs, (n,); raises PolicyError unless it is a number for each of them."""
    try:
        found = np.asarray(priority)
        good = found.shape == (n,) and not np.isnan(found).any()
    except (TypeError, ValueError):  # no array, or one of things that are no numbers
        good = False
    if not good:
        problem = f"{type(order).__name__} must return {n} priorities that are numbers, got {priority!r}"
        raise PolicyError(problem, by=order)
    return found


class AgingOrder(QueuePolicy):
    """A queue order whose priorities follow from the time waited and two numbers of each job, its pace and its weight.

    With w the seconds waited and x = w / pace, the priority is x * weight where `kind` is "linear", and x * x * x * weight
    where it is "cubic", multiplied from the left. So weight / pace is the slope of a linear order; it may have any sign.
    Subclasses give the two columns, which fast engines read; the priorities that follow from them stand here once.
    """

    kind: ClassVar[OrderKind] = "linear"

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) seconds, for rows (k,) of the job table; not 0. A job's pace never changes, whoever else is asked for."""
        return np.ones(len(jobs))

    def weight(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) numbers, for rows (k,) of the job table. A job's weight never changes, whoever else is asked for."""
        return np.ones(len(jobs))

    @final
    def aging(self, jobs: IntArray, table: JobTable, machine: Machine) -> tuple[FloatArray, FloatArray]:
        """Pace and weight, (k,) each; raises PolicyError for NaN, and for numbers too large or too small to compute with."""
        pace, weight = self.pace(jobs, table, machine), self.weight(jobs, table, machine)
        _check_column(self, "paces", pace, jobs, zero=False)
        _check_column(self, "weights", weight, jobs, zero=True)
        return pace, weight

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities."""
        pace, weight = self.aging(queue.jobs, queue.table, snapshot.machine)
        x = queue.waited_s(snapshot.now) / pace
        return x * weight if self.kind == "linear" else x * x * x * weight


class AffineOrder(QueuePolicy):
    """A queue order whose priorities are lines: offset + w * slope, w the seconds waited; slopes and offsets of any sign.

    Subclasses give the two columns, which fast engines read; the priorities that follow from them stand here once.
    """

    kind: ClassVar[OrderKind] = "affine"

    def offset(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) priorities at submission, for rows (k,) of the job table. A job's never changes, whoever else is asked for."""
        return np.zeros(len(jobs))

    def slope(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) gains a second, for rows (k,) of the job table. A job's never changes, whoever else is asked for."""
        return np.ones(len(jobs))

    @final
    def lines(self, jobs: IntArray, table: JobTable, machine: Machine) -> tuple[FloatArray, FloatArray]:
        """Offset and slope, (k,) each; raises PolicyError for NaN, and for numbers too large or too small to compute with."""
        offset, slope = self.offset(jobs, table, machine), self.slope(jobs, table, machine)
        _check_column(self, "offsets", offset, jobs, zero=True)
        _check_column(self, "slopes", slope, jobs, zero=True)
        return offset, slope

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """(n_queued,) priorities."""
        offset, slope = self.lines(queue.jobs, queue.table, snapshot.machine)
        return offset + queue.waited_s(snapshot.now) * slope


def _check_column(order: QueuePolicy, name: str, column: FloatArray, jobs: IntArray, *, zero: bool) -> None:
    """Raise PolicyError where a column (k,) of jobs (k,) cannot be computed with."""
    if column.shape != jobs.shape or not _moderate(column, zero):
        raise PolicyError(
            f"{type(order).__name__} must give {len(jobs)} {name} between {1 / EXTREME:g} and {EXTREME:g} in size"
            f"{', or 0' if zero else ''}, got {column!r}",
            by=order,
        )


def _moderate(column: FloatArray, zero: bool) -> bool:
    """Whether (k,) numbers are neither too large nor too small, 0 being allowed where `zero` says so; False for NaN."""
    size = np.abs(column)
    if not len(size):
        return True
    least, most = np.minimum.reduce(size), np.maximum.reduce(size)  # NaN if one is
    if zero and least == 0:
        return bool(most <= EXTREME) and bool((size[size != 0] >= 1 / EXTREME).all())
    return bool(least >= 1 / EXTREME) and bool(most <= EXTREME)
