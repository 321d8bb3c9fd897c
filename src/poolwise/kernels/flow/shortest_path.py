"""Successive shortest paths: send what is in excess along the cheapest ways to where it is short, the law kept throughout.

A search starts at one source and stops at the first node that is near one that can take; what the way there holds is sent
along it, and on from there wherever that costs nothing more. Searches run along the arcs or against them (`flip` 0 or 1):
from the nodes in excess to those that are short or the other way, the same code with all signs turned.

Source: Edmonds, Karp 1972 (prices); Ahuja, Magnanti, Orlin, Network Flows, section 9.7. That a search may stop short of
the target is ours: where a way of reduced cost zero was seen to lead on, the distance is as good as known. If that way has
filled up since, the prices moved less than they could have, which is no harm, and the next search knows.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import IntArray
from poolwise.kernels.flow.graph import FAR, ResidualGraph, lead, pass_on
from poolwise.kernels.flow.heap import pop, rise
from poolwise.kernels.jit import entry, step


class Scratch(NamedTuple):
    """What searches work in, n nodes.

    Attributes
    ----------
    round : (1,) number of the last search: what others left behind is told by its number, never cleared
    seen : (n,) round in which a node was last reached
    distance : (n,) reduced cost of the way to it
    heap, place : (n,) nodes ahead by distance, where each stands, -1 elsewhere
    stack, met : (n,) nodes to look at, nodes that were
    via : (n,) arc by which a node was reached
    closed : (n,) round in which a node was last on the path, or found to lead nowhere
    arc : (n,) arc of a node to look at next
    path : (n,) arcs from the source to where the search stands
    near : (n,) 1 where a way of reduced cost zero is thought to lead to a node that can take
    """

    round: IntArray
    seen: IntArray
    distance: IntArray
    heap: IntArray
    place: IntArray
    stack: IntArray
    met: IntArray
    via: IntArray
    closed: IntArray
    arc: IntArray
    path: IntArray
    near: IntArray


@entry
def settle(g: ResidualGraph, w: Scratch, sources: IntArray, flip: int) -> int:
    """Send from each source until it has nothing left or no way out; returns how much is left.

    What is left can reach no node that is short: the problem is infeasible as it stands.
    """
    sign = 1 - 2 * flip
    left = 0
    _mark_near(g, w, flip)
    for k in range(len(sources)):
        source = sources[k]
        while sign * g.excess[source] > 0:
            target = _approach(g, w, source, flip)
            if target < 0:
                left += sign * g.excess[source]
                break
            _augment(g, w, source, target, flip)
    return left


@step
def _mark_near(g: ResidualGraph, w: Scratch, flip: int) -> None:
    """Mark the nodes that can take, and all from which a way of reduced cost zero leads to one."""
    sign, side = 1 - 2 * flip, 1 - flip
    n_stack = 0
    for v in range(len(g.price)):
        w.near[v] = 0
        if sign * g.excess[v] < 0:
            w.near[v] = 1
            w.stack[n_stack] = v
            n_stack += 1
    while n_stack > 0:
        n_stack -= 1
        v = w.stack[n_stack]
        a = g.first[side, v]
        while a >= 0:
            u = g.head[a ^ side]
            if w.near[u] == 0 and sign * g.cost[a] + g.price[u] - g.price[v] == 0:
                w.near[u] = 1
                w.stack[n_stack] = u
                n_stack += 1
            a = g.next[side, a]


@step
def _approach(g: ResidualGraph, w: Scratch, source: int, flip: int) -> int:
    """Move prices until a way of reduced cost zero leads from the source to a node marked as near; that node, -1 for none.

    Dijkstra's search; nodes at the distance of the last one wait on a stack instead of in the heap.
    """
    sign = 1 - 2 * flip
    w.round[0] += 1
    mark = w.round[0]
    w.seen[source], w.distance[source], w.place[source] = mark, 0, -1
    w.stack[0] = source
    n_stack, n_heap, n_met, bound, target = 1, 0, 0, FAR, -1
    while n_stack > 0 or n_heap > 0:
        if n_stack > 0:
            n_stack -= 1
            u = w.stack[n_stack]
        else:
            u = pop(w.heap, w.place, n_heap, w.distance)
            n_heap -= 1
        d = w.distance[u]
        if d >= bound:
            break
        w.met[n_met] = u
        n_met += 1
        a = g.first[flip, u]
        while a >= 0 and bound > d:
            v = g.head[a ^ flip]
            far = d + g.cost[a] + sign * (g.price[u] - g.price[v])
            if far < bound and (w.seen[v] != mark or far < w.distance[v]):
                w.via[v] = a
                if w.near[v] == 1:
                    bound, target = far, v
                elif w.seen[v] == mark and w.place[v] >= 0:
                    w.distance[v] = far
                    rise(w.heap, w.place, v, w.place[v], w.distance)
                else:
                    w.seen[v], w.distance[v], w.place[v] = mark, far, -1
                    if far == d:
                        w.stack[n_stack] = v
                        n_stack += 1
                    else:
                        rise(w.heap, w.place, v, n_heap, w.distance)
                        n_heap += 1
            a = g.next[flip, a]
    for k in range(n_met if target >= 0 else 0):
        u = w.met[k]
        if w.distance[u] < bound:
            g.price[u] += sign * (w.distance[u] - bound)
    return target


@step
def _augment(g: ResidualGraph, w: Scratch, source: int, target: int, flip: int) -> None:
    """Send along the way of the search to its target, and on from there along ways of reduced cost zero, depth first.

    It ends when the source has nothing left, the way to the target is full, or none leads on; a node that led nowhere is
    not tried again, and not near any more.
    """
    sign = 1 - 2 * flip
    w.round[0] += 1
    mark = w.round[0]
    base = _retrace(g, w, source, target, mark, flip)
    u, depth, n_met = target, base, 0
    while True:
        if w.seen[u] != mark:
            w.seen[u], w.closed[u], w.arc[u] = mark, mark, g.first[flip, u]
            w.met[n_met] = u
            n_met += 1
        if sign * g.excess[u] < 0:
            depth = _deliver(g, w, source, u, depth, flip)
            if g.excess[source] == 0 or depth < base:
                return
            u = g.head[w.path[depth - 1] ^ flip]
            continue
        a = w.arc[u]
        while a >= 0:
            v = g.head[a ^ flip]
            if w.closed[v] != mark and sign * g.cost[a] + g.price[u] - g.price[v] == 0:
                break
            a = g.next[flip, a]
        w.arc[u] = a
        if a >= 0:
            w.path[depth] = a
            depth += 1
            u = g.head[a ^ flip]
            w.closed[u] = mark
        elif depth > base:
            depth -= 1
            u = g.head[w.path[depth] ^ 1 ^ flip]
            w.arc[u] = g.next[flip, w.arc[u]]
        else:
            break
    for k in range(n_met):
        if w.closed[w.met[k]] == mark:
            w.near[w.met[k]] = 0


@step
def _retrace(g: ResidualGraph, w: Scratch, source: int, target: int, mark: int, flip: int) -> int:
    """Lay the path from the source to the target as the search found it; returns its length."""
    depth, v = 0, target
    while v != source:
        depth += 1
        v = g.head[w.via[v] ^ 1 ^ flip]
    v = target
    for k in range(depth - 1, -1, -1):
        w.path[k] = w.via[v]
        v = g.head[w.via[v] ^ 1 ^ flip]
        w.closed[v] = mark
    return depth


@step
def _deliver(g: ResidualGraph, w: Scratch, source: int, target: int, depth: int, flip: int) -> int:
    """Send what fits along the path; returns how far the path leads on from the source, its nodes beyond open again.

    Arcs that took it come first in their lists: the next search begins with what was cheapest (a third faster).
    """
    amount = min(abs(g.excess[source]), abs(g.excess[target]))
    for k in range(depth):
        amount = min(amount, g.room[w.path[k]])
    sign = 1 - 2 * flip
    g.excess[source] -= sign * amount
    g.excess[target] += sign * amount
    keep, near = depth - 1, g.excess[target] != 0
    for k in range(depth - 1, -1, -1):
        a = w.path[k]
        v = g.head[a ^ flip]
        w.near[v] |= near
        if g.room[a] == amount:
            keep, near = k, False
            w.arc[g.head[a ^ 1 ^ flip]] = g.next[flip, a]
        elif g.before[flip, a] >= 0:
            lead(g, a, flip)
        pass_on(g, a, amount)
    for k in range(keep, depth):
        w.closed[g.head[w.path[k] ^ flip]] = 0
    return keep
