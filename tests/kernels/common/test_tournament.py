"""The tournament tree compared with sorting, with priorities that overtake each other over time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.list_scheduling.loading import load_kernels
from poolwise.kernels.common.index import empty_tree, lay_out
from poolwise.kernels.common.order import comes_before, key, precedes_until
from poolwise.kernels.common.state import (
    AFFINE,
    CUBIC,
    EMPTY,
    FORK,
    LEAF,
    LENGTH,
    LINEAR,
    MAJOR,
    MINOR,
    MOST_MAJOR,
    MOST_MINOR,
    STATIC,
    USED,
    WINNER,
    Order,
    Tree,
)
from poolwise.kernels.common.tournament import clear, decide, insert, remove
from poolwise.kernels.jit import entry, kernel
from poolwise.quantities import NEVER

SECOND = 1_000_000_000


@entry
def _insert(job, time, order, tree):
    insert(job, time, order, tree)


@entry
def _remove(job, time, order, tree):
    remove(job, time, order, tree)


@entry
def _decide(time, order, tree):
    return decide(time, order, tree)


@entry
def _clear(tree):
    clear(tree)


@entry
def _key(job, time, order):
    return key(job, time, order)


@entry
def _comes_before(a, b, time, order):
    return comes_before(a, b, time, order)


@entry
def _precedes_until(a, b, time, order):
    return precedes_until(a, b, time, order)


def _made(kind: int, key: FloatArray, submit: IntArray, pace: FloatArray, weight: FloatArray) -> Order:
    """Return an order of a kind; for an affine one, `pace` holds the offsets."""
    rate = weight / 1e9 if kind == AFFINE else (np.cbrt(weight) if kind == CUBIC else weight) / pace
    columns = [submit, pace, weight, rate, pace if kind == AFFINE else np.zeros(0)]
    for column in columns:
        column.setflags(write=False)
    return Order(kind, key, *columns)


def _pair(kind: int, submit: tuple[int, int], pace: tuple[float, float], weight: tuple[float, float]) -> Order:
    return _made(kind, np.zeros(2), np.array(submit), np.array(pace), np.array(weight, dtype=np.float64))


def _order(kind: int, g: np.random.Generator, n: int) -> Order:
    submit = g.integers(0, 50, n) * (SECOND if g.random() < 0.5 else 1)
    pace = g.choice([1.0, 1 + 2**-52, 3.0, 7.5, 1e3, 1e6], n) * g.choice([1, 1, 1, -1], n)
    weight = g.integers(1, 4, n).astype(np.float64) if g.random() < 0.3 else g.integers(-3, 4, n).astype(np.float64)
    given_key = g.integers(-2, 3, n).astype(np.float64)
    return _made(kind, given_key, submit, pace, weight)


def _demands(n: int, g: np.random.Generator) -> tuple[IntArray, IntArray, IntArray]:
    columns = g.integers(1, 6, n), g.choice([0, 0, 5, 9, 100], n), g.integers(1, 50, n)
    for column in columns:
        column.setflags(write=False)
    return columns


def _below(node: int, tree: Tree) -> list[int]:
    """Return the jobs at and below a node, in tree order."""
    if tree.node[node, FORK] == EMPTY:
        return []
    if tree.node[node, FORK] == LEAF:
        return [int(tree.node[node, WINNER])]
    fork = tree.node[node, FORK]
    return [*_below(2 * fork, tree), *_below(2 * fork + 1, tree)]


def _check(node: int, time: int, order: Order, tree: Tree) -> None:
    """Check the summary of every node in use against the jobs below it."""
    if tree.node[node, FORK] == EMPTY:
        return
    here, row = _below(node, tree), tree.node[node]
    assert row[WINNER] == min(here, key=lambda j: (_key(j, time, order), j))
    assert (row[MAJOR], row[MOST_MAJOR]) == (tree.major[here].min(), tree.major[here].max())
    assert (row[MINOR], row[MOST_MINOR]) == (tree.minor[here].min(), tree.minor[here].max())
    assert row[LENGTH] == tree.length[here].min()
    if row[FORK] == LEAF:
        assert tree.at[here[0]] == node
    else:
        assert tree.above[row[FORK]] == node
        for below in (2 * row[FORK], 2 * row[FORK] + 1):
            assert tree.node[below, FORK] != EMPTY
            _check(below, time, order, tree)


@given(st.integers(0, 10_000), st.sampled_from([STATIC, LINEAR, CUBIC, AFFINE]))
@settings(max_examples=30, deadline=None)
def test_tree_nodes_store_winner_and_extreme_demands(seed: int, kind: int) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(1, 40))
    order, present, most = _order(kind, g, n), set(), 0
    demands = _demands(n, g)
    tree = empty_tree(*demands) if seed % 2 else lay_out(*demands, np.ones(n, dtype=np.bool_))
    time = int(order.submit.max())
    assert _decide(time, order, tree) == -1
    for _ in range(40):
        time += int(g.choice([0, 1, 10, SECOND, 100 * SECOND, 10**6 * SECOND]))
        job = int(g.integers(n))
        if job in present:
            _remove(job, time, order, tree)
        else:
            _insert(job, time, order, tree)
        present ^= {job}
        most = max(most, len(present))
        assert sorted(_below(1, tree)) == sorted(present)
        if g.random() < 0.7:
            wanted = min(present, key=lambda j: (_key(j, time, order), j), default=-1)
            assert _decide(time, order, tree) == wanted
            _check(1, time, order, tree)
    assert tree.forks[USED] < max(most, 1)
    _clear(tree)
    assert _below(1, tree) == []
    for job in range(n):
        _insert(job, time, order, tree)
    assert sorted(_below(1, tree)) == list(range(n)) and tree.forks[USED] == n - 1


@given(st.integers(0, 10_000), st.sampled_from([STATIC, LINEAR, CUBIC, AFFINE]))
@settings(max_examples=30, deadline=None)
def test_order_of_jobs_matches_their_keys(seed: int, kind: int) -> None:
    """Also for keys that differ only in the last bits, where the division-free comparison cannot decide."""
    g = np.random.default_rng(seed)
    order = _order(kind, g, 30)
    for time in (int(order.submit.max()), 10**12 + 7, 3 * 10**17 + 1):
        keys = [_key(j, time, order) for j in range(30)]
        for a, b in g.integers(0, 30, (60, 2)).tolist():
            assert _comes_before(a, b, time, order) == ((keys[a], a) < (keys[b], b))


def _keeps_ahead(time: int, order: Order) -> None:
    """Check that the first job at a time stays first until the time returned by `precedes_until`."""
    first = 0 if _comes_before(0, 1, time, order) else 1
    until = _precedes_until(first, 1 - first, time, order)
    assert until >= time
    for later in {until, (time + until) // 2, min(until, time + 1), min(until, time + 10**6), min(until, time + 10**15)}:
        later = min(later, 2**62)
        keys = [(_key(j, later, order), j) for j in range(2)]
        assert keys[first] < keys[1 - first], (later - time, until == NEVER)


paces, weights = st.sampled_from([1.0, 1 + 2**-52, 3.0, 1e6, -1.0, -3.0]), st.integers(-3, 3)


@given(
    st.sampled_from([LINEAR, CUBIC, AFFINE]),
    *[st.tuples(x, x) for x in (st.integers(0, 3), paces, weights)],
    st.integers(3, 10**6),
)
@settings(max_examples=200, deadline=None)
def test_leader_stays_ahead_until_the_stated_time(
    kind: int, submit: tuple[int, int], pace: tuple[float, float], weight: tuple[int, int], time: int
) -> None:
    """Also with one or both jobs just submitted, and with slopes that are equal, zero or of different signs."""
    order = _pair(kind, submit, pace, weight)
    for now in (max(submit), max(submit) + 1, time, time * SECOND):
        _keeps_ahead(now, order)


@given(
    st.sampled_from([LINEAR, CUBIC]),
    st.tuples(st.integers(1, 50), st.integers(1, 50)),
    st.sampled_from([1, -1]),
    st.integers(10**9, 10**15),
    st.integers(0, 10**4),
)
@settings(max_examples=200, deadline=None)
def test_leader_stays_ahead_until_just_before_priorities_cross(
    kind: int, rates: tuple[int, int], sign: int, length: int, before: int
) -> None:
    """Rising and falling lines that meet after a wait so long that only the margin covers rounding errors."""
    meet = 60 * length
    submit = meet - length * rates[1], meet - length * rates[0]
    weight = (sign * rates[0] ** (1 if kind == LINEAR else 3), sign * rates[1] ** (1 if kind == LINEAR else 3))
    order = _pair(kind, submit, (1.0, 1.0), weight)
    for time in (meet - before, meet - min(before**2, length // 2), meet - min(before**3, length // 2)):
        if time >= max(submit):
            _keeps_ahead(time, order)


@given(
    st.tuples(*[st.floats(-1e9, 1e9)] * 2),
    st.tuples(*[st.sampled_from([0.0, 1e-9, -1e-9, 1.0, -1.0, 3.0, -3.0, 1e6])] * 2),
    st.integers(0, 10**12),
    st.integers(0, 10**4),
)
@settings(max_examples=300, deadline=None)
def test_leader_with_any_offset_stays_ahead_until_priorities_cross(
    offset: tuple[float, float], slope: tuple[float, float], submit: int, before: int
) -> None:
    """Leads of either sign: far below zero, a margin with the sign of the lead would be on the wrong side."""
    order = _pair(AFFINE, (0, submit), offset, slope)
    times = [submit, submit + before, submit + before * SECOND]
    if slope[0] != slope[1]:
        cross = int((offset[1] - offset[0] - slope[1] * submit / SECOND) / (slope[0] - slope[1]) * SECOND)
        times += [cross - before, cross - before**2, cross + 1]
    for time in times:
        if submit <= time <= 10**17:
            _keeps_ahead(time, order)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_paths_are_distinct_and_ordered_by_grades(seed: int) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(1, 300))
    nodes, remote, length = g.integers(1, 5, n), g.choice([0, 0, 5, 9, 100], n), g.integers(1, 50, n)
    able = g.random(n) < 0.9
    tree = lay_out(nodes, remote, length, able)
    assert len(set(tree.path.tolist())) == n and 0 <= tree.path.min() <= tree.path.max() < 2 ** (tree.stack.size - 2)
    if len(set(nodes[able].tolist())) > 1 and n > 100:  # then each number of nodes has its own grade
        present = np.flatnonzero(able)
        assert (np.diff(nodes[present[np.argsort(tree.path[present])]]) >= 0).all()


def _fused(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, out: FloatArray) -> None:
    for k in range(a.size):
        out[k] = a[k] * b[k] + (1 - a[k]) * d[k] - c[k]


@pytest.mark.parametrize("seed", range(3))
def test_multiply_add_is_not_contracted(seed: int) -> None:
    """A fused multiply-add rounds once where Python rounds twice, which some of the 20,000 draws would reveal."""
    load_kernels("deep queues")
    g = np.random.default_rng(seed)
    a, b, c, d = (g.random(20_000) for _ in range(4))
    compiled, plain = np.zeros(20_000), np.zeros(20_000)
    kernel(_fused)(a, b, c, d, compiled)
    _fused(a, b, c, d, plain)
    assert compiled.tobytes() == plain.tobytes()
