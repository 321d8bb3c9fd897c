"""The set of idle units: equivalence with a sorted list, and constant cost per operation."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines.dispatch.columns import all_idle
from poolwise.kernels.dispatch import idle as kernels
from poolwise.kernels.jit import entry
from tests.helpers.counted_steps import steps

SIZES = [1, 2, 63, 64, 65, 100, 4095, 4096, 4097, 10_000, 64**3 - 1, 64**3, 64**3 + 70_000]


@entry
def _mark(idle, unit, change):
    kernels.mark(idle, unit, change)


@entry
def _before(idle, unit):
    return kernels.before(idle, unit)


@entry
def _at(idle, number):
    return kernels.at(idle, number)


@entry
def _first(idle, low, high):
    return kernels.first(idle, low, high)


@settings(max_examples=40)
@given(st.sampled_from(SIZES), st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0]))
def test_idle_set_matches_a_sorted_list(size: int, seed: int, busy: float) -> None:
    g = np.random.default_rng(seed)
    idle, there = all_idle(size), np.ones(size, dtype=np.bool_)
    near = np.arange(size) if size <= 5000 else np.unique(g.integers(0, size, 3000))
    for unit in [*g.permutation(near)[: round(busy * len(near))].tolist(), *g.integers(0, size, 20).tolist()]:
        _mark(idle, unit, -1 if there[unit] else 1)
        there[unit] = not there[unit]
    listed = np.flatnonzero(there)
    assert idle.total[0] == len(listed)
    for number in {0, len(listed) - 1, *g.integers(0, max(len(listed), 1), 30).tolist()} if len(listed) else ():
        assert _at(idle, number) == listed[number]
    for unit in (0, size, *g.integers(0, size + 1, 30).tolist()):
        assert _before(idle, unit) == np.searchsorted(listed, unit)
    for low, high in [(0, size), *np.sort(g.integers(0, size + 1, (30, 2)), axis=1).tolist()]:
        inside = listed[(low <= listed) & (listed < high)]
        assert _first(idle, low, high) == (inside[0] if len(inside) else -1)


def test_cost_of_idle_set_operations_is_independent_of_size() -> None:
    g = np.random.default_rng(0)
    taken: dict[str, set[int]] = {"mark": set(), "before": set(), "at": set()}
    for size in (1, 100, 10_000, 64**3 - 1):
        idle = all_idle(size)
        for unit in np.unique(g.integers(0, size, 5)).tolist():
            taken["mark"].add(steps(kernels.mark, idle, unit, -1))
            taken["before"].add(steps(kernels.before, idle, unit))
            if idle.total[0]:
                taken["at"].add(steps(kernels.at, idle, int(g.integers(idle.total[0]))))
    assert {name: len(counts) for name, counts in taken.items()} == {"mark": 1, "before": 1, "at": 1}
    assert taken["at"].pop() > 3 * 64  # the counter works
