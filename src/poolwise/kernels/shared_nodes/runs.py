"""Starts and ends of runs."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.shared_nodes.nodes import change, note_released
from poolwise.kernels.shared_nodes.slowdown import expected, runtime
from poolwise.kernels.shared_nodes.state import (
    AWAITED,
    MEMORY,
    RESERVATION,
    ROWS,
    RUNNING,
    SETTLED,
    SHADOW_KIND,
    STARTED,
    STATE,
    TIME,
    WAITING,
    WARM_FIRST,
    WARM_LAST,
    KindArrays,
    NodeArrays,
    SharedJobs,
    SharedRules,
    SharedRuns,
    TimelineArrays,
)
from poolwise.kernels.shared_nodes.timeline import add_part, remove_part
from poolwise.units import HORIZON


@step
def start(
    job: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Start a job on the nodes in `nodes.chosen`, with `nodes.borrow` from their pools."""
    k, kind = now[STARTED], jobs.nodes[job]
    runs.job[k], runs.start[k] = job, now[TIME]
    length = runtime(job, rules, jobs, kinds, nodes)
    runs.end[k] = now[TIME] + min(length, HORIZON + 1 - now[TIME])  # saturates just beyond the horizon
    length = expected(job, rules, jobs, kinds, nodes)
    runs.expected[k] = now[TIME] + min(length, HORIZON - now[TIME])
    first = runs.part[k]
    row = runs.offset[k]
    for part in range(kinds.parts[kind]):
        n, borrow = nodes.chosen[part], nodes.borrow[part]
        runs.node[first + part], runs.borrow[first + part] = n, borrow
        local = kinds.request[kind, MEMORY] - borrow
        row = _record(n, kind, local, borrow, row, kinds, nodes, runs)
        change(n, kind, local, -1, kinds, nodes)
        if borrow > 0:
            nodes.pool[nodes.pool_of[n]] -= borrow
        add_part(n, k, runs.expected[k], kind, local, timeline, now)
    runs.part[k + 1], runs.offset[k + 1] = first + kinds.parts[kind], row
    heap.push(runs.ending, now[RUNNING], k, runs.end)
    now[RUNNING] += 1
    now[STARTED] += 1
    now[STATE] += 1
    now[RESERVATION] += 1
    now[SETTLED] = 0
    if jobs.awaited.size > 0:
        now[AWAITED] -= int(jobs.awaited[job])


@inlined
def _record(
    n: int, kind: int, local: int, borrow: int, row: int, kinds: KindArrays, nodes: NodeArrays, runs: SharedRuns
) -> int:
    """Record what one part uses, from row `row` on; return the next row. Devices are allocated here, the lowest first."""
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
def end_first(
    jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, runs: SharedRuns, now: IntArray
) -> None:
    """End the run at the top of the heap."""
    release(heap.pop(runs.ending, now[RUNNING], runs.end), jobs, kinds, nodes, timeline, runs, now)


@step
def release(
    k: int, jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, runs: SharedRuns, now: IntArray
) -> None:
    """Release the capacity of a run that is no longer in the heap."""
    kind = jobs.nodes[runs.job[k]]
    for part in range(runs.part[k], runs.part[k + 1]):
        n, borrow = runs.node[part], runs.borrow[part]
        change(n, kind, remove_part(n, k, timeline, now), 1, kinds, nodes)
        note_released(n, nodes, now)
        if borrow > 0:
            nodes.pool[nodes.pool_of[n]] += borrow
    if nodes.idle.shape[1] > 0:
        _return_devices(k, kind, kinds, nodes, runs)
    if runs.expected[k] != runs.end[k]:
        now[SHADOW_KIND] = -1  # the release came at another time than the reservation assumed
    now[RUNNING] -= 1
    now[STATE] += 1
    now[RESERVATION] += 1
    now[SETTLED] = 0


@step
def _return_devices(k: int, kind: int, kinds: KindArrays, nodes: NodeArrays, runs: SharedRuns) -> None:
    """Release the devices of a run; the rows of a part have the order in which they were recorded."""
    row = runs.offset[k]
    for part in range(runs.part[k], runs.part[k + 1]):
        n = runs.node[part]
        local = kinds.request[kind, MEMORY] - runs.borrow[part]
        for d in range(nodes.order.size):
            row += int((local if d == MEMORY else kinds.request[kind, d]) > 0)
        row += int(runs.borrow[part] > 0)
        for t in range(nodes.idle.shape[1]):
            bit = 0
            for _ in range(kinds.request[kind, nodes.order.size + t]):
                while nodes.device[n, t, bit] != runs.owner[row]:
                    bit += 1
                nodes.idle[n, t] |= 1 << bit
                row += 1


@inlined
def has_rows(rules: SharedRules, runs: SharedRuns, now: IntArray) -> bool:
    """Return whether the record has rows for all starts of a pass; write the rows needed to `now[ROWS]`."""
    now[ROWS] = runs.offset[now[STARTED]] + rules.rows * min(
        (now[WAITING] + now[WARM_LAST] - now[WARM_FIRST]) * rules.parts, rules.cores
    )
    return bool(now[ROWS] <= runs.owner.size)
