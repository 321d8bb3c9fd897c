"""Counter-based draws are bit-identical for any batch size."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolwise.random import uniform

INT64 = st.integers(-(2**63), 2**63 - 1)


@given(seed=st.integers(-(2**70), 2**70), jobs=st.lists(INT64, min_size=1, max_size=30), task=st.integers(-5, 2**40))
def test_draw_does_not_depend_on_the_batch_size(seed: int, jobs: list[int], task: int) -> None:
    column = np.array(jobs, dtype=np.int64)
    together = uniform(seed, "stream", np.tile(column, 20), task)
    alone = [float(uniform(seed, "stream", job, task)[0]) for job in jobs]
    assert together[: len(jobs)].tolist() == alone
    assert all(0 <= draw < 1 for draw in alone)


def test_seeds_streams_and_counters_give_distinct_draws() -> None:
    draws = {
        float(uniform(seed, stream, job, task)[0])
        for seed in range(3)
        for stream in ("a", "b")
        for job in range(3)
        for task in range(3)
    }
    assert len(draws) == 54
