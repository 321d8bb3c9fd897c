"""Cost scaling: refine an epsilon-optimal flow, dividing epsilon until the flow is optimal.

Costs are multiplied by more than the number of nodes beforehand, so that a 1-optimal flow is optimal.
Source: Goldberg, Tarjan 1990; Goldberg 1997 (price refinement).
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.flow.graph import FAR, LEAVING, ResidualGraph, restore_optimality, send
from poolwise.kernels.jit import entry, step

FACTOR = 8  # factor by which epsilon decreases per scaling phase
PASSES = 8  # passes over all arcs in which prices alone may become epsilon-optimal
LOWEST = -(1 << 60)


@entry
def scale(g: ResidualGraph, largest: int, distance: IntArray, queue: IntArray, queued: IntArray, arc: IntArray) -> bool:
    """Make a feasible flow optimal; return False on price overflow. `largest` is the largest cost, the rest (n,) scratch."""
    epsilon = largest
    while epsilon > 1:
        epsilon = max(epsilon // FACTOR, 1)
        if not _refine_prices(g, epsilon, distance) and not _refine(g, epsilon, queue, queued, arc):
            return False
    return True


@step
def _refine_prices(g: ResidualGraph, epsilon: int, distance: IntArray) -> bool:
    """Search prices at which no residual arc has a reduced cost below -epsilon; return whether they were found."""
    for v in range(len(distance)):
        distance[v] = 0
    for _ in range(PASSES):
        changed = False
        for a in range(len(g.head)):
            if g.room[a] > 0:
                u, v = g.head[a ^ 1], g.head[a]
                near = distance[u] + g.cost[a] + g.price[u] - g.price[v] + epsilon
                if near < distance[v]:
                    if g.price[v] + near < LOWEST:
                        return False
                    distance[v] = near
                    changed = True
        if not changed:
            for v in range(len(distance)):
                g.price[v] += distance[v]
            return True
    return False


@step
def _refine(g: ResidualGraph, epsilon: int, queue: IntArray, queued: IntArray, arc: IntArray) -> bool:
    """Saturate arcs of negative reduced cost, then push and relabel in FIFO order; return False on price overflow."""
    n = len(queue)
    restore_optimality(g)
    first, count = 0, 0
    for v in range(n):
        arc[v], queued[v] = g.first[LEAVING, v], 0
        if g.excess[v] > 0:
            queue[count], queued[v] = v, 1
            count += 1
    while count > 0:
        u = queue[first]
        first = (first + 1) % n
        count -= 1
        queued[u] = 0
        while g.excess[u] > 0:
            a = arc[u]
            if a < 0:
                if not _relabel(g, u, epsilon):
                    return False
                arc[u] = g.first[LEAVING, u]
                continue
            v = g.head[a]
            following = g.next[LEAVING, a]
            if g.cost[a] + g.price[u] - g.price[v] < 0:
                if g.room[a] <= g.excess[u]:
                    arc[u] = following
                send(g, a, min(g.excess[u], g.room[a]))
                if g.excess[v] > 0 and queued[v] == 0:
                    queue[(first + count) % n], queued[v] = v, 1
                    count += 1
            else:
                arc[u] = following
    return True


@step
def _relabel(g: ResidualGraph, u: int, epsilon: int) -> bool:
    """Lower a price until one arc with capacity costs -epsilon; a feasible problem always has one."""
    price = -FAR
    a = g.first[LEAVING, u]
    while a >= 0:
        price = max(price, g.price[g.head[a]] - g.cost[a])
        a = g.next[LEAVING, a]
    g.price[u] = price - epsilon
    return bool(g.price[u] > LOWEST)
