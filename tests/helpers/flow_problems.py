"""Random flow problems, and optimality proofs that are independent of the solvers."""

from itertools import product

import numpy as np
from hypothesis import strategies as st


@st.composite
def problems(draw, most_nodes=6, most_arcs=14):
    """Draw tail, head, lower, capacity, cost, supply: parallel arcs, self-loops, lower bounds, any sign of cost, no slack."""
    n = draw(st.integers(1, most_nodes))
    nodes = st.integers(0, n - 1)
    arcs = draw(
        st.lists(
            st.tuples(nodes, nodes, st.sampled_from([0, 0, 0, 1, 2]), st.integers(0, 5), st.integers(-9, 15)),
            max_size=most_arcs,
        )
    )
    tail, head, lower, more, cost = np.array(arcs, dtype=np.int64).reshape(-1, 5).T
    capacity = lower + more
    supply = np.zeros(n, dtype=np.int64)
    if draw(st.integers(0, 3)):  # supplies of a flow within the bounds: feasible
        flow = lower + np.array([draw(st.integers(0, int(room))) for room in more], dtype=np.int64)
        np.add.at(supply, tail, flow)
        np.subtract.at(supply, head, flow)
    else:
        supply[:] = draw(st.lists(st.integers(-4, 4), min_size=n, max_size=n))
        supply[0] -= supply.sum()
    return tail, head, lower, capacity, cost, supply


def is_feasible(tail, head, lower, capacity, supply):
    """Check Hoffman's condition over all sets of nodes: no set may send more than its bounds let out."""
    for inside in product((False, True), repeat=len(supply)):
        inside = np.array(inside)
        leaving, entering = inside[tail] & ~inside[head], ~inside[tail] & inside[head]
        if supply[inside].sum() > capacity[leaving].sum() - lower[entering].sum():
            return False
    return True


def cheapest_cost(problem):
    """Return the cost of the cheapest flow by cycle canceling (Klein 1967) in plain Python, None if none is feasible.

    Expensive arcs to and from an additional node carry the first flow.
    """
    tail, head, lower, capacity, cost, supply = (column.tolist() for column in problem)
    arcs = [[u, v, low, high, c, low] for u, v, low, high, c in zip(tail, head, lower, capacity, cost, strict=True)]
    root, much = len(supply), 1 + sum(abs(c) * high for c, high in zip(cost, capacity, strict=True))
    for node, amount in enumerate(supply):
        left = amount - sum((u == node) * low - (v == node) * low for u, v, low, *_ in arcs)
        ends = (node, root) if left > 0 else (root, node)
        arcs.append([*ends, 0, abs(left), much, abs(left)])
    while cycle := _negative_cycle(root + 1, arcs):
        room = min(arcs[k][3] - arcs[k][5] if sign > 0 else arcs[k][5] - arcs[k][2] for k, sign in cycle)
        for k, sign in cycle:
            arcs[k][5] += sign * room
    real = arcs[: len(tail)]
    return None if any(arc[5] for arc in arcs[len(tail) :]) else sum(arc[4] * arc[5] for arc in real)


def _negative_cycle(n_node, arcs):
    """Return a cycle of residual arcs (number, direction) with a negative cost, by Bellman-Ford."""
    residual = [(u, v, c, (k, 1)) for k, (u, v, _, high, c, flow) in enumerate(arcs) if flow < high]
    residual += [(v, u, -c, (k, -1)) for k, (u, v, low, _, c, flow) in enumerate(arcs) if flow > low]
    distance, via, last = [0] * n_node, [None] * n_node, None
    for _ in range(n_node + 1):
        last = None
        for u, v, c, step in residual:
            if distance[u] + c < distance[v]:
                distance[v], via[v], last = distance[u] + c, (u, step), v
    if last is None:
        return []
    for _ in range(n_node):
        last = via[last][0]
    cycle, node = [], last
    while not cycle or node != last:
        node, step = via[node]
        cycle.append(step)
    return cycle


def assert_optimal(problem, flow, cost):
    """Assert bounds and balances, and that prices exist under which every arc satisfies complementary slackness."""
    tail, head, lower, capacity, price, supply = problem
    assert (lower <= flow).all()
    assert (flow <= capacity).all()
    sent = np.zeros_like(supply)
    np.add.at(sent, tail, flow)
    np.subtract.at(sent, head, flow)
    assert (sent == supply).all()
    assert cost == int((flow * price).sum())
    residual = [(u, v, c) for u, v, c, room in zip(tail, head, price, capacity - flow, strict=True) if room]
    residual += [(v, u, -c) for u, v, c, room in zip(tail, head, price, flow - lower, strict=True) if room]
    distance = np.zeros_like(supply)
    for _ in range(len(supply) + 1):
        for u, v, c in residual:
            distance[v] = min(distance[v], distance[u] + c)
    reduced = price + distance[tail] - distance[head]
    assert (flow[reduced > 0] == lower[reduced > 0]).all()
    assert (flow[reduced < 0] == capacity[reduced < 0]).all()
