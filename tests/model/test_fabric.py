"""Paths through a network, compared with a search of all paths."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Fabric

VERTICES = 6
edges = st.lists(st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1)), max_size=9)


def fabric_of(ends: list[tuple[int, int]]) -> Fabric:
    """Make an owner at each vertex, another at vertex 0, and one outside the network; links are owners from 100 on."""
    n = len(ends)
    return Fabric(
        np.array([*range(VERTICES), 0, -1]),
        100 + np.arange(n),
        np.array(ends, dtype=np.int64).reshape(n, 2),
        10 ** np.arange(n, dtype=np.int64),
    )


def simple_paths(ends: list[tuple[int, int]], at: int, goal: int, seen: frozenset[int]) -> list[tuple[int, ...]]:
    """Return all paths that visit no vertex twice, as links."""
    if at == goal:
        return [()]
    return [
        (link, *rest)
        for link, pair in enumerate(ends)
        for here, there in (pair, pair[::-1])
        if here == at and there not in seen
        for rest in simple_paths(ends, there, goal, seen | {there})
    ]


@given(edges)
@example([(0, 1), (1, 2), (0, 3), (3, 2)])  # two paths of two hops
@example([(0, 1), (0, 1), (1, 1)])  # parallel links and one from a vertex to itself
@example([(2, 1), (1, 0), (2, 3), (3, 0), (0, 2)])
def test_path_has_the_fewest_hops_and_the_lowest_links(ends: list[tuple[int, int]]) -> None:
    fabric = fabric_of(ends)
    for here, there in product(range(VERTICES + 1), repeat=2):
        a, b = here % VERTICES, there % VERTICES
        paths = simple_paths(ends, a, b, frozenset([a]))
        for _ in range(2):  # the second call uses the cache
            if paths:
                assert fabric.path(here, there) == min(paths, key=lambda way: (len(way), way))
            else:
                with pytest.raises(InputError, match=f"no path between owners {here} and {there}") as caught:
                    fabric.path(here, there)
                assert (caught.value.field, bool(caught.value.remedy)) == ("link", True)


@given(edges)
def test_owner_outside_the_network_has_no_path(ends: list[tuple[int, int]]) -> None:
    fabric = fabric_of(ends)
    for owner in range(VERTICES):
        for pair in ((owner, VERTICES + 1), (VERTICES + 1, owner)):
            with pytest.raises(InputError, match="no path"):
                fabric.path(*pair)


@given(edges)
def test_connected_links_are_those_of_the_component(ends: list[tuple[int, int]]) -> None:
    fabric = fabric_of(ends)
    for owner in range(VERTICES):
        reached = {vertex for vertex in range(VERTICES) if simple_paths(ends, owner, vertex, frozenset([owner]))}
        assert fabric.connected(owner) == tuple(link for link, (a, _) in enumerate(ends) if a in reached)


@given(edges.filter(bool), st.data())
def test_bottleneck_owners_and_latency_of_a_path(ends: list[tuple[int, int]], data: st.DataObject) -> None:
    fabric = fabric_of(ends)
    links = data.draw(st.lists(st.integers(0, len(ends) - 1), min_size=1, max_size=5, unique=True))
    amounts = np.arange(100 + len(ends))[::-1].copy()  # the highest link has the least
    assert fabric.link_owners(links) == tuple(100 + link for link in links)
    assert fabric.path_latency(links) == sum(10**link for link in links)
    assert fabric.bottleneck(links, amounts) == amounts[100 + max(links)]
    assert (fabric.path_latency(()), fabric.link_owners(())) == (0, ())
