"""What a head is promised that may take memory of pools: nodes that share a pool cannot be looked at one by one.

The machine at the shadow time is written down (`ThenArrays`). It is kept while jobs of the same kind are the head, and that
is exact: see `kernels.list_scheduling.reservation.reserve`. Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.shared_nodes.state import (
    KEPT,
    MEMORY,
    RUNNING,
    SHADOW,
    TIME,
    KindArrays,
    NodeArrays,
    SharedJobs,
    SharedRuns,
    ThenArrays,
)
from poolwise.units import OVERDUE


@step
def promise(
    kind: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    then: ThenArrays,
    runs: SharedRuns,
    is_overdue: bool,
    now: IntArray,
) -> None:
    """Find the shadow time of a head that does not fit now, and the machine as it will be then."""
    if now[KEPT] == kind and not is_overdue:
        return
    now[KEPT] = -1 if is_overdue else kind
    count, due, ends = now[RUNNING], then.due, then.ends
    for k in range(count):
        run = runs.ending[k]
        due[k], ends[run] = run, runs.expected[run]
        if ends[run] <= now[TIME]:
            ends[run] = now[TIME] + OVERDUE
    heap.arrange(due, count, ends)
    for k in range(count - 1, -1, -1):  # a heap sort: the earliest last
        due[k] = heap.pop(due, k + 1, ends)
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        _foresee(ends[due[count - 1 - middle]], jobs, kinds, nodes, then, runs, now)
        if holds(kind, kinds, nodes, then):
            high = middle
        else:
            low = middle + 1
    now[SHADOW] = ends[due[count - 1 - low]]
    _foresee(now[SHADOW], jobs, kinds, nodes, then, runs, now)


@step
def _foresee(
    time: int, jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, then: ThenArrays, runs: SharedRuns, now: IntArray
) -> None:
    """Let the runs end that are expected to until a time, included."""
    leaves, dims = nodes.top.shape[0] // 2, nodes.top.shape[1]
    for n in range(nodes.rack.size):
        for d in range(dims):
            then.free[n, d] = nodes.top[leaves + n, d]
    for p in range(nodes.pool.size):
        then.pool[p] = nodes.pool[p]
    for i in range(now[RUNNING]):
        run = then.due[i]
        if then.ends[run] > time:
            continue
        kind = jobs.nodes[runs.job[run]]
        for part in range(runs.part[run], runs.part[run + 1]):
            n, lack = runs.node[part], runs.lack[part]
            for d in range(dims):
                then.free[n, d] += kinds.ask[kind, d] - (lack if d == MEMORY else 0)
            if lack > 0:
                then.pool[nodes.pool_of[n]] += lack


@step
def holds(kind: int, kinds: KindArrays, nodes: NodeArrays, then: ThenArrays) -> bool:
    """Whether the machine of that time holds all parts of a job, those nodes first that need the least of their pool."""
    wanted, line, fitting, found = kinds.parts[kind], nodes.line, 0, 0
    leaves, memory = nodes.top.shape[0] // 2, kinds.ask[kind, MEMORY]
    for n in range(nodes.rack.size):
        if not nodes.open[kinds.eligible[kind], leaves + n] or not _has_the_rest(n, kind, kinds, then):
            continue
        lack = memory - then.free[n, MEMORY]
        if lack <= 0:
            found += 1
        elif nodes.pool_of[n] >= 0 and lack <= then.pool[nodes.pool_of[n]]:
            line[fitting] = n
            nodes.key[n] = lack
            fitting += 1
    if found >= wanted or found + fitting < wanted:
        return bool(found >= wanted)
    for p in range(then.pool.size):
        then.spent[p] = 0
    heap.arrange(line, fitting, nodes.key)
    while fitting > 0 and found < wanted:
        n = heap.pop(line, fitting, nodes.key)
        fitting -= 1
        p = nodes.pool_of[n]
        if then.spent[p] + nodes.key[n] <= then.pool[p]:
            then.spent[p] += nodes.key[n]
            found += 1
    return bool(found >= wanted)


@inlined
def _has_the_rest(n: int, kind: int, kinds: KindArrays, then: ThenArrays) -> bool:
    for d in range(then.free.shape[1]):  # noqa: SIM110  # a loop is what compiles
        if d != MEMORY and then.free[n, d] < kinds.ask[kind, d]:
            return False
    return True


@step
def put_aside(kind: int, sign: int, kinds: KindArrays, nodes: NodeArrays, then: ThenArrays) -> None:
    """Take the placement just found off the machine of that time (sign -1), or give it back (+1)."""
    for part in range(kinds.parts[kind]):
        n, lack = nodes.chosen[part], nodes.lack[part]
        for d in range(then.free.shape[1]):
            then.free[n, d] += sign * (kinds.ask[kind, d] - (lack if d == MEMORY else 0))
        if lack > 0:
            then.pool[nodes.pool_of[n]] += sign * lack
