"""Trees of marks and minima against sets and lists."""

from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.policies.placement.units.segment_trees import NEVER, Least, Marks


@settings(max_examples=25)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.booleans()), max_size=40))
def test_marks_are_a_set(size: int, changes: list[tuple[int, bool]]) -> None:
    marks, model = Marks(size), set[int]()
    for leaf, there in ((leaf % size, there) for leaf, there in changes):
        model ^= {leaf} if there != (leaf in model) else set()
        marks.set_leaf(leaf, there)
    assert len(marks) == len(model) and all((leaf in marks) == (leaf in model) for leaf in range(size))
    assert [marks.at(k) for k in range(len(model))] == sorted(model)
    for low in range(size + 1):
        for high in range(low, size + 1):
            inside = [leaf for leaf in model if low <= leaf < high]
            assert marks.count(low, high) == len(inside)
            assert marks.first(low, high) == min(inside, default=-1)


@settings(max_examples=25)
@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), st.sampled_from([0, 3, 7, NEVER])), max_size=40))
def test_least_is_a_list(size: int, changes: list[tuple[int, int]]) -> None:
    least, model = Least(size), [NEVER] * size
    for leaf, value in ((leaf % size, value) for leaf, value in changes):
        model[leaf] = value
        least.set_leaf(leaf, value)
    assert [least[leaf] for leaf in range(size)] == model
    assert least.least == min(model)
    for low in range(size + 1):
        for high in range(low, size + 1):
            smallest = min(model[low:high], default=NEVER)
            where = -1 if smallest == NEVER else model.index(smallest, low)
            assert least.first(low, high) == (smallest, where)
