"""Runs that have ended, for policies that depend on the past, such as fair-share orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poolwise.arrays import IntArray

if TYPE_CHECKING:
    from poolwise.model.job_table import JobTable
    from poolwise.model.machine import Machine


class RunHistory:
    """Runs that ended, in the order of their ends. The platform writes it, snapshots read it; it only grows.

    Its columns have equal length. A platform that reuses rows for later jobs keeps no history.
    """

    def __init__(self) -> None:
        self._rows = np.zeros((3, 64), dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: int, start: int, end: int) -> None:
        """Append a run of a job (row of the job table); times in ns. It must not end before the runs already in the history."""
        if self._count == self._rows.shape[1]:
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)], axis=1)
        self._rows[:, self._count] = job, start, end
        self._count += 1

    @property
    def job(self) -> IntArray:
        """(n_ended,) rows of the job table."""
        return self._rows[0, : self._count]

    @property
    def start(self) -> IntArray:
        """(n_ended,) starts, ns."""
        return self._rows[1, : self._count]

    @property
    def end(self) -> IntArray:
        """(n_ended,) ends, ns, ascending."""
        return self._rows[2, : self._count]


class Accounting(NamedTuple):
    """The runs so far, as columns: the data on which a queue order that is recalculated at intervals may depend.

    Attributes
    ----------
    now : ns
    machine, table : the machine, and the jobs that have arrived or will
    ended : runs that have ended; None if the platform keeps no history
    job, start : (n_run,) row of the job table and start (ns) of each current run, in the order of starts
    """

    now: int
    machine: Machine
    table: JobTable
    ended: RunHistory | None
    job: IntArray
    start: IntArray
