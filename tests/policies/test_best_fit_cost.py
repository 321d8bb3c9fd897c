"""Best-fit cost model: fuller machines first, local devices before remote ones, waiting last."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.policies.cost.baselines import REMOTE, BestFit
from poolwise.policies.cost.model import Places, TaskClasses, Waiting

amounts = st.lists(st.tuples(st.integers(0, 64), st.integers(0, 64)), min_size=1, max_size=6)


def tasks(demand) -> TaskClasses:
    n = len(demand)
    zero = np.zeros(n)
    return TaskClasses(("cores", "gpu"), np.array(demand), ("",) * n, zero, zero > 0, zero, np.zeros((n, 2), dtype=np.int64))


def places(free) -> Places:
    n = len(free)
    zero = np.zeros(n, dtype=np.int64)
    return Places(np.array(free), np.full((n, 2), 64), zero, zero.astype(float), np.zeros((n, 2), dtype=np.int64))


@given(amounts, amounts)
def test_cost_decreases_with_the_amount_left(demand, free):
    here = places(free)
    cost = BestFit().placing(tasks(demand), here, 3)
    assert cost.shape == (len(demand), len(free), 1)
    for k, (cores, gpu) in enumerate(demand):
        for p, (free_cores, free_gpu) in enumerate(free):
            left = [(f - d) / 64 for f, d in ((free_cores, cores), (free_gpu, gpu)) if d]
            assert abs(cost[k, p, 0] - (sum(left) / len(left) if left else 0.0)) < 1e-12
    remote = BestFit().placing(tasks(demand), replace(here, remote=True), 1)
    fits = (np.array(free)[None] >= np.array(demand)[:, None]).all(axis=2)
    assert np.allclose(remote, cost + REMOTE)
    assert not fits.any() or remote[fits].min() >= cost[fits].max()


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_waiting_costs_more_than_any_place_and_increases_with_the_passes(passes):
    passes = np.sort(passes)
    zero = np.zeros(len(passes))
    wait = BestFit().waiting(Waiting(passes, zero, zero, len(passes)))
    assert wait.min() > 1 + REMOTE
    assert (np.diff(wait)[np.diff(passes) > 0] > 0).all()
