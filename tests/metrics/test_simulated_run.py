"""Metrics of simulated runs, compared with formulas written as plain loops over the schedule."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.metrics import METRICS, Outcomes, Window, common_population, paper_population, summarize
from poolwise.metrics.memory import degradation_histogram, memory_utilization, utilization_histogram
from poolwise.model import Kind, Machine, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.order.priorities import FCFS, FM, SJF
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.golden import golden_jobs

WARM_UP = 40


@pytest.fixture(scope="module")
def schedules():
    """Return schedules of the golden jobs under FM with EASY, and under FCFS without backfilling."""
    workload = golden_jobs()
    machine = Machine.of_racks(4, 16, local=65536, pool=524288)
    fm = WarmUp.before(ListScheduler(FM(), Easy(), RackPlacement()), WARM_UP)
    fcfs = ListScheduler(FCFS(), NoBackfill(), RackPlacement())
    return [simulate(workload, machine, s, model=RemoteMemory(), engine="reference").schedule for s in (fm, fcfs)]


@pytest.fixture(scope="module")
def naive(schedules):
    """Return (wait, runtime, duration, nodes, memory, start, end) by row for each schedule, seconds and MiB."""
    tables = []
    for schedule in schedules:
        workload, table = schedule.workload, {}
        for k in range(schedule.n_run):
            job, start, end = int(schedule.job[k]), int(schedule.start[k]), int(schedule.end[k])
            rows = schedule.placement_of(k)
            nodes = sum(amount for owner, resource, amount in rows if resource == 0)
            pool = sum(amount for owner, resource, amount in rows if schedule.machine.kind[owner] == Kind.POOL)
            local = nodes * min(int(workload.memory[job]), 65536)
            submit, duration = int(workload.submit[job]), int(workload.duration[job])
            table[job] = ((start - submit) / 1e9, (end - start) / 1e9, duration / 1e9, nodes, local + pool, start, end)
        tables.append(table)
    return tables


def test_metrics_match_plain_loops(schedules, naive):
    outcomes, baseline = (Outcomes.of(schedule) for schedule in schedules)
    run, other = naive
    population = common_population([outcomes, baseline], WARM_UP)
    window = Window.of(outcomes, WARM_UP)
    measure = {"warm_up": WARM_UP, "population": population, "window": window, "baseline": baseline}
    values = summarize(outcomes, **measure, memory_baseline=baseline)

    jobs = [j for j in sorted(run) if j >= WARM_UP and j in other]
    begin, end = max(run[j][5] for j in range(WARM_UP) if j in run), max(row[5] for row in run.values())
    assert (window.begin, window.end) == (begin, end)
    assert np.flatnonzero(population).tolist() == jobs
    assert len(jobs) > 150 and begin > 0
    slowdowns = sorted(max((run[j][0] + run[j][1]) / max(run[j][1], 10), 1) for j in jobs)
    local = [max((run[j][0] + run[j][1]) / max(run[j][2], 10), 1) for j in jobs]
    b = sorted(other[j][0] - run[j][0] for j in jobs)
    tenth = math.ceil(len(b) / 10)
    lost = [run[j][1] / run[j][2] - 1 for j in jobs]
    length = (end - begin) / 1e9
    inside = {j: max(0, min(row[6], end) - max(row[5], begin)) / 1e9 for j, row in run.items()}
    wanted = {
        "measured_jobs": len(jobs),
        "mean_wait_s": sum(run[j][0] for j in jobs) / len(jobs),
        "mean_bounded_slowdown": sum(slowdowns) / len(jobs),
        "median_bounded_slowdown": (slowdowns[(len(jobs) - 1) // 2] + slowdowns[len(jobs) // 2]) / 2,
        "mean_bounded_slowdown_local": sum(local) / len(jobs),
        "throughput_per_100s": 100 * sum(begin < row[6] <= end for row in run.values()) / length,
        "utilization": sum(run[j][3] * seconds for j, seconds in inside.items()) / (64 * length),
        "makespan_s": (max(row[6] for row in run.values()) - int(schedules[0].workload.submit[0])) / 1e9,
        "benefit_s": sum(x for x in b if x > 0),
        "discrimination_s": -sum(x for x in b if x < 0),
        "discrimination_10pct_s": -sum(x for x in b[:tenth] if x < 0),
        "marginal_discrimination_10pct_s": -sum(x for x in b[:tenth] if x < 0) - sum(x for x in b[-tenth:] if x > 0),
        "mean_degradation": sum(lost) / len(jobs),
        "share_under_5pct_degradation": sum(x < 0.05 for x in lost) / len(jobs),
        "mean_memory_utilization": sum(run[j][4] * s for j, s in inside.items()) / length / (64 * 65536 + 4 * 524288),
    }
    assert {name: values[name] for name in wanted} == pytest.approx(wanted)
    assert values["mean_wait_s"] > 0 and values["discrimination_s"] > 0 and values["mean_degradation"] > 0
    assert set(values) == set(METRICS) and not any(math.isnan(value) for value in values.values())


def test_run_compared_with_itself_has_no_benefit_or_discrimination(schedules):
    outcomes = Outcomes.of(schedules[1])
    values = summarize(outcomes, warm_up=0, population=outcomes.finished, window=Window.whole(outcomes), baseline=outcomes)
    assert values["benefit_s"] == values["discrimination_s"] == values["marginal_discrimination_10pct_s"] == 0


def test_paper_population_excludes_jobs_that_end_after_the_last_start(schedules):
    outcomes = Outcomes.of(schedules[0])
    paper, common = paper_population(outcomes, WARM_UP), common_population([outcomes], WARM_UP)
    left_out = common & ~paper
    assert left_out.any() and not (paper & ~common).any()
    assert outcomes.end[left_out].min() > Window.of(outcomes, WARM_UP).end


job = st.tuples(st.integers(0, 200), st.integers(1, 90), st.integers(1, 9), st.integers(0, 250))


@settings(max_examples=40, deadline=None)
@given(st.lists(job, min_size=1, max_size=25), st.sampled_from([FCFS(), SJF(), FM()]), st.integers(0, 6))
def test_invariants_of_feasible_schedules(jobs, order, warm_up):
    submit, duration, nodes, memory = (np.array(column, dtype=np.int64) for column in zip(*jobs, strict=True))
    workload = Workload.of(submit * 10**9, duration * 10**9, requests={"nodes": nodes, "memory": memory})
    machine = Machine.of_racks(2, 4, local=100, pool=150)
    scheduler = ListScheduler(order, Easy(), RackPlacement())
    schedule = simulate(workload, machine, scheduler, model=RemoteMemory(), engine="reference").schedule
    outcomes = Outcomes.of(schedule)
    assert outcomes.rejections() == schedule.rejections()
    assert int(outcomes.finished.sum()) + len(schedule.rejected) == len(workload)
    np.testing.assert_array_equal(outcomes.nodes_held[outcomes.finished], outcomes.nodes[outcomes.finished])
    for window in (Window.of(outcomes, warm_up), Window.whole(outcomes)):
        values = summarize(outcomes, warm_up=warm_up, population=outcomes.finished, window=window)
        steps = memory_utilization(outcomes, window)
        if window.length_s:
            assert 0 <= values["utilization"] <= 1 + 1e-12
            assert (steps.value >= 0).all() and (steps.value <= 1).all()
            assert utilization_histogram(steps).share.sum() == pytest.approx(1)
        else:
            assert math.isnan(values["utilization"]) and not len(steps.value)
        if values["measured_jobs"]:
            assert values["mean_bounded_slowdown_local"] >= values["mean_bounded_slowdown"] >= 1
            assert values["mean_degradation"] >= 0
    if outcomes.finished.any():
        assert degradation_histogram(outcomes, outcomes.finished).share.sum() == pytest.approx(1)
