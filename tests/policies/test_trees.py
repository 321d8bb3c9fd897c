"""Segment trees against sets and lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.policies.placement.units.segment_trees import NEVER, BitTree, MinTree


@settings(max_examples=25)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.booleans()), max_size=40))
def test_bit_tree_behaves_like_a_set(size: int, changes: list[tuple[int, bool]]) -> None:
    bits, model = BitTree(size), set[int]()
    for leaf, there in ((leaf % size, there) for leaf, there in changes):
        model ^= {leaf} if there != (leaf in model) else set()
        bits.set_leaf(leaf, there)
    assert len(bits) == len(model) and all((leaf in bits) == (leaf in model) for leaf in range(size))
    assert [bits.at(k) for k in range(len(model))] == sorted(model)
    for low in range(size + 1):
        for high in range(low, size + 1):
            inside = [leaf for leaf in model if low <= leaf < high]
            assert bits.count(low, high) == len(inside)
            assert bits.first(low, high) == min(inside, default=-1)


@settings(max_examples=25)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.sampled_from([0, 3, 7, NEVER])), max_size=40))
def test_min_tree_behaves_like_a_list(size: int, changes: list[tuple[int, int]]) -> None:
    values, model = MinTree(size), [NEVER] * size
    for leaf, value in ((leaf % size, value) for leaf, value in changes):
        model[leaf] = value
        values.set_leaf(leaf, value)
    assert [values[leaf] for leaf in range(size)] == model
    assert values.least == min(model)
    for low in range(size + 1):
        for high in range(low, size + 1):
            smallest = min(model[low:high], default=NEVER)
            where = -1 if smallest == NEVER else model.index(smallest, low)
            assert values.first(low, high) == (smallest, where)
