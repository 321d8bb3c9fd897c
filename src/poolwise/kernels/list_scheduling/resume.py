"""Warm start of a replay: runs that started before it, each at its recorded placement."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import entry
from poolwise.kernels.list_scheduling.racks import copy
from poolwise.kernels.list_scheduling.runs import end_first, start
from poolwise.kernels.list_scheduling.state import RUNNING, TIME, JobArrays, RackArrays, Rules, RunArrays


@entry
def resume(
    jobs: JobArrays, rules: Rules, racks: RackArrays, runs: RunArrays, take: IntArray, borrow: IntArray, now: IntArray
) -> bool:
    """Restore the runs in `runs.job` and `.start` at `now[TIME]`, and end those that end at that time.

    `take` and `borrow`, (n_run, n_rack) each, are their nodes and MiB. Return False if a run would have ended before.
    """
    time, nothing_ends = now[TIME], True
    for k in range(take.shape[0]):
        copy(take[k], racks.take)
        copy(borrow[k], racks.borrow)
        now[TIME] = runs.start[k]
        start(runs.job[k], jobs, rules, racks, runs, now)
        nothing_ends &= runs.end[k] >= time
    now[TIME] = time
    while now[RUNNING] > 0 and runs.end[runs.ending[0]] == time:
        end_first(rules, racks, runs, now)
    return nothing_ends
