"""Load and power, compared with hand computations and with counting each second."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.metrics.power import load_of, mean_watts, price
from poolwise.metrics.window import Window
from poolwise.model import Machine
from poolwise.quantities import SECOND
from tests.helpers.one_of_each import MACHINE, schedule_of


def changed(**given):
    return Machine(**{**{k: getattr(MACHINE, k) for k in MACHINE.__dataclass_fields__}, **given})


def test_watts_follow_the_load():
    """Half of the time, 6 of 10 cores, 4 of 8 MiB of the pool and one GPU are in use."""
    schedule = schedule_of([(0, 0, 10, 6, 4, 1)])
    idle, load = 155.0, 0.6 * 100 + 0.5 * 10 + 200
    assert mean_watts(MACHINE, load_of(schedule, Window(0, 20 * SECOND))) == pytest.approx(idle + load / 2)
    assert mean_watts(MACHINE, load_of(schedule, Window(10 * SECOND, 20 * SECOND))) == pytest.approx(idle)
    assert price(MACHINE) == 1850


def test_device_shares_count_as_load():
    capacity = np.concatenate([MACHINE.capacity, np.array([[0], [0], [1000], [1000], [0]])], axis=1)
    machine = changed(resources=(*MACHINE.resources, "gpu_milli"), capacity=capacity)
    schedule = schedule_of([(0, 0, 10, 1, 0, 1)], machine)
    shared = type(schedule)(**{**vars(schedule), "resource": np.where(schedule.owner == 2, 4, schedule.resource)})
    shared = type(schedule)(**{**vars(shared), "amount": np.where(shared.owner == 2, 250, shared.amount)})
    assert load_of(shared, Window(0, 20 * SECOND)).mean.tolist() == pytest.approx([0.05, 0, 0.125, 0, 0])


def test_missing_watts_and_prices_give_nan():
    bare = changed(attributes={})
    assert np.isnan(price(bare))
    assert np.isnan(mean_watts(bare, load_of(schedule_of([(0, 0, 1, 1, 1, 1)], bare), Window(0, SECOND))))
    assert np.isnan(mean_watts(MACHINE, load_of(schedule_of([(0, 0, 1, 1, 1, 1)]), Window(5, 5))))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(1, 3), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(0, 15),
    st.integers(1, 20),
)
def test_load_matches_counting_each_second(rows, begin, length):
    jobs = [(0, start, start + d, cores, memory, 0) for start, d, cores, memory in rows]
    load = load_of(schedule_of(jobs), Window(begin * SECOND, (begin + length) * SECOND))
    seconds = range(begin, begin + length)
    running = [[job for job in jobs if job[1] <= t < job[2]] for t in seconds]
    assert load.mean[0] == pytest.approx(sum(job[3] for now in running for job in now) / (10 * length))
    assert load.mean[1] == pytest.approx(sum(job[4] for now in running for job in now) / (8 * length))
    assert load.awake[0] == pytest.approx(sum(bool(now) for now in running) / length)
    assert load.mean[2:].tolist() == load.awake[2:].tolist() == [0, 0, 0]
