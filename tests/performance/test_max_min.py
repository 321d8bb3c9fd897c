"""Max-min fairness: against the definition, and against progressive filling in exact fractions."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.performance.network_sharing import max_min_shares

Network = tuple[list[int], list[int], list[set[int]]]


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Demands, capacities, and the links of each flow."""
    links = draw(st.integers(1, 5))
    capacity = draw(st.lists(st.integers(0, 40), min_size=links, max_size=links))
    paths = draw(st.lists(st.sets(st.integers(0, links - 1), max_size=links), max_size=8))
    demand = draw(st.lists(st.integers(1, 30), min_size=len(paths), max_size=len(paths)))
    return demand, capacity, paths


def shares(network: Network) -> np.ndarray:
    demand, capacity, paths = network
    hops = [(f, k) for f, path in enumerate(paths) for k in sorted(path)]
    flow, link = np.array(hops, dtype=np.int64).reshape(-1, 2).T
    return max_min_shares(np.array(demand, dtype=np.float64), np.array(capacity, dtype=np.float64), flow, link)


def filled(network: Network) -> list[Fraction]:
    """Raise all rates together until a limit stops one of them, and repeat with the rest."""
    demand, capacity, paths = network
    rate = [Fraction(0)] * len(demand)
    active = set(range(len(demand)))
    while active:
        steps = [Fraction(demand[f]) - rate[f] for f in active]
        left = [Fraction(c) - sum(rate[f] for f, path in enumerate(paths) if k in path) for k, c in enumerate(capacity)]
        for k, room in enumerate(left):
            crossing = [f for f in active if k in paths[f]]
            if crossing:
                steps.append(room / len(crossing))
        step = min(steps)
        for f in active:
            rate[f] += step
        left = [Fraction(c) - sum(rate[f] for f, path in enumerate(paths) if k in path) for k, c in enumerate(capacity)]
        active = {f for f in active if rate[f] < demand[f] and all(left[k] > 0 for k in paths[f])}
    return rate


@given(networks())
def test_shares_match_progressive_filling(network: Network) -> None:
    np.testing.assert_allclose(shares(network), [float(rate) for rate in filled(network)], rtol=1e-12, atol=1e-12)


@given(networks())
def test_every_flow_has_its_demand_or_a_bottleneck(network: Network) -> None:
    demand, capacity, paths = network
    rate = shares(network)
    used = [sum(rate[f] for f, path in enumerate(paths) if k in path) for k in range(len(capacity))]
    assert all(u <= c + 1e-9 for u, c in zip(used, capacity, strict=True))
    for f, path in enumerate(paths):
        bottlenecks = [
            k
            for k in path
            if used[k] >= capacity[k] - 1e-9 and all(rate[g] <= rate[f] + 1e-9 for g, other in enumerate(paths) if k in other)
        ]
        assert rate[f] == demand[f] or bottlenecks


@settings(max_examples=50)
@given(networks(), st.randoms(use_true_random=False))
def test_shares_do_not_depend_on_the_order_of_hops(network: Network, random: object) -> None:
    demand, capacity, paths = network
    hops = [(f, k) for f, path in enumerate(paths) for k in path]
    random.shuffle(hops)  # type: ignore[attr-defined]  # hypothesis' own Random
    flow, link = np.array(hops, dtype=np.int64).reshape(-1, 2).T
    again = max_min_shares(np.array(demand, dtype=np.float64), np.array(capacity, dtype=np.float64), flow, link)
    np.testing.assert_allclose(again, shares(network), rtol=1e-12, atol=1e-12)


def test_flow_without_links_gets_its_demand() -> None:
    assert shares(([7], [0], [set()])).tolist() == [7.0]
    assert shares(([], [3], [])).tolist() == []


def test_a_textbook_network() -> None:
    """Links of 10, 8 and 6; the long flow is held at 3 by the last link, which leaves 7 and 5 to the others."""
    assert shares(([99, 99, 99, 99], [10, 8, 6], [{0, 1, 2}, {0}, {1}, {2}])).tolist() == [3, 7, 5, 3]
