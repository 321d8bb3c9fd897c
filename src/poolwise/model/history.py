"""The runs that have ended, for policies that look back, such as those that let users share a machine by what they used."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import IntArray


class RunHistory:
    """Runs that ended, in the order of their ends. The platform writes it, snapshots read it; it only grows.

    Attributes of a view are arrays of equal length; a platform that renumbers the job table has no history to show.
    """

    def __init__(self) -> None:
        self._rows = np.zeros((3, 64), dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, job: int, start: int, end: int) -> None:
        """Append a run of a job (row of the job table), ns; it ended no earlier than those before it."""
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
        """(n_ended,) ns."""
        return self._rows[1, : self._count]

    @property
    def end(self) -> IntArray:
        """(n_ended,) ns, ascending."""
        return self._rows[2, : self._count]
