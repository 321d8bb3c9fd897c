"""Used and stranded resources, compared with hand computations and with counting each instant."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import Machine, MachineBuilder, Workload, simulate
from poolwise.metrics.resource_use import resource_use
from poolwise.metrics.window import Window
from poolwise.quantities import SECOND
from tests.helpers.one_of_each import schedule_of


def test_resource_use_matches_a_hand_computation():
    """6 of 10 cores and a GPU for 10 s; from 4 s on a job waits for 8 cores and both GPUs."""
    schedule = schedule_of([(0, 0, 10, 6, 4, 1), (4, 10, 20, 8, 0, 2)])
    use = {row.resource: row for row in resource_use(schedule, Window(0, 20 * SECOND))}
    assert use["cores"].used == pytest.approx((6 * 10 + 8 * 10) / 200)
    assert use["cores"].stranded == pytest.approx(4 * 6 / 200)  # 4 of the 8 requested cores are free
    assert use["gpu"].installed == 2
    assert use["gpu"].used == pytest.approx((10 + 20) / 40)
    assert use["gpu"].stranded == pytest.approx(6 / 40)
    assert use["memory"].used == pytest.approx(4 * 10 / (16 * 20))
    assert use["memory"].stranded == 0


def test_unstarted_jobs_wait_for_resources_but_rejected_ones_do_not():
    jobs = [(0, 0, 10, 2, 0, 0), (0, -1, -1, 9, 0, 0)]
    window = Window(0, 10 * SECOND)
    assert {u.resource: u.stranded for u in resource_use(schedule_of(jobs), window)}["cores"] == pytest.approx(0.8)
    assert {u.resource: u.stranded for u in resource_use(schedule_of(jobs, rejected=(1,)), window)}["cores"] == 0
    assert resource_use(schedule_of(jobs), Window(5, 5)) == ()


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 20), st.integers(0, 9), st.integers(1, 9), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 15),
    st.integers(1, 20),
)
def test_resource_use_matches_counting_each_second(rows, begin, length):
    jobs = [(s, s + w, s + w + d, c, m, g) for s, w, d, c, m, g in rows]
    use_of = {u.resource: u for u in resource_use(schedule_of(jobs), Window(begin * SECOND, (begin + length) * SECOND))}
    for name, column, total in (("cores", 3, 10), ("memory", 4, 16), ("gpu", 5, 2)):
        used, stranded = 0, 0
        for t in range(begin, begin + length):
            held = sum(job[column] for job in jobs if job[1] <= t < job[2])
            wanted = sum(job[column] for job in jobs if job[0] <= t < job[1])
            used, stranded = used + held, stranded + min(max(total - held, 0), wanted)
        assert use_of[name].used == pytest.approx(used / (total * length))
        assert use_of[name].stranded == pytest.approx(stranded / (total * length))


def test_waiting_job_requests_its_resources_on_each_of_its_nodes():
    build = MachineBuilder("two", ("cores",))
    for k in range(2):
        build.node(f"n{k}", cores=8)
    jobs = Workload.of(["0 s", "0 s"], ["10 s", "10 s"], requests={"nodes": [2, 2], "cores": [5, 4]})
    run = simulate(jobs, Machine.of(build), placement="first_fit")
    (use,) = [row for row in resource_use(run.schedule, Window(0, 10 * SECOND)) if row.resource == "cores"]
    assert use.stranded == pytest.approx(6 / 16), "the second job requests 8 cores, and 6 are free"
