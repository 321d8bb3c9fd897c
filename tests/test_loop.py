"""The scheduling loop rejects decisions about jobs that do not wait."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from poolwise.engines import simulate
from poolwise.errors import PolicyError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import Changes, Decisions, Machine, Queue, Reject, Snapshot, Workload
from poolwise.schedulers.list import ListScheduler

LATER = Workload.of(np.array([0, 5, 50]) * 10**9, np.full(3, 10**10))


class Deciding(Scheduler, Dispatcher):
    """A list scheduler that also rejects the jobs returned by a function of (pass, queue, snapshot)."""

    def __init__(self, reject: Callable[[int, Queue, Snapshot], list[int]], first: bool = False) -> None:
        self.reject, self.first, self.count = reject, first, 0

    def open(self, *given: Any) -> "Deciding":
        self.list = ListScheduler().open(*given)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        rejects = tuple(Reject(job, "because") for job in self.reject(self.count, queue, snapshot))
        self.count += 1
        return Decisions((*rejects, *(() if rejects else self.list.schedule(queue, snapshot, changes).entries)))


@pytest.mark.parametrize(
    ("reject", "row"),
    [
        (lambda number, queue, snapshot: [2] if number == 0 else [], 2),  # has not arrived
        (lambda number, queue, snapshot: [0] if number == 1 else [], 0),  # runs
        (lambda number, queue, snapshot: [1, 1] if number == 1 else [], 1),  # has just been rejected
    ],
    ids=["not there yet", "running", "rejected"],
)
def test_rejecting_a_job_that_does_not_wait_is_an_error(reject: Callable[..., list[int]], row: int) -> None:
    with pytest.raises(PolicyError, match=f"job in row {row}, which is not waiting"):
        simulate(LATER, Machine.flat(1), Deciding(reject))


def test_rejected_waiting_job_is_counted_by_reason() -> None:
    schedule = simulate(LATER, Machine.flat(1), Deciding(lambda number, queue, snapshot: [1] if number == 1 else [])).schedule
    assert (schedule.rejected, schedule.waiting) == ({1: "because"}, ())
    assert schedule.done.tolist() == [True, False, True]
