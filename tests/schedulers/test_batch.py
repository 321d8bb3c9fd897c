"""Batch scheduling: every start fits, slowdowns stay within their bounds, and plans are reproducible."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import registry
from poolwise.batch.methods.heep import Heep
from poolwise.batch.methods.opt import Opt
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.model import Kind, Machine, Workload
from poolwise.performance.cpu_frequency import CpuFrequency, ProfiledMemory
from poolwise.performance.profiles import find_profile
from poolwise.quantities import SECOND, with_slowdown
from poolwise.schedulers.batch import BatchScheduler
from poolwise.schedulers.list import ListScheduler


def machine(nodes=3, pool=2000) -> Machine:
    capacity = np.array([[16, 1000]] * nodes + [[0, pool]])
    kind = np.array([Kind.NODE] * nodes + [Kind.POOL])
    numbers = {
        "frequency": np.array([*[2.0, 1.5, 1.0][:nodes], np.nan]),
        "static": np.array([*[1.6, 1.2, 0.7][:nodes], np.nan]),
        "dynamic": np.array([*[0.6, 0.4, 0.3][:nodes], np.nan]),
    }
    n = nodes + 1
    return Machine(
        "small", tuple(f"o{k}" for k in range(n)), kind, ("node",) * nodes + ("pool",), np.zeros(n, dtype=np.int64),
        np.zeros((n, 2), dtype=np.int64), np.full(n, -1), ("cores", "memory"), capacity, {}, numbers,
    )  # fmt: skip


@st.composite
def workloads(draw):
    n = draw(st.integers(1, 6))
    column = lambda low, high: np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))  # noqa: E731
    return Workload.of(
        column(0, 40) * SECOND,
        column(1, 30) * SECOND,
        requests={"cores": column(1, 16), "memory": column(1, 1500)},
        attributes={
            "frequency": column(10, 20) / 10,
            "tolerance": column(0, 30) / 20,
            "profile": np.array(draw(st.lists(st.sampled_from(["kmeans", "spark_wordcount"]), min_size=n, max_size=n))),
        },
    )


@pytest.mark.parametrize("method", ["place", "heep", "irop", "cfm", "first-fit"])
@settings(max_examples=6, deadline=None)
@given(workload=workloads(), every=st.sampled_from([0.0, 7.0]))
def test_runs_stay_within_capacity_and_slowdown_bound(method, workload, every):
    scheduler = BatchScheduler(method, every_s=every, effort_s=0.002)
    run = simulate(workload, machine(), scheduler, model=CpuFrequency())
    schedule = run.schedule
    assert not schedule.refused
    assert not schedule.waiting
    assert sorted([*schedule.job.tolist(), *schedule.rejected]) == list(range(len(workload)))
    for job, start, end in zip(schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), strict=True):
        slowdown = (end - start) / workload.duration[job] - 1
        assert method in ("cfm", "first-fit") or slowdown <= workload.attributes["tolerance"][job] + 1e-6
        if every:
            assert start % (7 * SECOND) == 0


@settings(max_examples=4, deadline=None)
@given(workload=workloads())
def test_same_inputs_give_same_schedule(workload):
    first, other = (
        simulate(workload, machine(), BatchScheduler(effort_s=0.002), model=CpuFrequency(), seed=3).schedule for _ in "ab"
    )
    assert first.start.tolist() == other.start.tolist()
    assert first.owner.tolist() == other.owner.tolist()
    assert first.amount.tolist() == other.amount.tolist()


def test_infeasible_job_is_rejected_with_its_constraint():
    workload = Workload.of(np.zeros(2), np.full(2, SECOND), requests={"cores": np.array([99, 2]), "memory": np.array([1, 1])})
    schedule = simulate(workload, machine(), BatchScheduler(effort_s=0.002)).schedule
    assert list(schedule.rejected) == [0]
    assert "(4c)" in schedule.rejected[0]


def test_machine_without_shared_nodes_is_rejected():
    with pytest.raises(InputError, match="no shared nodes"):
        BatchScheduler().open(Machine.flat(4), 0)


def test_batch_scheduler_is_registered():
    assert registry.find("schedulers", "batch") is BatchScheduler
    assert registry.find("models", "cpu_frequency") is CpuFrequency


def test_profile_of_a_job_slows_it_on_racks_with_pools():
    racks = Machine.of_racks(1, 2, local=500, pool=1000)
    workload = Workload.of(
        np.zeros(2), np.full(2, 100 * SECOND), requests={"memory": np.array([1000, 400])},
        attributes={"profile": np.array(["hpcg", "kmeans"])},
    )  # fmt: skip
    schedule = simulate(workload, racks, ListScheduler(), model=ProfiledMemory()).schedule
    lasted = dict(zip(schedule.job.tolist(), (schedule.end - schedule.start).tolist(), strict=True))
    assert lasted[0] == with_slowdown(100 * SECOND, float(find_profile("hpcg").at(0.5)))
    assert lasted[1] == 100 * SECOND


def test_plans_of_opt_are_limited_by_work(monkeypatch):
    limits = []
    monkeypatch.setattr(Opt, "solve", lambda method, problem, limit: limits.append(limit) or Heep().solve(problem, limit))
    workload = Workload.of(np.zeros(1), np.full(1, SECOND), requests={"cores": np.array([2]), "memory": np.array([1])})
    simulate(workload, machine(), BatchScheduler("opt", effort_s=0.5))
    assert {(limit.is_timed, limit.work) for limit in limits} == {(False, 0.5)}
