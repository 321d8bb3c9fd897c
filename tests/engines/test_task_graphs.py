"""Task graphs under dispatch: hand-computed cases, random graphs against a full scan, and both engines against each other."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from poolwise.engines import Disturbance, simulate
from poolwise.engines.compiled_engine import RunSpec
from poolwise.engines.dispatch.replay import unsupported
from poolwise.engines.select import find_engine
from poolwise.errors import InputError
from poolwise.explain import explain_wait
from poolwise.metrics.latency import job_latency_us, task_latency_us
from poolwise.model import Machine, Schedule, TaskGraph, WaitCause, Workload
from poolwise.policies.order.priorities import SJF
from poolwise.quantities import SECOND, US
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.list import ListScheduler
from poolwise.traces import vinesim
from tests.helpers.random_dispatch import GRAPHS, POLICIES, TIERED, Naive, compare, dependent_study, policy_of
from tests.helpers.random_studies import difference

named = pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])
CPU, ARM, GPU, FPGA, MULTI = range(5)
INT, FP_BAD, FP_GOOD, MEM, IO, ARB = range(6)


def by_task(schedule: Schedule) -> list[tuple[int, int, int]]:
    """Return (start, end, unit) in trace order; runs of one row start in the order of its tasks."""
    rows = zip(schedule.job.tolist(), schedule.start.tolist(), schedule.end.tolist(), schedule.owner.tolist(), strict=True)
    return [row[1:] for row in sorted(rows, key=lambda row: row[0])]


def on_cpus(units: int, operations: list[int], predecessors: list[list[int]], gap: float = 0, jobs: bool = False):
    """Build tasks of one type on equal CPUs that execute one operation per microsecond, in one job or one job each."""
    rates = np.zeros((6, 7))
    rates[CPU, INT] = 1.0
    rows = [(INT, 0, 0, 0, count, 5, k if jobs else 0) for k, count in enumerate(operations)]
    return vinesim.VineSimCase.of(
        vinesim.UnitList.of([(CPU, 0, y) for y in range(units)]), vinesim.TaskList.of(rows, predecessors), rates, gap
    )


def both(case: vinesim.VineSimCase, **settings) -> Schedule:
    """Return the schedule of both engines, which must be equal."""
    reference, compiled = (
        simulate(case.workload, case.machine, Dispatch(), model=case.model, engine=engine, **settings).schedule
        for engine in ("reference", "compiled")
    )
    assert difference(reference, compiled) == ""
    return compiled


def test_diamond_by_hand() -> None:
    """Task 0 (10 us), then 1 (10 us) and 2 (30 us) in parallel, then 3 (5 us) after the slower of them."""
    schedule = both(on_cpus(2, [10, 10, 30, 5], [[], [0], [0], [1, 2]]))
    assert [(start // US, end // US) for start, end, _ in by_task(schedule)] == [(0, 10), (10, 20), (10, 40), (40, 45)]
    assert job_latency_us(schedule).tolist() == [45.0]
    assert sorted(task_latency_us(schedule).tolist()) == [10.0, 20.0, 40.0, 45.0], "latencies count from the submission"
    assert schedule.passes == 5


def test_diamond_on_one_unit_serves_ready_tasks_by_the_time_they_became_ready() -> None:
    """Task 4 arrives at 15 us, after tasks 1 and 2 became ready at 10 us and before task 3 does at 50 us."""
    case = on_cpus(1, [10, 10, 30, 5, 7], [[], [0], [0], [1, 2], []])
    submit = np.array([0, 0, 0, 0, 15 * US])
    schedule = both(replace(case, workload=replace(case.workload, submit=submit)))
    assert [start // US for start, _, _ in by_task(schedule)] == [0, 10, 20, 57, 50]


def test_task_that_is_submitted_after_its_predecessors_end_starts_at_its_submission() -> None:
    schedule = both(on_cpus(2, [10, 10], [[], [0]], gap=50, jobs=True))
    assert [start // US for start, _, _ in by_task(schedule)] == [0, 50]


def test_tasks_that_become_ready_at_one_instant_queue_by_id() -> None:
    """Jobs 7 and 3 wait for job 9; job 7 is submitted first, but both are ready at 10 s, where the lower id goes first."""
    workload = Workload.of(
        np.array([0, 1, 2]) * SECOND,
        np.array([10, 1, 1]) * SECOND,
        id=[9, 7, 3],
        attributes={"predecessors": ["", "9", "9"]},
    )
    machine = on_cpus(1, [1], [[]]).machine
    for engine in ("reference", "compiled"):
        schedule = simulate(workload, machine, Dispatch(), engine=engine).schedule
        assert [(int(workload.id[job]), start // SECOND) for job, start in zip(schedule.job, schedule.start, strict=True)] == [
            (9, 0),
            (3, 10),
            (7, 11),
        ]


def test_tasks_with_equal_fields_share_a_row_only_if_they_wait_for_the_same_tasks() -> None:
    case = on_cpus(4, [5, 5, 5, 5, 5, 5], [[], [], [0, 1], [0, 1], [2], [3]])
    assert case.workload.tasks.tolist() == [2, 1, 1, 1, 1]
    assert case.workload.attributes["predecessors"].tolist() == ["", "0", "0", "1", "2"]
    forked = on_cpus(4, [5, 5, 5, 5, 9], [[], [0], [0], [0], [1, 2, 3]])
    assert forked.workload.tasks.tolist() == [1, 3, 1]
    assert [start // US for start, _, _ in by_task(both(forked))] == [0, 5, 5, 5, 10]


@pytest.mark.long
@named
@pytest.mark.parametrize("shape", GRAPHS)
def test_random_graphs_match_a_full_scan(entry: tuple[str, dict[str, object]], shape: str) -> None:
    for seed in range(6):
        this, policy = dependent_study(seed, shape, 30), policy_of(entry)
        case = this.case()
        assert case.workload.task_graph is not None or len(this.tasks) < 3
        schedule = simulate(
            case.workload, case.machine, Dispatch(policy), model=case.model, seed=seed, engine="reference"
        ).schedule
        assert schedule.done.all() and not schedule.refused
        assert by_task(schedule) == Naive(this, policy, seed).run(), seed


@pytest.mark.parametrize("shape", GRAPHS)
def test_both_engines_agree_on_random_graphs(shape: str) -> None:
    for seed in range(10):
        compare(seed, shape=shape)


@pytest.mark.long
def test_both_engines_agree_without_compiling() -> None:
    script = "from tests.helpers.random_dispatch import GRAPHS, compare\n"
    script += "for seed in range(50, 54): [compare(seed, 30, shape) for shape in GRAPHS]\n"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "ignore"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_kernel_supports_task_graphs_in_arrival_order_only() -> None:
    case = dependent_study(1, "chains").case()
    for entry in TIERED:
        assert simulate(case.workload, case.machine, Dispatch(policy_of(entry)), model=case.model).engine == "compiled"
    by_length = RunSpec(case.workload, case.machine, Dispatch(order=SJF()), case.model, case.model)
    assert "order SJF has no kernel for task graphs" in str(unsupported(by_length))
    assert simulate(case.workload, case.machine, Dispatch(order=SJF()), model=case.model).schedule.done.all()
    jobs = Workload.of([0, 0], [SECOND, SECOND], requests={"nodes": [1, 1]}, attributes={"predecessors": ["2", ""]})
    listed = RunSpec(jobs, Machine.flat(2), ListScheduler(SJF()), case.model, case.model)
    assert "jobs wait for others" in str(find_engine(listed)[1])
    schedule = simulate(jobs, Machine.flat(2), ListScheduler(SJF())).schedule
    assert schedule.job.tolist() == [1, 0] and schedule.start.tolist() == [0, SECOND]


def test_jobs_behind_a_rejected_job_are_rejected() -> None:
    jobs = Workload.of([0] * 4, [SECOND] * 4, requests={"nodes": [9, 1, 1, 1]}, attributes={"predecessors": ["", "1", "2", ""]})
    schedule = simulate(jobs, Machine.flat(2), ListScheduler(SJF())).schedule
    assert schedule.job.tolist() == [3] and not schedule.waiting
    assert schedule.rejected[1] == "it waits for job 1, which was rejected"
    assert schedule.rejected[2] == "it waits for job 2, which was rejected"


def test_jobs_behind_a_lost_job_are_rejected() -> None:
    case = on_cpus(1, [10, 10, 10], [[], [0], []], jobs=True)
    slots = case.machine.resource("slots")
    failure = [Disturbance(5 * US, 0, slots, -1), Disturbance(6 * US, 0, slots, 1)]
    run = {"model": case.model, "disturbances": failure}
    lost = simulate(case.workload, case.machine, Dispatch(), requeue=False, **run).schedule
    assert lost.rejected == {1: "it waits for job 0, which did not finish"} and lost.done.tolist() == [False, False, True]
    again = simulate(case.workload, case.machine, Dispatch(), requeue=True, **run).schedule
    assert again.done.all() and not again.rejected


@pytest.mark.parametrize(
    ("predecessors", "problem"),
    [
        (["", "1", "4"], "job 3 waits for '4', which is not a job"),
        (["", "2", ""], "job 2 waits for itself"),
        (["3", "1", "2"], "job 1 waits for 3 waits for 2 waits for 1: a cycle"),
        (["", "1,x", ""], "job 2 waits for 'x', which is not a job"),
    ],
)
def test_invalid_graphs_are_errors(predecessors: list[str], problem: str) -> None:
    jobs = Workload.of([0, 0, 0], [1, 1, 1], attributes={"predecessors": predecessors})
    machine = on_cpus(1, [1], [[]]).machine
    with pytest.raises(InputError, match=problem) as caught:
        simulate(jobs, machine, Dispatch())
    assert caught.value.field == "predecessors"


def test_graphs_cannot_be_combined_with_a_closed_loop() -> None:
    jobs = Workload.of([0, 0], [1, 1], attributes={"predecessors": ["", "1"], "preceding": [-1, -1]})
    with pytest.raises(InputError, match="closed_loop cannot be combined with predecessors"):
        simulate(replace(jobs, closed_loop=True), on_cpus(1, [1], [[]]).machine, Dispatch())


def test_cycles_of_a_graph() -> None:
    assert TaskGraph.of([[1], [0]]).cycle() == [0, 1]
    assert TaskGraph.of([[], [2], []]).cycle() == []
    assert TaskGraph.of([[3], [0], [1], [2, 1]]).cycle() in ([0, 3, 2, 1], [0, 3, 1])
    long = TaskGraph.of([[k + 1] for k in range(5000)] + [[]])
    assert long.cycle() == [] and long.order[0] == 5000


def test_explained_wait_begins_with_the_predecessors() -> None:
    """Job 3 of the diamond on one unit is ready at 50 us and starts at 57 us, after job 4."""
    case = on_cpus(1, [10, 10, 30, 5, 7], [[], [0], [0], [1, 2], []])
    workload = replace(case.workload, submit=np.array([0, 0, 0, 0, 15 * US]))
    run = {"model": case.model}
    explanation = explain_wait(workload, case.machine, Dispatch(), 3, **run)
    assert [(e.start // US, e.end // US, e.reason.cause) for e in explanation.episodes] == [
        (0, 50, WaitCause.PREDECESSORS),
        (50, 57, WaitCause.SHORT),
    ]
    assert explanation.episodes[0].reason.text == "it waits for jobs 1, 2 to finish" and explanation.wait == 57 * US
    other = explain_wait(workload, case.machine, Dispatch(), 4, **run)
    assert other.wait == 35 * US and [holder.job for holder in other.episodes[0].holders] == [1]
    first = explain_wait(workload, case.machine, Dispatch(), 0, **run)
    assert first.wait == 0 and not first.episodes
    own = explain_wait(workload, case.machine, Dispatch(), 1, **run)
    assert [(e.start // US, e.end // US, e.reason.cause) for e in own.episodes] == [(0, 10, WaitCause.PREDECESSORS)]


def test_explanation_of_a_job_behind_a_rejected_one() -> None:
    jobs = Workload.of([0] * 3, [SECOND] * 3, requests={"nodes": [9, 1, 1]}, attributes={"predecessors": ["", "1", "2"]})
    explanation = explain_wait(jobs, Machine.flat(2), ListScheduler(SJF()), 3)
    assert explanation.rejected == "it waits for job 2, which was rejected"
