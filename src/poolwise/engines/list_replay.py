"""Parts of a replay that the engines of list scheduling share: serving the kernel's requests, and starting from a state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from poolwise.engines.list_columns import ListColumns
from poolwise.engines.priority_callback import PriorityCallback
from poolwise.engines.progress import ProgressListener, Stride
from poolwise.engines.recalculations import Recalculations
from poolwise.kernels.common.state import COMPUTE_KEYS, DONE, LATE, MAKE_PASS, PAUSED
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.model import Initial, Workload
from poolwise.platforms.simulated import beyond_horizon, ended_before


class Arguments(Protocol):
    """Arguments of a kernel."""

    @property
    def state(self) -> RackState | SharedState:
        """Arrays of every replay."""
        ...


A = TypeVar("A", bound=Arguments)


def run_to_end(
    columns: ListColumns,
    arguments: A,
    call: Callable[[A], int],
    serve: Callable[[int, A, Recalculations], A],
    watch: ProgressListener | None = None,
) -> A:
    """Call a kernel until the replay ends; return its arguments, some of which may have grown.

    This function handles requests for keys, progress and errors; `serve` handles the others and returns the next arguments.
    """
    callback, recalculations = PriorityCallback(columns), Recalculations(columns)
    stride, now = Stride(watch), arguments.state.now
    now.pause = stride.next(0.0, 0)
    while (request := call(arguments)) != DONE:
        if request == COMPUTE_KEYS:
            callback.compute_keys(arguments.state)
        elif request == PAUSED:
            done = now.next + now.started - now.running + now.rejected  # arrivals and ends; a rejected job ends at once
            now.pause = stride.next(float(done) / (2 * len(columns.workload)), int(now.passes))
        elif request == LATE:
            raise beyond_horizon()
        else:
            arguments = serve(request, arguments, recalculations)
    return arguments


def start_from(initial: Initial, workload: Workload, state: RackState | SharedState, resume: Callable[[], bool]) -> None:
    """Start a new replay from initial runs.

    `resume` restores their placements. If it returns False, a run would have ended before the start; this raises InputError.
    """
    jobs, queue, runs, now = state.jobs, state.queue, state.runs, state.now
    count = len(initial.runs)
    runs.job[:count] = [run.job for run in initial.runs]
    runs.start[:count] = [run.start for run in initial.runs]
    arrived = int(np.searchsorted(jobs.submit, initial.now, side="right"))
    waits = np.ones(arrived, dtype=np.bool_)
    waits[runs.job[:count][runs.job[:count] < arrived]] = False
    able = jobs.able[:arrived]
    rows, never = np.flatnonzero(waits & able), np.flatnonzero(waits & ~able)
    n = len(rows)
    queue.job[:n], queue.where[rows], queue.since[:n] = rows, np.arange(n), 0
    runs.rejected[: len(never)] = never
    now.time, now.next, now.waiting, now.rejected = initial.now, arrived, n, len(never)
    if not resume():
        raise ended_before(workload, int(runs.job[:count][runs.end[:count] < initial.now][0]))
    ended = count > now.running
    now.quiet = int(not (ended or n))
    if ended or n or len(never):
        now.passes, now.phase = 1, MAKE_PASS
