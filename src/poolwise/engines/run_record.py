"""Record of runs that all engines of list scheduling fill, and its conversion to a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, IntArray
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.list_columns import ListColumns
from poolwise.model import Outcome, Schedule

T = TypeVar("T", bound=np.generic)


class RunRecord(Protocol):
    """Runs by number, in the order of their starts; columns may be longer than the number of runs."""

    @property
    def job(self) -> IntArray:
        """Row of the job."""
        ...

    @property
    def start(self) -> IntArray:
        """Start, in ns."""
        ...

    @property
    def end(self) -> IntArray:
        """End, in ns."""
        ...

    @property
    def expected(self) -> IntArray:
        """End by the scheduler's estimate, in ns."""
        ...

    @property
    def offset(self) -> IntArray:
        """First row of each run in `owner`, `resource` and `amount`; one entry more than runs."""
        ...

    @property
    def owner(self) -> IntArray:
        """Owners of the allocated resources."""
        ...

    @property
    def resource(self) -> IntArray:
        """Columns of the machine's resources."""
        ...

    @property
    def amount(self) -> IntArray:
        """Allocated amounts."""
        ...

    @property
    def ending(self) -> IntArray:
        """Numbers of the current runs, at the front; the rest is undefined."""
        ...


def larger_columns(runs: RunRecord, started: int, rows: int) -> dict[str, IntArray]:
    """Copy the placements of `started` runs to columns with at least `rows` rows and twice the previous capacity."""
    used = int(runs.offset[started])
    larger = {name: blank(max(rows, 2 * len(runs.owner))) for name in ("owner", "resource", "amount")}
    for name, column in larger.items():  # untouched pages use no memory
        column[:used] = getattr(runs, name)[:used]
    return larger


def longer(column: NDArray[T], more: int) -> NDArray[T]:
    """Return a column with at least `more` additional rows, growing geometrically; itself if `more` is not positive."""
    if more <= 0:
        return column
    return np.concatenate([column, np.zeros(max(more, len(column) // 2), dtype=column.dtype)])


def schedule_of(
    columns: ListColumns,
    runs: RunRecord,
    where: IntArray,
    started: int,
    passes: int,
    rejected: Mapping[int, str],
    lost: BoolArray | None = None,
) -> Schedule:
    """Build the schedule from the record of `started` runs, and from the queue positions of jobs (-1: not waiting).

    `lost` flags the runs that were lost; None if none was.
    """
    rows = int(runs.offset[started])
    return Schedule(
        machine=columns.machine,
        workload=columns.workload,
        job=runs.job[:started],
        start=runs.start[:started],
        end=runs.end[:started],
        tasks=columns.workload.tasks[runs.job[:started]],
        outcome=(Outcome.FINISHED,) * started
        if lost is None
        else tuple(Outcome.LOST if gone else Outcome.FINISHED for gone in lost.tolist()),
        offset=runs.offset[: started + 1],
        owner=runs.owner[:rows],
        resource=runs.resource[:rows],
        amount=runs.amount[:rows],
        rejected=rejected,
        waiting=tuple(np.flatnonzero(where >= 0).tolist()),
        passes=passes,
        refused={},
    )
