"""Record of runs that all engines of list scheduling fill, and its conversion to a schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray
from poolwise.engines.kernel_arrays import blank
from poolwise.engines.list_columns import ListColumns
from poolwise.kernels.common.state import RunArrays
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.model import Outcome, Schedule

T = TypeVar("T", bound=np.generic)


def with_more_rows(runs: RunArrays, started: int, rows: int) -> RunArrays:
    """Return the runs with at least `rows` placement rows, and at least twice the old number; keep rows of `started` runs."""
    used = int(runs.offset[started])
    larger = {name: blank(max(rows, 2 * len(runs.owner))) for name in ("owner", "resource", "amount")}
    for name, column in larger.items():  # untouched pages use no memory
        column[:used] = getattr(runs, name)[:used]
    return runs._replace(**larger)


def with_more_runs(runs: RunArrays, more: int) -> RunArrays:
    """Return the runs with space for at least `more` additional ones."""
    return runs._replace(**{name: longer(getattr(runs, name), more) for name in ("job", "start", "end", "expected", "offset")})


def longer(column: NDArray[T], more: int) -> NDArray[T]:
    """Return a column with at least `more` additional rows, growing geometrically; unchanged if `more` is not positive."""
    if more <= 0:
        return column
    return np.concatenate([column, np.zeros(max(more, len(column) // 2), dtype=column.dtype)])


def schedule_of(
    columns: ListColumns, state: RackState | SharedState, rejected: Mapping[int, str], lost: BoolArray | None = None
) -> Schedule:
    """Build the schedule from the record of a replay; `lost` flags the runs that were lost, None if none was."""
    runs, started = state.runs, int(state.now.started)
    rows = int(runs.offset[started])
    outcome = (Outcome.FINISHED,) * started
    if lost is not None:
        outcome = tuple(Outcome.LOST if gone else Outcome.FINISHED for gone in lost[:started].tolist())
    return Schedule(
        machine=columns.machine,
        workload=columns.workload,
        job=runs.job[:started],
        start=runs.start[:started],
        end=runs.end[:started],
        tasks=columns.workload.tasks[runs.job[:started]],
        outcome=outcome,
        offset=runs.offset[: started + 1],
        owner=runs.owner[:rows],
        resource=runs.resource[:rows],
        amount=runs.amount[:rows],
        rejected=rejected,
        waiting=tuple(np.flatnonzero(state.queue.where >= 0).tolist()),
        passes=int(state.now.passes),
        refused={},
    )
