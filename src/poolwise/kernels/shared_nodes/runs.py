"""Starts and ends of runs."""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.common.events import begin_run
from poolwise.kernels.common.state import RunArrays
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.nodes import change, note_released
from poolwise.kernels.shared_nodes.slowdown import expected, runtime
from poolwise.kernels.shared_nodes.state import MEMORY, KindArrays, NodeArrays, SharedState
from poolwise.kernels.shared_nodes.timeline import add_part, remove_part


@step
def start(job: int, state: SharedState) -> None:
    """Start a job on the nodes in `nodes.chosen`, with `nodes.borrow` from their pools."""
    kinds, nodes, runs, now, parts = state.kinds, state.nodes, state.runs, state.now, state.parts
    kind, k = state.jobs.kind[job], begin_run(job, runtime(job, state), expected(job, state), state)
    first = parts.first[k]
    row = runs.offset[k]
    for part in range(kinds.parts[kind]):
        n, borrow = nodes.chosen[part], nodes.borrow[part]
        parts.node[first + part], parts.borrow[first + part] = n, borrow
        local = kinds.request[kind, MEMORY] - borrow
        row = _record(n, kind, local, borrow, row, kinds, nodes, runs)
        change(n, kind, local, -1, kinds, nodes)
        if borrow > 0:
            nodes.pool[nodes.pool_of[n]] -= borrow
        add_part(n, k, runs.expected[k], kind, local, state.timeline, now)
    parts.first[k + 1], runs.offset[k + 1] = first + kinds.parts[kind], row
    now.version += 1
    now.reservation += 1


@inlined
def _record(n: int, kind: int, local: int, borrow: int, row: int, kinds: KindArrays, nodes: NodeArrays, runs: RunArrays) -> int:
    """Record the amounts that one part uses, from row `row`; return the next row. Devices are allocated here, lowest first."""
    for k in range(nodes.order.size):
        d = nodes.order[k]
        amount = local if d == MEMORY else kinds.request[kind, d]
        if amount > 0:
            runs.owner[row], runs.resource[row], runs.amount[row] = nodes.owner[n], nodes.column[d], amount
            row += 1
    if borrow > 0:
        runs.owner[row], runs.resource[row], runs.amount[row] = nodes.pool_owner[nodes.pool_of[n]], nodes.column[MEMORY], borrow
        row += 1
    for t in range(nodes.idle.shape[1]):
        d = nodes.order.size + t
        wanted, bit = kinds.request[kind, d], 0
        while wanted > 0:
            if nodes.idle[n, t] >> bit & 1:
                nodes.idle[n, t] ^= 1 << bit
                runs.owner[row], runs.resource[row], runs.amount[row] = nodes.device[n, t, bit], nodes.column[d], 1
                row += 1
                wanted -= 1
            bit += 1
    return int(row)


@step
def end_first(state: SharedState) -> None:
    """End the run at the top of the heap."""
    runs = state.runs
    release(heap.pop(runs.ending, state.now.running, runs.end), state)


@step
def release(k: int, state: SharedState) -> None:
    """Release the capacity of a run that is no longer in the heap."""
    nodes, runs, now, parts = state.nodes, state.runs, state.now, state.parts
    kind = state.jobs.kind[runs.job[k]]
    for part in range(parts.first[k], parts.first[k + 1]):
        n, borrow = parts.node[part], parts.borrow[part]
        change(n, kind, remove_part(n, k, state.timeline, now), 1, state.kinds, nodes)
        note_released(n, nodes, now)
        if borrow > 0:
            nodes.pool[nodes.pool_of[n]] += borrow
    if nodes.idle.shape[1] > 0:
        _return_devices(k, kind, state)
    if runs.expected[k] != runs.end[k]:
        now.shadow_kind = -1  # the release came at another time than the reservation assumed
    now.running -= 1
    now.version += 1
    now.reservation += 1
    now.settled = 0


@step
def _return_devices(k: int, kind: int, state: SharedState) -> None:
    """Release the devices of a run; the rows of a part have the order in which they were recorded."""
    runs, parts, kinds, nodes = state.runs, state.parts, state.kinds, state.nodes
    row = runs.offset[k]
    for part in range(parts.first[k], parts.first[k + 1]):
        n = parts.node[part]
        local = kinds.request[kind, MEMORY] - parts.borrow[part]
        for d in range(nodes.order.size):
            row += int((local if d == MEMORY else kinds.request[kind, d]) > 0)
        row += int(parts.borrow[part] > 0)
        for t in range(nodes.idle.shape[1]):
            bit = 0
            for _ in range(kinds.request[kind, nodes.order.size + t]):
                while nodes.device[n, t, bit] != runs.owner[row]:
                    bit += 1
                nodes.idle[n, t] |= 1 << bit
                row += 1


@inlined
def has_rows(state: SharedState) -> bool:
    """Return whether the record has rows for all starts of a pass; write the rows needed to `now.rows`."""
    rules, runs, now = state.rules, state.runs, state.now
    now.rows = runs.offset[now.started] + rules.rows * min(
        (now.waiting + now.warm_last - now.warm_first) * rules.parts, rules.cores
    )
    return bool(now.rows <= runs.owner.size)
