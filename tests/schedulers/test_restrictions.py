"""Partitions, features, QOS limits and maintenance windows, compared with a naive reference implementation."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.explain import explain_wait
from poolwise.interfaces import BackfillPolicy
from poolwise.loop import run_loop
from poolwise.model import Machine, Partition, QualityOfService, Refusal, ReservedWindow, WaitCause, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy, reservation
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import FCFS, SJF
from poolwise.policies.placement.avoid_windows import AvoidWindows
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.fitting import NEVER_FITS
from poolwise.schedulers.list import ListScheduler
from tests.helpers.node_machines import machine
from tests.helpers.restricted_machines import Judge, restricted_jobs, restricted_machine

BACKFILLS = (NoBackfill(), Skip(), Easy(), Easy(extra=False), Conservative(), Conservative(keep_reservations=True))
seeds = st.integers(0, 2**32 - 1)


def naive_first_fit(judge: Judge, jobs: Workload, on: Machine) -> dict[int, tuple[int, tuple[int, ...]]]:
    """Return job -> (start, nodes) if every job, by tier, length and submission, is tried at each second."""
    placed: dict[int, tuple[int, tuple[int, ...]]] = {}
    waiting = {job for job in range(len(jobs)) if not judge.never(job) and judge.fits(job)}
    order = sorted(waiting, key=lambda job: (-judge.tier(job), int(jobs.requested[job]), int(jobs.submit[job]), job))
    for now in range(0, 3000 * SECOND, SECOND):
        running = [job for job, (start, _) in placed.items() if start + int(jobs.duration[job]) > now]
        for job in [job for job in order if job in waiting and int(jobs.submit[job]) <= now]:
            if not judge.beside(job, running):
                continue
            nodes = []
            for node in range(on.n_owner):
                here = [other for other in running if node in placed[other][1]]
                requested = {name: int(jobs.request(name)[job]) for name in ("cores", "memory")}
                used = {name: sum(int(jobs.request(name)[other]) for other in here) for name in requested}
                room = all(used[name] + requested[name] <= int(on.capacity[node, on.resource(name)]) for name in requested)
                if room and judge.may_use(job, node) and not judge.shut(job, node, now):
                    nodes.append(node)
            if len(nodes) >= int(jobs.nodes[job]):
                placed[job] = now, tuple(nodes[: int(jobs.nodes[job])])
                running.append(job)
                waiting.discard(job)
        if not waiting:
            break
    return placed


@settings(max_examples=40)
@given(seeds)
def test_jobs_start_where_and_when_a_naive_loop_starts_them(seed):
    g = np.random.default_rng(seed)
    on, jobs = restricted_machine(g), restricted_jobs(g, 14)
    judge = Judge(jobs, on)
    schedule = simulate(jobs, on, ListScheduler(SJF(), Skip(), FirstNodes()), engine="reference").schedule
    never = {job for job in range(len(jobs)) if judge.never(job)}
    assert schedule.rejected.keys() == never | {job for job in range(len(jobs)) if not judge.fits(job)}
    assert {job for job, why in schedule.rejected.items() if not why.startswith(NEVER_FITS)} == never
    got = {int(schedule.job[run]): run for run in range(schedule.n_run)}
    starts = {
        job: (int(schedule.start[run]), tuple(sorted({owner for owner, _, _ in schedule.placement_of(run)})))
        for job, run in got.items()
    }
    assert starts == naive_first_fit(judge, jobs, on)


@pytest.mark.long
@settings(max_examples=40)
@given(seeds, st.sampled_from(BACKFILLS))
def test_no_backfill_breaks_a_limit_or_runs_into_a_window(seed, backfill):
    g = np.random.default_rng(seed)
    on, jobs = restricted_machine(g), restricted_jobs(g, 25)
    judge = Judge(jobs, on)
    schedule = simulate(jobs, on, ListScheduler(SJF(), backfill, FirstNodes()), engine="reference").schedule
    assert not schedule.waiting and not schedule.refused
    assert schedule.n_run + len(schedule.rejected) == len(jobs)
    for run in range(schedule.n_run):
        job, start = int(schedule.job[run]), int(schedule.start[run])
        for owner, _, _ in schedule.placement_of(run):
            assert judge.may_use(job, owner) and not judge.shut(job, owner, start)
        running = np.flatnonzero((schedule.start <= start) & (schedule.end > start) & (np.arange(schedule.n_run) != run))
        assert judge.beside(job, schedule.job[running].tolist())


@settings(max_examples=25)
@given(seeds)
def test_reservation_next_to_windows_begins_at_the_first_second_at_which_the_job_fits(seed):
    g = np.random.default_rng(seed)
    on, jobs = restricted_machine(g), restricted_jobs(g, 12)
    placement = AvoidWindows(FirstNodes())
    seen = []

    class Looking(Easy):
        def select(self, cycle):
            queue, snapshot = cycle.queue, cycle.snapshot
            for job in queue.jobs.tolist():
                if isinstance(placement.place(queue.job(job), snapshot), Refusal):
                    then = reservation(queue.job(job), snapshot, placement).now
                    each = range(snapshot.now, then + 1, SECOND)
                    fits = [not isinstance(placement.place(queue.job(job), snapshot.at(time)), Refusal) for time in each]
                    seen.append(fits)
            return super().select(cycle)

    run_loop(Simulation(jobs, on, Ideal()), ListScheduler(SJF(), Looking(), FirstNodes()))
    for fits in seen:
        assert fits[-1] and not any(fits[:-1])


@settings(max_examples=15)
@given(seeds, st.sampled_from([backfill for backfill in BACKFILLS if not backfill.keeps_state]))
def test_every_wait_is_explained_and_limits_are_named(seed, backfill: BackfillPolicy):
    g = np.random.default_rng(seed)
    on, jobs = restricted_machine(g), restricted_jobs(g, 15)
    judge, scheduler = Judge(jobs, on), ListScheduler(SJF(), backfill, FirstNodes())
    schedule = simulate(jobs, on, scheduler, engine="reference").schedule
    waited = np.flatnonzero(schedule.job_start > jobs.submit)[:4]
    for job in waited.tolist():
        for time, reason in explain_wait(jobs, on, scheduler, int(jobs.id[job])).passes:
            running = schedule.job[(schedule.start <= time) & (schedule.end > time)].tolist()
            assert (reason.cause is WaitCause.LIMIT) == (not judge.beside(job, running))
            assert reason.cause is not WaitCause.LIMIT or judge.qos(job).name in reason.text


def two_nodes(**allowed) -> Machine:
    build = Machine.of_racks(2, 1, local=10)
    sets = {"left": np.array([True, False]), "right": np.array([False, True])}
    return Machine(**{**vars(build), "node_sets": sets, **allowed})


def one_each(jobs: int, **columns) -> Workload:
    return Workload.of(
        np.arange(jobs),
        np.full(jobs, 10),
        requests={"nodes": np.ones(jobs)},
        attributes={k: np.array(v) for k, v in columns.items()},
    )


def test_partitions_contain_whole_nodes_of_racks():
    on = two_nodes(partitions=(Partition("left", True), Partition("right")))
    jobs = one_each(3, partition=["", "left", "right"])
    result = simulate(jobs, on, ListScheduler())
    assert result.engine == "compiled"
    assert result.schedule.job_start.tolist() == [0, 10, 2]
    assert [result.schedule.placement_of(run)[0][0] for run in range(3)] == [0, 1, 0]


def test_higher_tier_precedes_any_priority():
    on = two_nodes(partitions=(Partition("left", tier=1), Partition("right", tier=2)))
    on = Machine(**{**vars(on), "node_sets": {"left": np.ones(2, bool), "right": np.ones(2, bool)}})
    jobs = Workload.of(
        np.array([0, 1, 2]),
        np.full(3, 10),
        requests={"nodes": np.full(3, 2)},
        attributes={"partition": np.array(["left", "left", "right"])},
    )
    assert simulate(jobs, on, ListScheduler()).schedule.job_start.tolist() == [0, 20, 10]


def test_full_qos_does_not_block_later_jobs():
    on = two_nodes(qos=(QualityOfService("normal", True, per_user=(("jobs", 1),)),))
    schedule = simulate(one_each(3, user=["ada", "ada", "bob"]), on, ListScheduler(backfill=NoBackfill())).schedule
    assert schedule.job_start.tolist() == [0, 10, 2]


def test_window_is_known_in_advance_and_open_to_its_users():
    on = two_nodes(windows=(ReservedWindow("upkeep", 5, 40, np.array([True, True]), frozenset(["ada"])),))
    schedule = simulate(one_each(2, user=["bob", "ada"]), on, ListScheduler(backfill=NoBackfill())).schedule
    assert schedule.job_start.tolist() == [40, 40], "the head waits for the end of the window and blocks the rest"
    schedule = simulate(one_each(2, user=["bob", "ada"]), on, ListScheduler()).schedule
    assert schedule.job_start.tolist() == [40, 1]


def test_unknown_names_are_errors():
    on = two_nodes(partitions=(Partition("left"),), qos=(QualityOfService("normal", per_user=(("jobs", 1),)),))
    for columns, message in (
        ({"partition": ["lefd"], "user": ["ada"]}, "unknown partition 'lefd'"),
        ({"qos": ["normel"], "user": ["ada"]}, "unknown qos 'normel'"),
        ({"qos": ["normal"]}, "the jobs have no users"),
    ):
        with pytest.raises(InputError, match=message):
            simulate(one_each(1, **columns), on, ListScheduler())


def test_scheduler_without_partition_support_is_rejected():
    on = two_nodes(partitions=(Partition("left"),))
    with pytest.raises(InputError, match="does not enforce"):
        simulate(one_each(1), on, CompositionScheduler())


@settings(max_examples=25)
@given(seeds)
def test_kernels_respect_partitions(seed):
    g = np.random.default_rng(seed)
    on, jobs = restricted_machine(g), restricted_jobs(g, 25)
    scheduler = ListScheduler(SJF(), Easy(), FirstNodes())
    expected = simulate(jobs, on, scheduler, engine="reference").schedule
    result = simulate(jobs, on, scheduler)
    assert result.engine == "compiled"
    assert np.array_equal(result.schedule.start, expected.start) and np.array_equal(result.schedule.owner, expected.owner)
    assert result.schedule.rejected == expected.rejected


def test_partitions_of_one_tier_run_in_kernels():
    on = machine(np.tile([4, 100], (3, 1)), np.zeros(3, dtype=np.int64), sets={"p": [1, 1, 0], "q": [0, 0, 1]})
    on = replace(on, partitions=(Partition("p", True, max_time=5 * SECOND), Partition("q")))
    jobs = Workload.of(
        np.arange(4),
        np.full(4, 9 * SECOND),
        requests={"cores": np.full(4, 3)},
        attributes={"partition": np.array(["p,q", "q", "q", "p,q"])},
    )
    result = simulate(jobs, on, ListScheduler(FCFS(), Easy(), FirstNodes()))
    assert result.engine == "compiled"
    assert set(result.schedule.owner.tolist()) == {2}, "p accepts no job of 9 s"
