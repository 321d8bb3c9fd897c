"""Queue orders: which waiting jobs are considered first."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal, Protocol, final

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.model import Accounting, JobTable, Machine, Queue, Snapshot
from poolwise.model.priority_formula import PriorityFormula

OrderKind = Literal["static", "linear", "cubic", "affine", "capped", "recalculated", "opaque"]
EXTREME = 1e60
"""Largest magnitude in the columns of an `AgingOrder` or `AffineOrder`; its inverse is the smallest. It prevents overflows."""


class QueuePolicy(Protocol):
    """Interface of a queue order: the order in which waiting jobs are considered. Ties: earlier submission, then lower id.

    Attributes
    ----------
    kind : promise about the priorities that lets engines skip calls: "static" (a job's priority never changes, and depends on
        the job table and the machine alone), "linear" or "cubic" (a function of the time waited: see `AgingOrder`), "affine"
        (linear, plus a value at submission: see `AffineOrder`), "capped" (that of another order until a job has waited too
        long: see `CappedOrder`), "recalculated" (it changes at intervals: see `RecalculatedOrder`) or "opaque" (no promise;
        computed for the whole queue in each pass)

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import QueuePolicy
    >>> class Widest(QueuePolicy):
    ...     kind = "static"
    ...
    ...     def priority(self, queue, snapshot):
    ...         return queue.table.nodes[queue.jobs].astype(float)
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min", requests={"nodes": [1, 4]})
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(4), order=Widest(), engine="reference")
    >>> run.frame()["wait_s"].to_list()
    [60.0, 0.0]
    """

    kind: ClassVar[OrderKind]

    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the priorities of the waiting jobs.

        Parameters
        ----------
        queue
            The waiting jobs; column values are `queue.table.COLUMN[queue.jobs]`.
        snapshot
            The state now.

        Returns
        -------
        (n_queued,) float64, higher first; row k belongs to `queue.jobs[k]`. NaN is an error.
        """
        ...


class RecalculatedOrder(QueuePolicy):
    """A queue order whose priorities change only when they are recalculated, at equal intervals.

    Compiled engines call it only at recalculations.

    Examples
    --------
    >>> import numpy as np
    >>> from poolwise.interfaces import RecalculatedOrder
    >>> class Hourly(RecalculatedOrder):
    ...     def last(self, now):
    ...         return now - now % (3600 * 10**9)
    ...
    ...     def following(self, recalculated):
    ...         return recalculated + 3600 * 10**9
    ...
    ...     def at(self, recalculated, jobs, accounting):
    ...         return np.minimum(recalculated - accounting.table.submit[jobs], 0).astype(float)
    >>> Hourly().last(5000 * 10**9) // 10**9
    3600
    """

    kind: ClassVar[OrderKind] = "recalculated"

    @abstractmethod
    def last(self, now: int) -> int:
        """Return the time (ns) of the last recalculation up to a time."""
        ...

    @abstractmethod
    def following(self, recalculated: int) -> int:
        """Return the time (ns) of the recalculation that follows the one at a given time."""
        ...

    @abstractmethod
    def at(self, recalculated: int, jobs: IntArray, accounting: Accounting) -> FloatArray:
        """Return the (k,) priorities of jobs, (k,) rows, from one recalculation to the next.

        `accounting` shows the runs at a time between the two. Ends and starts after the recalculation must not change the
        priorities. Jobs may have arrived after the recalculation.
        """
        ...

    def formula(self, machine: Machine, jobs: JobTable) -> PriorityFormula | None:
        """Return the priorities of all jobs as a sum that kernels can recalculate; None if they have another form.

        Kernels on shared nodes use it if backfilling runs at intervals and all partitions have the same tier. Otherwise engines
        call `at`.
        """
        return None

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return the priorities as of the last recalculation, (n_queued,)."""
        return self.at(self.last(snapshot.now), queue.jobs, snapshot.accounting())


class PreparedOrder(QueuePolicy):
    """A queue order that must be opened for each run, because it reads files or keeps caches from pass to pass.

    Examples
    --------
    >>> from poolwise.interfaces import PreparedOrder
    >>> from poolwise.policies import Multifactor
    >>> issubclass(Multifactor, PreparedOrder)
    True
    """

    def open(self) -> QueuePolicy:
        """Begin a run; return an order that holds the contents of the files, and the caches."""
        return self

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError, or warn, for problems of the jobs that are known before a run."""
        return


def opened(order: QueuePolicy) -> QueuePolicy:
    """Return the order for a run: a `PreparedOrder` is opened, and any other order returned unchanged."""
    return order.open() if isinstance(order, PreparedOrder) else order


def checked_priorities(policy: object, priority: FloatArray, n: int) -> FloatArray:
    """Return the priorities that a policy computed for n jobs, (n,); raises PolicyError unless all of them are numbers."""
    try:
        values = np.asarray(priority)
        good = values.shape == (n,) and not np.isnan(values).any()
    except (TypeError, ValueError):  # not an array, or not of numbers
        good = False
    if not good:
        problem = f"{type(policy).__name__} must return {n} priorities without NaN, got {priority!r}"
        raise PolicyError(problem, by=policy)
    return values


class AgingOrder(QueuePolicy):
    """A queue order whose priorities are a function of the time waited and of two numbers of each job, its pace and weight.

    With w the seconds waited and x = w / pace, the priority is x * weight if `kind` is "linear", and x * x * x * weight
    if it is "cubic", multiplied from the left. The slope of a linear order is thus weight / pace; it may have any sign.
    Subclasses define the two columns, which compiled engines read.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import AgingOrder
    >>> class Wide(AgingOrder):
    ...     def weight(self, jobs, table, machine):
    ...         return table.nodes[jobs] ** 0.5
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min", requests={"nodes": [1, 4]})
    >>> poolwise.simulate(workload, poolwise.Machine.flat(4), order=Wide(), engine="reference").jobs
    2
    """

    kind: ClassVar[OrderKind] = "linear"

    def pace(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return the paces of the jobs in (k,) rows (s), never 0. A job's pace must not depend on time or other jobs."""
        return np.ones(len(jobs))

    def weight(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return the weights of the jobs in (k,) rows. A job's weight must not depend on time or other jobs."""
        return np.ones(len(jobs))

    @final
    def aging(self, jobs: IntArray, table: JobTable, machine: Machine) -> tuple[FloatArray, FloatArray]:
        """Return pace and weight, (k,) each; raises PolicyError for NaN, and for numbers too large or too small."""
        pace, weight = self.pace(jobs, table, machine), self.weight(jobs, table, machine)
        _check_column(self, "paces", pace, jobs, zero=False)
        _check_column(self, "weights", weight, jobs, zero=True)
        return pace, weight

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return (n_queued,) priorities."""
        pace, weight = self.aging(queue.jobs, queue.table, snapshot.machine)
        x = queue.waited_s(snapshot.now) / pace
        return x * weight if self.kind == "linear" else x * x * x * weight


class AffineOrder(QueuePolicy):
    """A queue order whose priorities are linear: offset + w * slope, with w the seconds waited; both may have any sign.

    Subclasses define the two columns, which compiled engines read.

    Examples
    --------
    >>> import poolwise
    >>> from poolwise.interfaces import AffineOrder
    >>> class NarrowFirst(AffineOrder):
    ...     def offset(self, jobs, table, machine):
    ...         return -table.nodes[jobs].astype(float)
    >>> workload = poolwise.Workload.of(["0 s", "0 s"], "1 min", requests={"nodes": [4, 1]})
    >>> run = poolwise.simulate(workload, poolwise.Machine.flat(4), order=NarrowFirst(), engine="reference")
    >>> run.frame()["wait_s"].to_list()
    [60.0, 0.0]
    """

    kind: ClassVar[OrderKind] = "affine"

    def offset(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return the priorities at submission of the jobs in (k,) rows of the job table; independent of time and other jobs."""
        return np.zeros(len(jobs))

    def slope(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return the gains per second of the jobs in (k,) rows of the job table; independent of time and other jobs."""
        return np.ones(len(jobs))

    @final
    def lines(self, jobs: IntArray, table: JobTable, machine: Machine) -> tuple[FloatArray, FloatArray]:
        """Return offset and slope, (k,) each; raises PolicyError for NaN, and for numbers too large or too small."""
        offset, slope = self.offset(jobs, table, machine), self.slope(jobs, table, machine)
        _check_column(self, "offsets", offset, jobs, zero=True)
        _check_column(self, "slopes", slope, jobs, zero=True)
        return offset, slope

    @final
    def priority(self, queue: Queue, snapshot: Snapshot) -> FloatArray:
        """Return (n_queued,) priorities."""
        offset, slope = self.lines(queue.jobs, queue.table, snapshot.machine)
        return offset + queue.waited_s(snapshot.now) * slope


def _check_column(order: QueuePolicy, name: str, column: FloatArray, jobs: IntArray, *, zero: bool) -> None:
    """Raise PolicyError if a column for some jobs, (k,), has the wrong length or contains numbers out of range."""
    if column.shape != jobs.shape or not _moderate(column, zero):
        raise PolicyError(
            f"{type(order).__name__} must return {len(jobs)} {name} between {1 / EXTREME:g} and {EXTREME:g} in size"
            f"{', or 0' if zero else ''}, got {column!r}",
            by=order,
        )


def _moderate(column: FloatArray, zero: bool) -> bool:
    """Return whether (k,) numbers are neither too large nor too small; 0 counts as valid with `zero`, NaN never does."""
    size = np.abs(column)
    if not len(size):
        return True
    least, most = np.minimum.reduce(size), np.maximum.reduce(size)  # NaN if one is
    if zero and least == 0:
        return bool(most <= EXTREME) and bool((size[size != 0] >= 1 / EXTREME).all())
    return bool(least >= 1 / EXTREME) and bool(most <= EXTREME)
