"""Simulations in which jobs arrive once others have ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poolwise.arrays import IntArray
from poolwise.interfaces import PerformanceModel
from poolwise.model import Event, Machine, Workload
from poolwise.platforms.simulated import ARRIVAL, Simulation


@dataclass(frozen=True, slots=True)
class _Submission:
    """Submission of a job (row of the workload)."""

    row: int


class DeferredArrivals(Simulation):
    """A simulation whose arrivals depend on its schedule; takes the parameters of `Simulation`.

    Jobs are appended to the table as they arrive, with the time of their arrival. Their rows therefore differ from those of the
    workload.
    """

    def __init__(
        self,
        workload: Workload,
        machine: Machine,
        model: PerformanceModel,
        estimate: PerformanceModel | None = None,
        **settings: Any,
    ) -> None:
        none = np.zeros(0, dtype=np.int64)
        super().__init__(replace(workload, **columns_of(workload, none)), machine, model, estimate, **settings)
        self._source, self._row, self._place = workload, list[int](), dict[int, int]()
        self._jobs = self.table = workload.table.taken(none)
        self._exact_estimate = self.model is self.estimate and np.array_equal(workload.duration, workload.requested)
        self._left = workload.tasks.tolist()  # tasks that are not over

    def row_in_table(self, row: int) -> int | None:
        """Return the row of the job table for a row of the workload; None before the job arrives."""
        return self._place.get(row)

    def row_in_workload(self, row: int) -> int:
        """Return the row of the workload for a row of the job table."""
        return self._row[row]

    def _submit(self, row: int, time: int) -> None:
        """Let a job (row of the workload) arrive at a time, ns."""
        self._push(time, ARRIVAL, _Submission(row))

    def _apply(self, event: Any) -> Iterable[Event]:
        if not isinstance(event, _Submission):
            return super()._apply(event)
        job = self._source.table.taken(np.array([event.row]), submit=np.array([self.now], dtype=np.int64))
        self._place[event.row] = len(self._row)
        self._row.append(event.row)
        return (self._add_job(job, self._source.duration[event.row : event.row + 1]),)


def columns_of(workload: Workload, rows: IntArray) -> dict[str, Any]:
    """Return the columns of a workload for some rows, by name."""
    return {
        **{name: getattr(workload, name)[rows] for name in ("id", "submit", "duration", "requested", "tasks")},
        "requests": {name: column[rows] for name, column in workload.requests.items()},
        "attributes": {name: column[rows] for name, column in workload.attributes.items()},
    }
