"""Successive shortest paths: send excess along shortest paths to nodes with a deficit, keeping the flow optimal throughout.

A search starts at one source and stops at the first node marked as near a node with a deficit. It sends flow along the path,
and from there on along arcs of reduced cost zero. Searches run along the arcs or against them (`flip` 0 or 1): from nodes with
excess to nodes with a deficit or the other way, by the same code with all signs flipped.

Source: Edmonds, Karp 1972 (prices); Ahuja, Magnanti, Orlin, Network Flows, section 9.7. Stopping at near nodes is our addition:
a path of reduced cost zero was seen to lead from there to a deficit, so the distance is known. If that path has been saturated
since, prices have moved less than they could have; this is harmless, and the node is no longer marked in the next search.
"""

from __future__ import annotations

from typing import NamedTuple

from poolwise.arrays import IntArray
from poolwise.kernels.flow.graph import FAR, ResidualGraph, move_to_front, push_flow
from poolwise.kernels.flow.heap import pop, sift_up
from poolwise.kernels.jit import entry, step


class Scratch(NamedTuple):
    """Scratch arrays of the searches, n nodes.

    Attributes
    ----------
    round : (1,) number of the last search; entries of older rounds are recognized by their number, never cleared
    seen : (n,) round in which a node was last reached
    distance : (n,) reduced cost of the path to it
    heap, place : (n,) heap of nodes by distance, and the position of each, -1 outside
    stack, met : (n,) nodes to visit, visited nodes
    via : (n,) arc by which a node was reached
    closed : (n,) round in which a node was last on the path, or found to be a dead end
    arc : (n,) arc of a node to try next
    path : (n,) arcs from the source to the current node
    near : (n,) 1 if a path of reduced cost zero is believed to lead to a node with a deficit
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
    """Send flow from each source until it has no excess or no path; return the total excess left.

    Excess that is left can reach no node with a deficit: the problem is infeasible.
    """
    sign = 1 - 2 * flip
    left = 0
    _mark_near(g, w, flip)
    for k in range(len(sources)):
        source = sources[k]
        while sign * g.excess[source] > 0:
            target = _find_path(g, w, source, flip)
            if target < 0:
                left += sign * g.excess[source]
                break
            _augment(g, w, source, target, flip)
    return left


@step
def _mark_near(g: ResidualGraph, w: Scratch, flip: int) -> None:
    """Mark the nodes with a deficit, and all nodes from which a path of reduced cost zero leads to one."""
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
def _find_path(g: ResidualGraph, w: Scratch, source: int, flip: int) -> int:
    """Move prices until a path of reduced cost zero leads from the source to a near node; return that node, -1 for none.

    Dijkstra's algorithm; nodes at the distance of the last one are on a stack instead of in the heap.
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
                    sift_up(w.heap, w.place, v, w.place[v], w.distance)
                else:
                    w.seen[v], w.distance[v], w.place[v] = mark, far, -1
                    if far == d:
                        w.stack[n_stack] = v
                        n_stack += 1
                    else:
                        sift_up(w.heap, w.place, v, n_heap, w.distance)
                        n_heap += 1
            a = g.next[flip, a]
    for k in range(n_met if target >= 0 else 0):
        u = w.met[k]
        if w.distance[u] < bound:
            g.price[u] += sign * (w.distance[u] - bound)
    return target


@step
def _augment(g: ResidualGraph, w: Scratch, source: int, target: int, flip: int) -> None:
    """Send flow along the path found, and from its end along paths of reduced cost zero, depth first.

    It ends when the source has no excess, the path to the target is saturated, or no path leads on. Dead ends are not
    tried again and lose their near mark.
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
            depth = _send_along_path(g, w, source, u, depth, flip)
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
    """Write the path from the source to the target as the search found it; return its length."""
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
def _send_along_path(g: ResidualGraph, w: Scratch, source: int, target: int, depth: int, flip: int) -> int:
    """Send the bottleneck amount along the path; return the length up to the first saturated arc, reopening later nodes.

    Arcs that carried flow move to the front of their lists: the next search tries cheap arcs first (a third faster).
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
            move_to_front(g, a, flip)
        push_flow(g, a, amount)
    for k in range(keep, depth):
        w.closed[g.head[w.path[k] ^ flip]] = 0
    return keep
