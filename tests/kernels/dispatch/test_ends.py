"""The radix heap of ends: equivalence with a list, and number of moves per end."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines.dispatch.columns import no_ends
from poolwise.kernels.dispatch import ends as kernels
from poolwise.kernels.dispatch.state import BITS, Ends
from poolwise.kernels.jit import entry
from poolwise.quantities import NEVER
from tests.helpers.counted_steps import plain, steps


@entry
def _push(ends, unit, end):
    kernels.push(ends, unit, end)


@entry
def _lowest(ends):
    return kernels.lowest(ends)


@entry
def _pop(ends, row):
    return kernels.pop(ends, row)


def due(ends: Ends, push: Callable[..., object] = _push) -> set[int]:
    """Remove the units with the least end, as the event loop does."""
    row = _lowest(ends)
    unit, units = _pop(ends, row), set[int]()
    while unit >= 0:
        follower = int(ends.next[unit])
        if ends.end[unit] == ends.last[0]:
            units.add(unit)
        else:
            push(ends, unit, int(ends.end[unit]))
        unit = follower
    return units


durations = st.one_of(st.integers(0, 3), st.sampled_from([64, 4096, 25_000]), st.integers(0, 2**20), st.integers(0, 2**61))


@settings(max_examples=80)
@given(st.integers(1, 12), st.data())
def test_radix_heap_matches_a_sorted_list(size: int, data: st.DataObject) -> None:
    ends, model, now = no_ends(size), dict[int, int](), 0
    for _ in range(data.draw(st.integers(1, 40))):
        free = sorted(set(range(size)) - set(model))
        if free and data.draw(st.booleans()):
            now = min([now + data.draw(durations), 2**62, *model.values()])  # an arrival, not after the next end
            model[free[0]] = now + data.draw(durations)
            _push(ends, free[0], model[free[0]])
        elif model:
            now = min(model.values())
            assert due(ends) == {unit for unit, end in model.items() if end == now}
            model = {unit: end for unit, end in model.items() if end > now}
            if now > 2**62:
                break  # the event loop is LATE
        assert ends.soonest[_lowest(ends)] == min(model.values(), default=NEVER)


@pytest.mark.parametrize("units", [100, 10_000])
def test_moves_per_end_are_bounded_by_digits_of_durations(units: int) -> None:
    """Twice as many tasks as units, with ends at all distances."""
    g = np.random.default_rng(1)
    longest, pushes = 500_000, 0
    ends, work = no_ends(units), g.integers(1, longest, 2 * units).tolist()

    def push(ends: Ends, unit: int, end: int) -> None:
        nonlocal pushes
        pushes += 1
        _push(ends, unit, end)

    for unit in range(units):
        push(ends, unit, work.pop())
    while ends.soonest[_lowest(ends)] < NEVER:
        for unit in due(ends, push):
            if work:
                push(ends, unit, int(ends.last[0]) + work.pop())
    digits = -(-longest.bit_length() // BITS)
    assert 2 * units < pushes <= (digits + 1) * 2 * units


def test_cost_of_a_heap_operation_is_independent_of_size() -> None:
    taken = set()
    for units in (100, 10_000):
        ends = no_ends(units + 1)
        for unit in range(units):
            plain(kernels.push)(ends, unit, 25_000 + unit % 7)
        taken.add((steps(kernels.push, ends, units, 25_000), steps(kernels.lowest, ends), steps(kernels.pop, ends, 2)))
    assert len(taken) == 1 and min(taken.pop()) > 1
