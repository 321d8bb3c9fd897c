"""Failures and repairs of nodes, given in the machine file or drawn from stated rates."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import simulation
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.explain import explain_wait
from poolwise.model import Failures, Machine, Outage, Outcome, Workload
from poolwise.platforms.failures import draw_failures, merged
from poolwise.policies.order.priorities import FCFS
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler
from poolwise.studies import load_machine
from tests.helpers.node_machines import machine, random_machine

LIST = ListScheduler(FCFS(), placement=FirstNodes())
seeds = st.integers(0, 2**32 - 1)


def jobs_for(g: np.random.Generator, jobs: int) -> Workload:
    return Workload.of(
        np.sort(g.integers(0, 60, jobs)) * SECOND,
        g.integers(1, 30, jobs) * SECOND,
        requests={"cores": g.integers(1, 4, jobs), "nodes": g.integers(1, 3, jobs)},
    )


@settings(max_examples=40)
@given(seeds, st.booleans())
def test_failed_nodes_run_nothing_and_lost_jobs_are_requeued(seed, requeue):
    g = np.random.default_rng(seed)
    on = random_machine(g, 5, pools=False)
    nodes = np.flatnonzero(on.kind == 0)
    downs = g.integers(0, 80, 3) * SECOND
    outages = tuple(Outage((int(g.choice(nodes)),), int(down), int(down + g.integers(1, 20) * SECOND)) for down in downs)
    drawn = Failures(outages, tuple(nodes.tolist()), 60 * SECOND, 5 * SECOND, requeue=requeue)
    on = replace(on, failures=drawn if g.random() < 0.5 else Failures(outages, requeue=requeue))
    jobs = jobs_for(g, 15)
    down: dict[int, list[list[int]]] = {}
    for change in draw_failures(jobs, on, seed).disturbances:
        if change.resource == on.resource("cores") and change.amount < 0:
            down.setdefault(change.owner, []).append([change.time])
        elif change.resource == on.resource("cores"):
            down[change.owner][-1].append(change.time)
    result = simulate(jobs, on, LIST, seed=seed)
    schedule, falls = result.schedule, {begin for spans in down.values() for begin, _ in spans}
    assert result.engine == "compiled"
    for run in range(schedule.n_run):
        start, end, job = int(schedule.start[run]), int(schedule.end[run]), int(schedule.job[run])
        for owner, _, _ in schedule.placement_of(run):
            assert all(end <= begin or start >= over for begin, over in down.get(owner, []))
        if schedule.outcome[run] is Outcome.FINISHED:
            assert end - start == int(jobs.duration[job])
        else:
            assert schedule.outcome[run] is Outcome.LOST and end in falls
    runs = np.bincount(schedule.job, minlength=len(jobs))
    lost = schedule.job[~schedule.finished]
    if requeue:
        assert all(schedule.done[job] or job in schedule.rejected for job in range(len(jobs)))
    else:
        assert (runs <= 1).all() and not schedule.done[lost].any()
    told = any("lost a node" in note for note in simulation.notes(schedule))
    assert told == bool(len(lost))


def test_random_outages_of_a_node_are_independent_of_other_nodes():
    on = Machine.of_racks(2, 1, local=1)
    jobs = Workload.of(np.array([0, 10**15]), np.array([1, 1]))

    def of(*owners: int, mtbf: int = 10**12) -> list[tuple[int, int]]:
        failing = replace(on, failures=Failures(owners=owners, mtbf=mtbf, mttr=10**11))
        return [(change.time, change.amount) for change in draw_failures(jobs, failing, 3).disturbances if change.owner == 1]

    assert of(0, 1) == of(1) and len(of(1)) > 1000
    times = np.array(of(1))[:, 0]
    assert np.mean(times[1::2] - times[::2]) == pytest.approx(10**11, rel=0.1)
    assert np.mean(times[2::2] - times[1:-1:2]) == pytest.approx(10**12, rel=0.1)
    assert of(1, mtbf=10**18) == []


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6))))
def test_merged_intervals_cover_the_same_instants_and_are_disjoint(spans):
    intervals = [(down, down + length) for down, length in spans]
    joined = list(merged(intervals))
    assert {t for a, b in joined for t in range(a, b)} == {t for a, b in intervals for t in range(a, b)}
    assert all(earlier[1] < other[0] for earlier, other in pairwise(joined))


def test_future_failures_are_hidden_and_waits_for_repair_are_explained():
    on = replace(machine(np.array([[4, 100]]), np.zeros(1, dtype=np.int64)), failures=Failures((Outage((0,), 5, 50),)))
    jobs = Workload.of(np.array([0]), np.array([10]), requests={"cores": np.array([1])})
    schedule = simulate(jobs, on, LIST).schedule
    assert schedule.machine.failures is None
    assert schedule.start.tolist() == [0, 50] and schedule.end.tolist() == [5, 60]
    assert explain_wait(jobs, on, LIST, 1).status == "started"


def test_machine_file_declares_failures(tmp_path):
    text = """\
version = 1
node = [{ name = "n", allocation = "shared", cores = 4 }]
rack = [{ nodes = { n = 3 } }]

[failures]
mtbf = "30 d"
mttr = "4 h"
nodes = ["rack0.n0"]
jobs = "lose"

[[failures.outage]]
nodes = ["rack0.n2"]
down = "1 h"
up = "2 h"
"""
    file = tmp_path / "m.toml"
    file.write_text(text)
    hour = 3600 * SECOND
    expected = Failures((Outage((2,), hour, 2 * hour),), (0,), 720 * hour, 4 * hour, requeue=False)
    assert load_machine(file).failures == expected
    for old, new, line in (('down = "1 h"', 'down = "3 h"', 11), ('nodes = ["rack0.n2"]', 'nodes = ["rack0.n9"]', 12)):
        file.write_text(text.replace(old, new))
        with pytest.raises(InputError) as caught:
            load_machine(file)
        assert caught.value.line == line and caught.value.remedy
