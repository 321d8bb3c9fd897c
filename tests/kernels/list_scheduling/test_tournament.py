"""The tournament against sorting, with priorities that overtake each other as time goes by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.arrays import FloatArray, IntArray
from poolwise.engines.list_scheduling.replay import load
from poolwise.kernels.jit import entry, kernel
from poolwise.kernels.list_scheduling.index import lay_out, plant
from poolwise.kernels.list_scheduling.order import comes_before, key, lasts
from poolwise.kernels.list_scheduling.state import (
    AFFINE,
    CUBIC,
    EMPTY,
    FORK,
    LENGTH,
    LINEAR,
    MOST_NODES,
    MOST_REMOTE,
    NODES,
    REMOTE,
    RESTING,
    STATIC,
    USED,
    WINNER,
    JobArrays,
    Order,
    Tree,
)
from poolwise.kernels.list_scheduling.tournament import clear, decide, put, take
from poolwise.units import NEVER

SECOND = 1_000_000_000


@entry
def _put(job, time, jobs, order, tree):
    put(job, time, jobs, order, tree)


@entry
def _take(job, time, order, tree):
    take(job, time, order, tree)


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
def _lasts(a, b, time, order):
    return lasts(a, b, time, order)


def _made(kind: int, key: FloatArray, submit: IntArray, pace: FloatArray, weight: FloatArray) -> Order:
    """An order of a kind; of an affine one the paces are the offsets."""
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


def _jobs(order: Order, g: np.random.Generator) -> JobArrays:
    n = len(order.key)
    nodes, remote, length = g.integers(1, 6, n), g.choice([0, 0, 5, 9, 100], n), g.integers(1, 50, n)
    able, blank = np.ones(n, dtype=np.bool_), np.zeros(n)
    zero = np.zeros(n, dtype=np.int64)
    columns = [
        order.submit,
        nodes,
        remote,
        able,
        zero,
        zero,
        zero,
        length,
        *[blank] * 6,
        np.zeros(0, dtype=np.bool_),
    ]
    for column in columns:
        column.setflags(write=False)
    return JobArrays(*columns)


def _below(node: int, tree: Tree) -> list[int]:
    """Jobs that rest at or below a node, the order of the tree."""
    if tree.node[node, FORK] == EMPTY:
        return []
    if tree.node[node, FORK] == RESTING:
        return [int(tree.node[node, WINNER])]
    fork = tree.node[node, FORK]
    return [*_below(2 * fork, tree), *_below(2 * fork + 1, tree)]


def _check(node: int, time: int, jobs: JobArrays, order: Order, tree: Tree) -> None:
    """Every node in use says of the jobs below it what looking at all of them says."""
    if tree.node[node, FORK] == EMPTY:
        return
    here, row = _below(node, tree), tree.node[node]
    assert row[WINNER] == min(here, key=lambda j: (_key(j, time, order), j))
    assert (row[NODES], row[MOST_NODES]) == (jobs.nodes[here].min(), jobs.nodes[here].max())
    assert (row[REMOTE], row[MOST_REMOTE]) == (jobs.remote[here].min(), jobs.remote[here].max())
    assert row[LENGTH] == jobs.length[here].min()
    if row[FORK] == RESTING:
        assert tree.at[here[0]] == node
    else:
        assert tree.above[row[FORK]] == node
        for below in (2 * row[FORK], 2 * row[FORK] + 1):
            assert tree.node[below, FORK] != EMPTY
            _check(below, time, jobs, order, tree)


@given(st.integers(0, 10_000), st.sampled_from([STATIC, LINEAR, CUBIC, AFFINE]))
@settings(max_examples=30, deadline=None)
def test_each_node_knows_the_first_and_the_least_below_it(seed: int, kind: int) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(1, 40))
    order, inside, most = _order(kind, g, n), set(), 0
    jobs = _jobs(order, g)
    tree = plant(n) if seed % 2 else lay_out(jobs.nodes, jobs.remote, jobs.length, jobs.able)
    time = int(order.submit.max())
    assert _decide(time, order, tree) == -1
    for _ in range(40):
        time += int(g.choice([0, 1, 10, SECOND, 100 * SECOND, 10**6 * SECOND]))
        job = int(g.integers(n))
        if job in inside:
            _take(job, time, order, tree)
        else:
            _put(job, time, jobs, order, tree)
        inside ^= {job}
        most = max(most, len(inside))
        assert sorted(_below(1, tree)) == sorted(inside)
        if g.random() < 0.7:
            wanted = min(inside, key=lambda j: (_key(j, time, order), j), default=-1)
            assert _decide(time, order, tree) == wanted
            _check(1, time, jobs, order, tree)
    assert tree.forks[USED] < max(most, 1)
    _clear(tree)
    assert _below(1, tree) == []
    for job in range(n):
        _put(job, time, jobs, order, tree)
    assert sorted(_below(1, tree)) == list(range(n)) and tree.forks[USED] == n - 1


@given(st.integers(0, 10_000), st.sampled_from([STATIC, LINEAR, CUBIC, AFFINE]))
@settings(max_examples=30, deadline=None)
def test_who_comes_first_is_decided_by_the_keys(seed: int, kind: int) -> None:
    """Also between jobs whose keys differ by the last bits only, where the products that spare divisions say nothing."""
    g = np.random.default_rng(seed)
    order = _order(kind, g, 30)
    for time in (int(order.submit.max()), 10**12 + 7, 3 * 10**17 + 1):
        keys = [_key(j, time, order) for j in range(30)]
        for a, b in g.integers(0, 30, (60, 2)).tolist():
            assert _comes_before(a, b, time, order) == ((keys[a], a) < (keys[b], b))


def _keeps_ahead(time: int, order: Order) -> None:
    """Whoever comes first at a time does so until the time that `lasts` tells."""
    first = 0 if _comes_before(0, 1, time, order) else 1
    until = _lasts(first, 1 - first, time, order)
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
def test_who_is_ahead_stays_it_for_the_time_told(
    kind: int, submit: tuple[int, int], pace: tuple[float, float], weight: tuple[int, int], time: int
) -> None:
    """Also where both have only just come, or one of them, and where slopes are the same, zero or of other signs."""
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
def test_who_is_ahead_stays_it_until_shortly_before_the_lines_cross(
    kind: int, rates: tuple[int, int], sign: int, length: int, before: int
) -> None:
    """Two lines that meet after a wait so long that only the margin covers what rounding may do; rising and falling ones."""
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
def test_lines_from_any_offset_stay_ahead_until_shortly_before_they_cross(
    offset: tuple[float, float], slope: tuple[float, float], submit: int, before: int
) -> None:
    """Leads of either sign: far below zero a margin that followed the sign of the lead would be on the wrong side."""
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
def test_paths_are_distinct_and_follow_the_grades(seed: int) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(1, 300))
    nodes, remote, length = g.integers(1, 5, n), g.choice([0, 0, 5, 9, 100], n), g.integers(1, 50, n)
    able = g.random(n) < 0.9
    tree = lay_out(nodes, remote, length, able)
    assert len(set(tree.path.tolist())) == n and 0 <= tree.path.min() <= tree.path.max() < 2 ** (tree.stack.size - 2)
    if len(set(nodes[able].tolist())) > 1 and n > 100:  # then each number of nodes is a grade of its own
        inside = np.flatnonzero(able)
        assert (np.diff(nodes[inside[np.argsort(tree.path[inside])]]) >= 0).all()


def _fused(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, out: FloatArray) -> None:
    for k in range(a.size):
        out[k] = a[k] * b[k] + (1 - a[k]) * d[k] - c[k]


@pytest.mark.parametrize("seed", range(3))
def test_multiply_and_add_are_not_contracted(seed: int) -> None:
    """A fused multiply-add rounds once where Python rounds twice: some of so many draws would show it."""
    load("deep queues")
    g = np.random.default_rng(seed)
    a, b, c, d = (g.random(20_000) for _ in range(4))
    compiled, plain = np.zeros(20_000), np.zeros(20_000)
    kernel(_fused)(a, b, c, d, compiled)
    _fused(a, b, c, d, plain)
    assert compiled.tobytes() == plain.tobytes()
