"""What compiled replays record of runs, which all families of list scheduling record alike, and the schedule made of it."""

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
    """Runs by number, in the order of their starts; columns have room for more than there are."""

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
        """First row of the run in `owner`, `resource` and `amount`; one more than runs."""
        ...

    @property
    def owner(self) -> IntArray:
        """Owners that were taken from."""
        ...

    @property
    def resource(self) -> IntArray:
        """Columns of the machine's resources."""
        ...

    @property
    def amount(self) -> IntArray:
        """Amounts taken."""
        ...

    @property
    def ending(self) -> IntArray:
        """Numbers of the runs at work; the rest is undefined."""
        ...


def larger_columns(runs: RunRecord, started: int, rows: int) -> dict[str, IntArray]:
    """Copy what `started` runs took into columns with room for `rows` amounts, and at least twice as many as there was."""
    used = int(runs.offset[started])
    larger = {name: blank(max(rows, 2 * len(runs.owner))) for name in ("owner", "resource", "amount")}
    for name, column in larger.items():  # rows that are not written take no memory
        column[:used] = getattr(runs, name)[:used]
    return larger


def longer(column: NDArray[T], more: int) -> NDArray[T]:
    """A column with at least so many rows more, and so many that it seldom has to grow; itself if none are wanted."""
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
    """Build the schedule from the record of `started` runs, and from where jobs are in the queue (-1: they do not wait).

    `lost` says of each run whether it was lost; none was if it is None.
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
