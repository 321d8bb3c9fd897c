"""The tournament against sorting, with priorities that overtake each other as time goes by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.arrays import FloatArray
from poolwise.engine.compiled import load
from poolwise.kernels.jit import entry, kernel
from poolwise.kernels.list_scheduling.index import lay_out, plant
from poolwise.kernels.list_scheduling.order import key
from poolwise.kernels.list_scheduling.state import CUBIC, LINEAR, STATIC, Order
from poolwise.kernels.list_scheduling.tournament import first_of, put

SECOND = 1_000_000_000


@entry
def _put(job, leaf, time, order, tree):
    put(job, leaf, time, order, tree)


@entry
def _first_of(low, high, time, order, tree):
    return first_of(low, high, time, order, tree)


@entry
def _key(job, time, order):
    return key(job, time, order)


def _order(kind: int, g: np.random.Generator, n: int) -> Order:
    submit = g.integers(0, 50, n) * (SECOND if g.random() < 0.5 else 1)
    divisor = g.choice([1.0, 1 + 2**-52, 3.0, 7.5, 1e3, 1e6], n)
    weight = g.integers(1, 4, n).astype(np.float64)
    given_key = g.integers(0, 5, n).astype(np.float64)
    columns = [submit, divisor, weight, divisor / np.cbrt(weight) if kind == CUBIC else divisor]
    for column in columns:
        column.setflags(write=False)
    return Order(kind, given_key, *columns)


@given(st.integers(0, 10_000), st.sampled_from([STATIC, LINEAR, CUBIC]))
@settings(max_examples=60, deadline=None)
def test_first_of_any_range_is_what_sorting_says(seed: int, kind: int) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(1, 40))
    order, tree, inside = _order(kind, g, n), plant(n), set()
    time = int(order.submit.max())
    for _ in range(60):
        time += int(g.choice([0, 1, 10, SECOND, 100 * SECOND, 10**6 * SECOND]))
        job = int(g.integers(n))
        inside ^= {job}
        _put(job if job in inside else -1, job, time, order, tree)
        low, high = sorted(g.integers(0, n + 1, 2).tolist())
        here = [j for j in inside if low <= j < high]
        wanted = min(here, key=lambda j: (_key(j, time, order), j), default=-1)
        assert _first_of(low, high, time, order, tree) == wanted


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_layout_puts_every_able_job_on_one_leaf_by_class_and_length(seed: int) -> None:
    g = np.random.default_rng(seed)
    n = int(g.integers(1, 300))
    nodes, remote, length = g.integers(1, 5, n), g.choice([0, 0, 5, 9, 100], n), g.integers(1, 50, n)
    able = g.random(n) < 0.9
    index = lay_out(nodes, remote, length, able)
    assert sorted(index.leaf[able].tolist()) == list(range(int(able.sum())))
    assert (index.leaf[~able] == -1).all()
    for job in np.flatnonzero(able).tolist():
        c, leaf = int(index.of[job]), int(index.leaf[job])
        assert index.first[c] <= leaf < index.first[c + 1]
        assert index.length[leaf] == length[job]
        assert index.nodes[c] == nodes[job]
        assert index.least[c] <= remote[job] <= index.most[c]
        assert (index.least[c] == 0) == (index.most[c] == 0)
    for c in range(len(index.nodes)):
        assert (np.diff(index.length[index.first[c] : index.first[c + 1]]) >= 0).all()
    assert (np.diff(index.nodes) >= 0).all()


def _fused(a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray, out: FloatArray) -> None:
    for k in range(a.size):
        out[k] = a[k] * b[k] + (1 - a[k]) * d[k] - c[k]


@pytest.mark.parametrize("seed", range(3))
def test_multiply_and_add_are_not_contracted(seed: int) -> None:
    """A fused multiply-add rounds once where Python rounds twice: some of so many draws would show it."""
    load()
    g = np.random.default_rng(seed)
    a, b, c, d = (g.random(20_000) for _ in range(4))
    compiled, plain = np.zeros(20_000), np.zeros(20_000)
    kernel(_fused)(a, b, c, d, compiled)
    _fused(a, b, c, d, plain)
    assert compiled.tobytes() == plain.tobytes()
