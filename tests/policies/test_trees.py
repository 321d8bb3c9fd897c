"""Trees of marks and minima, in Python and in the kernels, against sets and lists."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engine.dispatch import load
from poolwise.kernels.dispatch import trees as kernels
from poolwise.kernels.jit import entry
from poolwise.policies.placement.trees import NEVER, Least, Marks


@entry
def _mark(tree, unit, change):
    kernels.mark(tree, unit, change)


@entry
def _first(tree, low, high):
    return kernels.first(tree, low, high)


@entry
def _at(tree, number):
    return kernels.at(tree, number)


@entry
def _put(tree, unit, value):
    kernels.put(tree, unit, value)


@entry
def _least(tree):
    return kernels.least(tree)


@settings(max_examples=25)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.booleans()), max_size=40))
def test_marks_are_a_set(size: int, changes: list[tuple[int, bool]]) -> None:
    load()
    marks, base, model = Marks(size), 1 << (size - 1).bit_length(), set[int]()
    tree = np.zeros(2 * base, dtype=np.int64)
    for leaf, there in ((leaf % size, there) for leaf, there in changes):
        if there != (leaf in model):
            _mark(tree, leaf, 1 if there else -1)
        model ^= {leaf} if there != (leaf in model) else set()
        marks.put(leaf, there)
    assert len(marks) == len(model) and all((leaf in marks) == (leaf in model) for leaf in range(size))
    assert [marks.at(k) for k in range(len(model))] == sorted(model) == [_at(tree, k) for k in range(len(model))]
    for low in range(size + 1):
        for high in range(low, size + 1):
            inside = [leaf for leaf in model if low <= leaf < high]
            assert marks.count(low, high) == len(inside)
            assert marks.first(low, high) == min(inside, default=-1) == _first(tree, low, high)


@settings(max_examples=25)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.sampled_from([0, 3, 7, NEVER])), max_size=40))
def test_least_is_a_list(size: int, changes: list[tuple[int, int]]) -> None:
    least, base, model = Least(size), 1 << (size - 1).bit_length(), [NEVER] * size
    tree = np.full(2 * base, NEVER)
    for leaf, value in ((leaf % size, value) for leaf, value in changes):
        model[leaf] = value
        least.put(leaf, value)
        _put(tree, leaf, value)
    assert [least[leaf] for leaf in range(size)] == model
    assert least.least == min(model) == int(tree[1])
    if min(model) < NEVER:
        assert _least(tree) == model.index(min(model))
    for low in range(size + 1):
        for high in range(low, size + 1):
            smallest = min(model[low:high], default=NEVER)
            where = -1 if smallest == NEVER else model.index(smallest, low)
            assert least.first(low, high) == (smallest, where)
