"""Job table of a live cluster: the rows of its jobs and the set of waiting jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from poolwise.live.slurm.job_request import JobRequest
from poolwise.model import Continuation, JobTable, Renumbered

COMPACT_ROWS = 4096
"""Table size from which rows of finished jobs are removed."""


class JobRows:
    """Rows of jobs by name; a job that returns after it was withdrawn or has run gets a new row.

    Attributes
    ----------
    table : all jobs
    """

    def __init__(self, resources: tuple[str, ...], epoch: int, continued: Continuation | None) -> None:
        empty = np.zeros(0, dtype=np.int64)
        columns = dict.fromkeys(resources, empty)
        self.table = JobTable(empty, empty, empty, empty, columns, {"user": empty}, draw=empty, name=[], epoch=epoch)
        self._continued, self._next = continued, 0 if continued is None else continued.next_draw
        self._waiting: dict[str, tuple[int, JobRequest]] = {}
        self._requests: dict[int, JobRequest] = {}

    def append(self, name: str, request: JobRequest) -> int:
        """Append a job and return its row."""
        draw = None if self._continued is None else self._continued.draw(name)
        if draw is None:
            draw, self._next = self._next, self._next + 1
        amounts = {column: np.array([request.amounts.get(column, 0)], dtype=np.int64) for column in self.table.requests}
        number = int(name.partition("_")[0])
        more = JobTable(
            np.array([number], dtype=np.int64),
            np.array([request.submit - self.table.epoch], dtype=np.int64),
            np.array([request.limit], dtype=np.int64),
            np.array([request.tasks], dtype=np.int64),
            amounts,
            {"user": np.array([request.user], dtype=np.int64)},
            draw=np.array([draw], dtype=np.int64),
            name=[name],
        )
        row = self.table.append(more)[0]
        self._requests[row] = request
        return row

    def append_waiting(self, name: str, request: JobRequest) -> int:
        """Append a waiting job and return its row."""
        row = self.append(name, request)
        self._waiting[name] = row, request
        return row

    def requeue(self, name: str, row: int) -> None:
        """Return a job to the waiting jobs after its committed start failed."""
        self._waiting[name] = row, self._requests[row]

    def stop_waiting(self, name: str) -> int | None:
        """Remove a job from the waiting jobs; returns its row, None if it was not waiting."""
        found = self._waiting.pop(name, None)
        return None if found is None else found[0]

    def is_waiting(self, name: str) -> bool:
        """Return whether a job is waiting."""
        return name in self._waiting

    def request(self, name: str) -> JobRequest | None:
        """Return the request of a waiting job, None if it is not waiting."""
        return self._waiting[name][1] if name in self._waiting else None

    def waiting(self) -> Iterator[tuple[str, JobRequest]]:
        """Iterate over the waiting jobs and their requests."""
        return iter([(name, request) for name, (_, request) in self._waiting.items()])

    def compact(self, running: Collection[int]) -> Renumbered | None:
        """Remove the rows of finished jobs once they are more than half of the table; returns None if nothing changed."""
        live = sorted({*running, *(row for row, _ in self._waiting.values())})
        if len(self.table) < COMPACT_ROWS or len(live) * 2 > len(self.table):
            return None
        numbers = {old: new for new, old in enumerate(live)}
        self.table = self.table.taken(np.array(live, dtype=np.int64))
        self._waiting = {name: (numbers[row], request) for name, (row, request) in self._waiting.items()}
        self._requests = {numbers[row]: request for row, request in self._requests.items() if row in numbers}
        return Renumbered(numbers)
