"""Jobs of processing units: generated jobs follow their shares; streams are drawn independently and merged by arrival."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.traces import vinesim
from poolwise.traces.generators import configure
from poolwise.traces.generators.unit_jobs import NO_DEADLINE, Stream, UnitJobs, UnitStreams

RATES = np.zeros((6, 7))
RATES[0, 1:3], RATES[2, 2] = [2.0, 1.0], 4.0
MACHINE = vinesim.machine_of_units(vinesim.UnitList.of([(0, 0, 0), (2, 0, 1)]), RATES)


def stream(draw_name: str, **settings) -> Stream:
    return Stream(draw_name, **{"jobs": 5, "type": "fp-good", "operations": 8, "inter_arrival": "1us", **settings})


def streams_workload(streams: list[Stream], seed: int = 0) -> Workload:
    return UnitStreams([asdict(each) for each in streams], seed).generate_on(MACHINE)


streams = st.lists(
    st.builds(
        Stream,
        name=st.sampled_from("abc"),
        jobs=st.integers(1, 20),
        type=st.sampled_from(["fp-bad", "fp-good"]),
        operations=st.integers(1, 100),
        inter_arrival=st.sampled_from(["0", "3us", "exponential(2us)", "uniform(1us, 5us)"]),
        min=st.integers(1, 3),
        max=st.integers(3, 6),
        priority=st.integers(0, 2),
        slack=st.none() | st.floats(1.0, 50.0),
    ),
    min_size=1,
    max_size=4,
)


def gaps_of(stream: Stream) -> vinesim.InterArrival:
    return vinesim.InterArrival.parse(stream.inter_arrival)


@settings(max_examples=40)
@given(given_=streams, seed=st.integers(0, 5))
def test_mixture_merges_independent_streams(given_: list[Stream], seed: int) -> None:
    workload = streams_workload(given_, seed)
    columns = workload.attributes
    assert len(workload) == sum(s.jobs for s in given_)
    for k, s in enumerate(given_):
        rows = columns["stream"] == k
        assert workload.submit[rows].tolist() == gaps_of(s).times(s.jobs, seed * len(given_) + k).tolist()
        assert int(workload.tasks[rows].min()) >= s.min and int(workload.tasks[rows].max()) <= s.max
        assert set(columns["class"][rows].tolist()) == {s.priority}
        assert set(columns["operations"][rows].tolist()) == {s.operations}
        fastest = {"fp-bad": 2.0, "fp-good": 4.0}[s.type]
        wait = None if s.slack is None else int(np.ceil(s.slack * int(np.ceil(s.operations * 1000 / fastest))))
        expected = np.full(s.jobs, NO_DEADLINE) if wait is None else workload.submit[rows] + wait
        assert columns["deadline"][rows].tolist() == expected.tolist()


def test_streams_of_one_seed_are_independent() -> None:
    workload = streams_workload([stream(name, inter_arrival="exponential(9us)", jobs=50) for name in "ab"])
    first, other = (workload.submit[workload.attributes["stream"] == k] for k in (0, 1))
    assert len(set(first.tolist()) & set(other.tolist())) == 1  # both begin at 0


def test_tasks_that_no_unit_can_run_are_rejected() -> None:
    with pytest.raises(InputError, match="type 4"):
        streams_workload([stream("a", type="io")])


def test_generated_jobs_follow_the_shares() -> None:
    size = [{"share": 0.75, "min": 1, "max": 4}, {"share": 0.25, "min": 100, "max": 100}]
    kind = [{"type": "int", "share": 0.2}, {"type": "fp-bad", "share": 0.8}]
    drawn = UnitJobs(jobs=4000, size=size, kind=kind, operations=7, seed=3)
    tasks = drawn.tasks()
    jobs, count = np.unique(tasks.column("parent_job_id"), return_counts=True)
    assert len(jobs) == 4000 and set(count.tolist()) == {1, 2, 3, 4, 100}
    assert (count == 100).mean() == pytest.approx(0.25, abs=0.03)
    kinds = tasks.column("task_type")[tasks.first_of_job]
    assert set(kinds.tolist()) == {0, 1} and (kinds == 0).mean() == pytest.approx(0.2, abs=0.03)
    assert np.array_equal(drawn.tasks().table, tasks.table)
    few = replace(drawn, jobs=50).tasks()
    assert np.array_equal(few.table, tasks.table[: len(few)]), "the draws of a job do not depend on the number of jobs"


@pytest.mark.parametrize("name", ["unit_jobs", "unit_streams"])
def test_jobs_of_units_need_a_machine(name: str) -> None:
    with pytest.raises(InputError, match="machine of processing units"):
        configure(name).generate()


@pytest.mark.parametrize(
    ("streams", "words"), [([], "no stream"), ([{"name": "a"}], "missing"), ([{"nam": "a"}], "unexpected keyword")]
)
def test_invalid_streams_are_rejected(streams: list[dict], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        UnitStreams(streams).generate_on(MACHINE)
    assert caught.value.field == "streams"
