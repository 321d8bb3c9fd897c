"""Negative cycle canceling: a flow is optimal if no cycle of residual arcs with capacity has a negative cost.

Bellman-Ford passes over all arcs, from distance zero everywhere. Once the predecessor arcs form a cycle, it is saturated (the
cost of such a cycle is always negative) and the passes start over.
Source: Klein 1967; Cherkassky, Goldberg 1999 (cycles in the predecessor graph).
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.flow.graph import ResidualGraph
from poolwise.kernels.jit import entry, step


@entry
def cancel_all(g: ResidualGraph, distance: IntArray, via: IntArray, mark: IntArray) -> None:
    """Cancel negative cycles until none is left; arrays (n,) are scratch; `distance` ends as prices that prove optimality."""
    _reset(distance, via)
    while True:
        changed = False
        for a in range(len(g.head)):
            if g.room[a] > 0:
                u, v = g.head[a ^ 1], g.head[a]
                if distance[u] + g.cost[a] < distance[v]:
                    distance[v] = distance[u] + g.cost[a]
                    via[v] = a
                    changed = True
        if not changed:
            return
        if _cancel(g, via, mark):
            _reset(distance, via)


@step
def _reset(distance: IntArray, via: IntArray) -> None:
    for v in range(len(via)):
        distance[v], via[v] = 0, -1


@step
def _cancel(g: ResidualGraph, via: IntArray, mark: IntArray) -> bool:
    """Cancel the cycles of the predecessor graph, which share no node; return whether there was any."""
    for v in range(len(via)):
        mark[v] = -1
    found = False
    for start in range(len(via)):
        v = start
        while mark[v] < 0:
            mark[v] = start
            if via[v] < 0:
                break
            v = g.head[via[v] ^ 1]
        if mark[v] == start and via[v] >= 0:
            _fill(g, via, v)
            found = True
    return found


@step
def _fill(g: ResidualGraph, via: IntArray, v: int) -> None:
    """Send the bottleneck amount around the cycle through v."""
    amount = g.room[via[v]]
    u = g.head[via[v] ^ 1]
    while u != v:
        amount = min(amount, g.room[via[u]])
        u = g.head[via[u] ^ 1]
    while True:
        a = via[u]
        g.room[a] -= amount
        g.room[a ^ 1] += amount
        u = g.head[a ^ 1]
        if u == v:
            return
