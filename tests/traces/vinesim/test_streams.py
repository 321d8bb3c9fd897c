"""Tests of job streams: each equals its independent draw, and they are merged by arrival."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.traces import vinesim
from poolwise.traces.vinesim.streams import NO_DEADLINE, Stream, streams_workload

RATES = np.zeros((6, 7))
RATES[0, 1:3], RATES[2, 2] = [2.0, 1.0], 4.0
MACHINE = vinesim.machine_of_units(vinesim.UnitList.of([(0, 0, 0), (2, 0, 1)]), RATES)


def stream(draw_name: str, **settings) -> Stream:
    return Stream(
        draw_name, **{"jobs": 5, "task_type": 2, "operations": 8, "gaps": vinesim.InterArrival.parse("1us"), **settings}
    )


streams = st.lists(
    st.builds(
        Stream,
        name=st.sampled_from("abc"),
        jobs=st.integers(1, 20),
        task_type=st.integers(1, 2),
        operations=st.integers(1, 100),
        gaps=st.sampled_from(["0", "3us", "exponential(2us)", "uniform(1us, 5us)"]).map(vinesim.InterArrival.parse),
        least=st.integers(1, 3),
        most=st.integers(3, 6),
        priority=st.integers(0, 2),
        slack=st.none() | st.floats(1.0, 50.0),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=40)
@given(given_=streams, seed=st.integers(0, 5))
def test_mixture_merges_independent_streams(given_: list[Stream], seed: int) -> None:
    found = streams_workload(given_, MACHINE, seed)
    columns = found.attributes
    assert len(found) == sum(s.jobs for s in given_)
    for k, s in enumerate(given_):
        rows = columns["stream"] == k
        assert found.submit[rows].tolist() == s.gaps.times(s.jobs, seed * len(given_) + k).tolist()
        assert int(found.tasks[rows].min()) >= s.least and int(found.tasks[rows].max()) <= s.most
        assert set(columns["class"][rows].tolist()) == {s.priority}
        assert set(columns["operations"][rows].tolist()) == {s.operations}
        fastest = {1: 2.0, 2: 4.0}[s.task_type]
        wait = None if s.slack is None else int(np.ceil(s.slack * int(np.ceil(s.operations * 1000 / fastest))))
        expected = np.full(s.jobs, NO_DEADLINE) if wait is None else found.submit[rows] + wait
        assert columns["deadline"][rows].tolist() == expected.tolist()


def test_streams_of_one_seed_are_independent() -> None:
    gaps = vinesim.InterArrival.parse("exponential(9us)")
    found = streams_workload([stream("a", gaps=gaps, jobs=50), stream("b", gaps=gaps, jobs=50)], MACHINE)
    one, other = (found.submit[found.attributes["stream"] == k] for k in (0, 1))
    assert len(set(one.tolist()) & set(other.tolist())) == 1  # both begin at 0


def test_tasks_that_no_unit_can_run_are_rejected() -> None:
    with pytest.raises(InputError, match="type 4"):
        streams_workload([stream("a", task_type=4)], MACHINE)
