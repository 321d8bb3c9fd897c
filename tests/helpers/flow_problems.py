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
