"""Warm start of a replay: runs that started before it, each at its recorded placement."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import entry
from poolwise.kernels.list_scheduling.state import Order, Tree
from poolwise.kernels.list_scheduling.tournament import clear, insert
from poolwise.kernels.shared_nodes.runs import end_first, start
from poolwise.kernels.shared_nodes.state import (
    RUNNING,
    TIME,
    WAITING,
    KindArrays,
    NodeArrays,
    SharedJobs,
    SharedQueue,
    SharedRules,
    SharedRuns,
    TimelineArrays,
)


@entry
def resume(
    jobs: SharedJobs,
    kinds: KindArrays,
    order: Order,
    rules: SharedRules,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    queue: SharedQueue,
    tree: Tree,
    runs: SharedRuns,
    holds: IntArray,
    devices: IntArray,
    index: bool,
    now: IntArray,
) -> bool:
    """Restore the runs in `runs.job` and `.start` at `now[TIME]`, and end those that end at that time.

    `holds`, (n_part, 2), has the node of each part and the MiB that it borrows from a pool; `devices`, (n_part, n_type), its
    devices as bits. With `index`, the waiting jobs are inserted into the tree. Return False if a run would have ended before.
    """
    time, nothing_ends, part, types, k = now[TIME], True, 0, nodes.idle.shape[1], 0
    while part < holds.shape[0]:
        parts = kinds.parts[jobs.nodes[runs.job[k]]]
        for p in range(parts):
            n = holds[part + p, 0]
            nodes.chosen[p], nodes.borrow[p] = n, holds[part + p, 1]
            for t in range(types):  # hide all other devices, so that exactly these are allocated
                devices[part + p, t], nodes.idle[n, t] = nodes.idle[n, t] & ~devices[part + p, t], devices[part + p, t]
        now[TIME] = runs.start[k]
        start(runs.job[k], rules, jobs, kinds, nodes, timeline, runs, now)
        for p in range(parts):
            for t in range(types):
                nodes.idle[holds[part + p, 0], t] = devices[part + p, t]
        nothing_ends &= runs.end[k] >= time
        part += parts
        k += 1
    now[TIME] = time
    while now[RUNNING] > 0 and runs.end[runs.ending[0]] == time:
        end_first(jobs, kinds, nodes, timeline, runs, now)
    if index:
        clear(tree)
        for at in range(now[WAITING]):
            insert(queue.job[at], time, jobs, order, tree)
    return nothing_ends
