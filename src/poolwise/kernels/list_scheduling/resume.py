"""Warm start of a replay: runs that started before it, each at its recorded placement."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.events import run_ends
from poolwise.kernels.jit import long_entry
from poolwise.kernels.list_scheduling.runs import end_first, start_at
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.kernels.list_scheduling.waiting import restart_queue


@long_entry
def resume(state: RackState, take: IntArray, borrow: IntArray) -> bool:
    """Restore the runs in `runs.job` and `.start` at `now.time`, and end those that end at that time.

    `take` and `borrow`, (n_run, n_rack) each, are their nodes and MiB; `state.queue` has the waiting jobs. Return False if a
    run would have ended before that time.
    """
    runs, now = state.runs, state.now
    time, nothing_ends = now.time, True
    for k in range(take.shape[0]):
        now.time = runs.start[k]
        start_at(runs.job[k], take[k], borrow[k], state)
        nothing_ends &= runs.end[k] >= time
    now.time = time
    restart_queue(state)
    while run_ends(state):
        end_first(state)
    return nothing_ends
