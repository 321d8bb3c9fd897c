"""The job table of a live cluster: which rows its jobs have, and who waits."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from poolwise.live.slurm.job_request import JobRequest
from poolwise.model import Continuation, JobTable, Renumbered

ROOM = 4096
"""Rows from which on those of finished jobs are left out."""


class JobRows:
    """Rows of jobs by name. A job that comes back after it was withdrawn or has run has another row.

    Attributes
    ----------
    table : the jobs
    """

    def __init__(self, resources: tuple[str, ...], epoch: int, continued: Continuation | None) -> None:
        none = np.zeros(0, dtype=np.int64)
        columns = dict.fromkeys(resources, none)
        self.table = JobTable(none, none, none, none, columns, {"user": none}, draw=none, name=[], epoch=epoch)
        self._continued, self._next = continued, 0 if continued is None else continued.next_draw
        self._waiting: dict[str, tuple[int, JobRequest]] = {}
        self._requests: dict[int, JobRequest] = {}

    def append(self, name: str, request: JobRequest) -> int:
        """Append a job; returns its row."""
        draw = None if self._continued is None else self._continued.draw(name)
        if draw is None:
            draw, self._next = self._next, self._next + 1
        one = {column: np.array([request.amounts.get(column, 0)], dtype=np.int64) for column in self.table.requests}
        number = int(name.partition("_")[0])
        more = JobTable(
            np.array([number], dtype=np.int64),
            np.array([request.submit - self.table.epoch], dtype=np.int64),
            np.array([request.limit], dtype=np.int64),
            np.array([request.tasks], dtype=np.int64),
            one,
            {"user": np.array([request.user], dtype=np.int64)},
            draw=np.array([draw], dtype=np.int64),
            name=[name],
        )
        row = self.table.append(more)[0]
        self._requests[row] = request
        return row

    def arrive(self, name: str, request: JobRequest) -> int:
        """Append a job that waits."""
        row = self.append(name, request)
        self._waiting[name] = row, request
        return row

    def wait_again(self, name: str, row: int) -> None:
        """Let a job wait that was committed and did not start."""
        self._waiting[name] = row, self._requests[row]

    def stop_waiting(self, name: str) -> int | None:
        """Take a job out of those that wait; returns its row, None where it did not."""
        found = self._waiting.pop(name, None)
        return None if found is None else found[0]

    def is_waiting(self, name: str) -> bool:
        """Whether a job waits."""
        return name in self._waiting

    def request(self, name: str) -> JobRequest | None:
        """What a waiting job asks for, None where it does not wait."""
        return self._waiting[name][1] if name in self._waiting else None

    def waiting(self) -> Iterator[tuple[str, JobRequest]]:
        """Iterate over the jobs that wait, and what they ask for."""
        return iter([(name, request) for name, (_, request) in self._waiting.items()])

    def compact(self, running: Collection[int]) -> Renumbered | None:
        """Leave out the rows of jobs that are over, once they are more than half; None where they stay."""
        live = sorted({*running, *(row for row, _ in self._waiting.values())})
        if len(self.table) < ROOM or len(live) * 2 > len(self.table):
            return None
        numbers = {old: new for new, old in enumerate(live)}
        self.table = self.table.taken(np.array(live, dtype=np.int64))
        self._waiting = {name: (numbers[row], request) for name, (row, request) in self._waiting.items()}
        self._requests = {numbers[row]: request for row, request in self._requests.items() if row in numbers}
        return Renumbered(numbers)
