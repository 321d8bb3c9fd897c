"""Reservation of a head that may borrow memory from pools: nodes that share a pool cannot be considered one by one.

The machine at the shadow time is stored (`ShadowArrays`). It is cached while jobs of the same kind are the head, which is
exact: see `kernels.list_scheduling.reservation.reserve`. Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.state import MEMORY, KindArrays, NodeArrays, ShadowArrays, SharedState
from poolwise.quantities import OVERDUE


@step
def find_shadow_time(kind: int, state: SharedState, is_overdue: bool) -> None:
    """Find the shadow time of a head that does not fit now, and the machine at that time."""
    at_shadow, runs, now = state.at_shadow, state.runs, state.now
    if now.shadow_kind == kind and not is_overdue:
        return
    now.shadow_kind = -1 if is_overdue else kind
    count, due, ends = now.running, at_shadow.due, at_shadow.ends
    for k in range(count):
        run = runs.ending[k]
        due[k], ends[run] = run, runs.expected[run]
        if ends[run] <= now.time:
            ends[run] = now.time + OVERDUE
    heap.sort(due, count, ends)
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        _release_until(ends[due[middle]], state)
        if shadow_holds(kind, state.kinds, state.nodes, at_shadow):
            high = middle
        else:
            low = middle + 1
    now.shadow = ends[due[low]]
    _release_until(now.shadow, state)


@step
def _release_until(time: int, state: SharedState) -> None:
    """Compute the machine once all runs that are expected to end by a time (inclusive) have ended."""
    nodes, at_shadow, parts = state.nodes, state.at_shadow, state.parts
    leaves, dims = nodes.top.shape[0] // 2, nodes.top.shape[1]
    for n in range(nodes.rack.size):
        for d in range(dims):
            at_shadow.free[n, d] = nodes.top[leaves + n, d]
    for p in range(nodes.pool.size):
        at_shadow.pool[p] = nodes.pool[p]
    for i in range(state.now.running):
        run = at_shadow.due[i]
        if at_shadow.ends[run] > time:
            continue
        kind = state.jobs.kind[state.runs.job[run]]
        for part in range(parts.first[run], parts.first[run + 1]):
            n, borrow = parts.node[part], parts.borrow[part]
            for d in range(dims):
                at_shadow.free[n, d] += state.kinds.request[kind, d] - (borrow if d == MEMORY else 0)
            if borrow > 0:
                at_shadow.pool[nodes.pool_of[n]] += borrow


@step
def shadow_holds(kind: int, kinds: KindArrays, nodes: NodeArrays, at_shadow: ShadowArrays) -> bool:
    """Return whether the machine at the shadow time holds all parts of a job; nodes that borrow least are used first."""
    wanted, line, fitting, holding = kinds.parts[kind], nodes.line, 0, 0
    leaves, memory = nodes.top.shape[0] // 2, kinds.request[kind, MEMORY]
    for n in range(nodes.rack.size):
        if not nodes.open[kinds.eligible[kind], leaves + n] or not _has_other_dimensions(n, kind, kinds, at_shadow):
            continue
        borrow = memory - at_shadow.free[n, MEMORY]
        if borrow <= 0:
            holding += 1
        elif nodes.pool_of[n] >= 0 and borrow <= at_shadow.pool[nodes.pool_of[n]]:
            line[fitting] = n
            nodes.key[n] = borrow
            fitting += 1
    if holding >= wanted or holding + fitting < wanted:
        return bool(holding >= wanted)
    for p in range(at_shadow.pool.size):
        at_shadow.spent[p] = 0
    heap.arrange(line, fitting, nodes.key)
    while fitting > 0 and holding < wanted:
        n = heap.pop(line, fitting, nodes.key)
        fitting -= 1
        p = nodes.pool_of[n]
        if at_shadow.spent[p] + nodes.key[n] <= at_shadow.pool[p]:
            at_shadow.spent[p] += nodes.key[n]
            holding += 1
    return bool(holding >= wanted)


@inlined
def _has_other_dimensions(n: int, kind: int, kinds: KindArrays, at_shadow: ShadowArrays) -> bool:
    for d in range(at_shadow.free.shape[1]):  # noqa: SIM110  # a loop is what compiles
        if d != MEMORY and at_shadow.free[n, d] < kinds.request[kind, d]:
            return False
    return True


@step
def adjust_shadow(kind: int, sign: int, kinds: KindArrays, nodes: NodeArrays, at_shadow: ShadowArrays) -> None:
    """Subtract the placement found last from the machine at the shadow time (sign -1), or add it back (+1)."""
    for part in range(kinds.parts[kind]):
        n, borrow = nodes.chosen[part], nodes.borrow[part]
        for d in range(at_shadow.free.shape[1]):
            at_shadow.free[n, d] += sign * (kinds.request[kind, d] - (borrow if d == MEMORY else 0))
        if borrow > 0:
            at_shadow.pool[nodes.pool_of[n]] += sign * borrow
