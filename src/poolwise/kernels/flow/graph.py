"""The residual graph, and what keeps its prices and flows in step.

Arc k of a problem is two residual arcs: 2k along it, with the room that is left, and 2k + 1 against it, with the flow it
carries. Each node has lists of the residual arcs with room that leave it and that enter it, nothing else: most arcs carry
nothing, and a search against the arcs that passes over all of them takes twice as long.

A price turns the cost of an arc u -> v into its reduced cost, cost + price[u] - price[v]. The flow is as cheap as any with
the same balances as long as no residual arc with room has a reduced cost below zero: the one law that all kernels keep.
Source: Ahuja, Magnanti, Orlin, Network Flows, chapters 9 and 10.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.jit import entry, step

FAR = 1 << 62
LEAVING, ENTERING = range(2)


class ResidualGraph(NamedTuple):
    """A residual graph and the state of its flow, n nodes, m arcs.

    Attributes
    ----------
    head : (2 m,) node a residual arc leads to; head[a ^ 1] is where it comes from; -1 both for an arc that is not in use
    cost : (2 m,) of a unit; cost[a ^ 1] = -cost[a]
    room : (2 m,) units that it can still take
    first : (2, n) first residual arc with room that leaves a node, that enters it, -1 for none
    next, before : (2, 2 m) the ones after and before it in these lists, -1 for none
    excess : (n,) units that a node still has to send; less than zero: to take
    price : (n,)
    """

    head: IntArray
    cost: IntArray
    room: IntArray
    first: IntArray
    next: IntArray
    before: IntArray
    excess: IntArray
    price: IntArray


@entry
def link(g: ResidualGraph) -> None:
    """Build the lists of the arcs that have room."""
    for v in range(len(g.price)):
        g.first[LEAVING, v] = g.first[ENTERING, v] = -1
    for a in range(len(g.head)):
        if g.room[a] > 0:
            insert(g, a)


@step
def insert(g: ResidualGraph, a: int) -> None:
    """Put an arc that has got room into its two lists."""
    for side in (LEAVING, ENTERING):
        v = g.head[a ^ 1 ^ side]
        other = g.first[side, v]
        g.next[side, a], g.before[side, a] = other, -1
        if other >= 0:
            g.before[side, other] = a
        g.first[side, v] = a


@step
def remove(g: ResidualGraph, a: int) -> None:
    """Take an arc that has no room left out of its two lists."""
    for side in (LEAVING, ENTERING):
        after, before = g.next[side, a], g.before[side, a]
        if before >= 0:
            g.next[side, before] = after
        else:
            g.first[side, g.head[a ^ 1 ^ side]] = after
        if after >= 0:
            g.before[side, after] = before


@step
def lead(g: ResidualGraph, a: int, side: int) -> None:
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
def pass_on(g: ResidualGraph, a: int, amount: int) -> None:
    """Send an amount, more than zero, along a residual arc; the nodes' excess is the caller's."""
    if g.room[a ^ 1] == 0:
        insert(g, a ^ 1)
    g.room[a] -= amount
    g.room[a ^ 1] += amount
    if g.room[a] == 0:
        remove(g, a)


@step
def send(g: ResidualGraph, a: int, amount: int) -> None:
    """Send an amount, more than zero, from one node's excess to the other's."""
    pass_on(g, a, amount)
    g.excess[g.head[a ^ 1]] -= amount
    g.excess[g.head[a]] += amount


@entry
def mend(g: ResidualGraph) -> None:
    """Make every arc keep the law: full where its reduced cost is below zero, empty where it is above."""
    for a in range(len(g.head)):
        if g.room[a] > 0 and g.cost[a] + g.price[g.head[a ^ 1]] - g.price[g.head[a]] < 0:
            send(g, a, g.room[a])


@entry
def widen(g: ResidualGraph, arcs: IntArray, amount: IntArray) -> None:
    """Give arcs (k,) of the problem more room, (k,) more than zero, and make them keep the law."""
    for k in range(len(arcs)):
        a = 2 * arcs[k]
        if g.room[a] == 0:
            insert(g, a)
        g.room[a] += amount[k]
        if g.cost[a] + g.price[g.head[a ^ 1]] - g.price[g.head[a]] < 0:
            send(g, a, g.room[a])


@entry
def appraise(g: ResidualGraph, nodes: IntArray, fresh: BoolArray) -> None:
    """Give new nodes, one after the other, prices under which their arcs keep the law as far as their neighbours' let them.

    The least such price; where there is none, the side that could move more flow is kept to. `fresh` (n,) tells nodes
    whose prices mean nothing yet; it ends False for those given.
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
