"""Residual graph of a flow, and operations that keep its prices and flows consistent.

Arc k of a problem corresponds to two residual arcs: 2k along it, with the remaining capacity, and 2k + 1 against it, with the
flow it carries. Each node has lists of the leaving and entering residual arcs with remaining capacity, and no others: most
arcs carry no flow, and a backward search that scans all of them takes twice as long.

A price turns the cost of an arc u -> v into its reduced cost, cost + price[u] - price[v]. The flow is optimal for its
balances if no residual arc with remaining capacity has a negative reduced cost: all kernels maintain this optimality condition.
Source: Ahuja, Magnanti, Orlin, Network Flows, chapters 9 and 10.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.jit import entry, step

FAR = 1 << 62
LEAVING, ENTERING = range(2)


class ResidualGraph(NamedTuple):
    """A residual graph and the state of its flow, n nodes, m arcs."""

    head: IntArray  # (2 m,) node that a residual arc enters; head[a ^ 1] is the node that it leaves; -1 both for an unused arc
    cost: IntArray  # (2 m,) per unit; cost[a ^ 1] = -cost[a]
    room: IntArray  # (2 m,) residual capacity
    first: IntArray  # (2, n) first residual arc with capacity that leaves a node, that enters it, -1 for none
    # (2, 2 m) the next and the previous one in these lists, -1 for none
    next: IntArray
    before: IntArray
    excess: IntArray  # (n,) units that a node still has to send; negative: a deficit
    price: IntArray  # (n,)


@entry
def link(g: ResidualGraph) -> None:
    """Build the lists of arcs with residual capacity."""
    for v in range(len(g.price)):
        g.first[LEAVING, v] = g.first[ENTERING, v] = -1
    for a in range(len(g.head)):
        if g.room[a] > 0:
            insert(g, a)


@step
def insert(g: ResidualGraph, a: int) -> None:
    """Insert an arc that has gained capacity into its two lists."""
    for side in (LEAVING, ENTERING):
        v = g.head[a ^ 1 ^ side]
        other = g.first[side, v]
        g.next[side, a], g.before[side, a] = other, -1
        if other >= 0:
            g.before[side, other] = a
        g.first[side, v] = a


@step
def remove(g: ResidualGraph, a: int) -> None:
    """Remove an arc without capacity from its two lists."""
    for side in (LEAVING, ENTERING):
        after, before = g.next[side, a], g.before[side, a]
        if before >= 0:
            g.next[side, before] = after
        else:
            g.first[side, g.head[a ^ 1 ^ side]] = after
        if after >= 0:
            g.before[side, after] = before


@step
def move_to_front(g: ResidualGraph, a: int, side: int) -> None:
    """Move an arc that is not the first in its list on one side to the front."""
    v = g.head[a ^ 1 ^ side]
    after, before, other = g.next[side, a], g.before[side, a], g.first[side, v]
    g.next[side, before] = after
    if after >= 0:
        g.before[side, after] = before
    g.next[side, a], g.before[side, a] = other, -1
    g.before[side, other] = a
    g.first[side, v] = a


@step
def push_flow(g: ResidualGraph, a: int, amount: int) -> None:
    """Send a positive amount along a residual arc; the caller updates the nodes' excess."""
    if g.room[a ^ 1] == 0:
        insert(g, a ^ 1)
    g.room[a] -= amount
    g.room[a ^ 1] += amount
    if g.room[a] == 0:
        remove(g, a)


@step
def send(g: ResidualGraph, a: int, amount: int) -> None:
    """Send a positive amount along a residual arc, and update the excess of both nodes."""
    push_flow(g, a, amount)
    g.excess[g.head[a ^ 1]] -= amount
    g.excess[g.head[a]] += amount


@entry
def restore_optimality(g: ResidualGraph) -> None:
    """Restore the optimality condition: saturate arcs of negative reduced cost, empty arcs of positive reduced cost."""
    for a in range(len(g.head)):
        if g.room[a] > 0 and g.cost[a] + g.price[g.head[a ^ 1]] - g.price[g.head[a]] < 0:
            send(g, a, g.room[a])


@entry
def add_capacity(g: ResidualGraph, arcs: IntArray, amount: IntArray) -> None:
    """Increase the capacity of arcs (k,) of the problem by positive amounts (k,), and restore the optimality condition."""
    for k in range(len(arcs)):
        a = 2 * arcs[k]
        if g.room[a] == 0:
            insert(g, a)
        g.room[a] += amount[k]
        if g.cost[a] + g.price[g.head[a ^ 1]] - g.price[g.head[a]] < 0:
            send(g, a, g.room[a])


@entry
def set_new_prices(g: ResidualGraph, nodes: IntArray, fresh: BoolArray) -> None:
    """Set the prices of new nodes one by one so that they satisfy the optimality condition, if their neighbors allow it.

    Each price is the lowest that does; if there is none, the price favors the side that could move more flow. `fresh` (n,)
    marks nodes whose prices are not set yet; it becomes False for the given nodes.
    """
    for k in range(len(nodes)):
        u = nodes[k]
        least, below = -FAR, 0
        a = g.first[LEAVING, u]
        while a >= 0:
            v = g.head[a]
            if not fresh[v] and g.price[v] - g.cost[a] > least:
                least, below = g.price[v] - g.cost[a], g.room[a]
            a = g.next[LEAVING, a]
        most, above = FAR, 0
        a = g.first[ENTERING, u]
        while a >= 0:
            v = g.head[a ^ 1]
            if not fresh[v] and g.price[v] + g.cost[a] < most:
                most, above = g.price[v] + g.cost[a], g.room[a]
            a = g.next[ENTERING, a]
        if below > 0 and (least <= most or below > above):
            g.price[u] = least
        else:
            g.price[u] = most if above > 0 else 0
        fresh[u] = False
