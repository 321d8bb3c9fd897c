"""Warm start of a replay: runs that started before it, each at its recorded placement."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.events import run_ends
from poolwise.kernels.jit import long_entry
from poolwise.kernels.shared_nodes.runs import end_first, start
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.kernels.shared_nodes.waiting import keeps_tree, rebuild_tree


@long_entry
def resume(state: SharedState, holds: IntArray, devices: IntArray) -> bool:
    """Restore the runs in `runs.job` and `.start` at `now.time`, and end those that end at that time.

    `holds`, (n_part, 2), has the node of each part and the MiB that it borrows from a pool; `devices`, (n_part, n_type), its
    devices as bits. Return False if a run would have ended before that time.
    """
    nodes, runs, now = state.nodes, state.runs, state.now
    time, nothing_ends, part, types, k = now.time, True, 0, nodes.idle.shape[1], 0
    while part < holds.shape[0]:
        parts = state.kinds.parts[state.jobs.kind[runs.job[k]]]
        for p in range(parts):
            n = holds[part + p, 0]
            nodes.chosen[p], nodes.borrow[p] = n, holds[part + p, 1]
            for t in range(types):  # hide all other devices, so that exactly these are allocated
                devices[part + p, t], nodes.idle[n, t] = nodes.idle[n, t] & ~devices[part + p, t], devices[part + p, t]
        now.time = runs.start[k]
        start(runs.job[k], state)
        for p in range(parts):
            for t in range(types):
                nodes.idle[holds[part + p, 0], t] = devices[part + p, t]
        nothing_ends &= runs.end[k] >= time
        part += parts
        k += 1
    now.time = time
    while run_ends(state):
        end_first(state)
    if keeps_tree(state):
        rebuild_tree(state)
    return nothing_ends
