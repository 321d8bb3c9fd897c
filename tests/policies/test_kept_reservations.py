"""Conservative backfilling with kept reservations: they are never delayed, and a second-by-second reference agrees."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poolwise.conformance import check_backfill
from poolwise.conformance.scheduler import WARM
from poolwise.engines import simulate
from poolwise.interfaces import BackfillPolicy, Dispatcher, Scheduler, SchedulingPass
from poolwise.loop import run_loop
from poolwise.model import Changes, Decisions, Machine, Placement, Queue, Reject, Snapshot, Start, Workload
from poolwise.model.rules import BackfillRule
from poolwise.model.run_table import RunTable
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.conservative import AvailabilityProfile, Conservative, IncrementalConservative, Reservation
from poolwise.policies.order.priorities import FCFS, FM, SJF
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListDispatcher, ListScheduler

KEPT = Conservative(keep_reservations=True)
Jobs = Sequence[tuple[int, int, int, int]]  # (submit s, nodes, duration s, requested s)


def workload(jobs: Jobs, **requests: np.ndarray) -> Workload:
    submit, nodes, duration, requested = (np.array(column) for column in zip(*sorted(jobs), strict=True))
    every = {"nodes": nodes, **requests}
    return Workload.of(submit * SECOND, duration * SECOND, requested=requested * SECOND, requests=every)


def starts(jobs: Jobs, backfill: Conservative, nodes: int = 4, order: object = None) -> list[int]:
    scheduler = ListScheduler(order or SJF(), backfill)
    schedule = simulate(workload(jobs), Machine.flat(nodes), scheduler, engine="reference").schedule
    return (schedule.job_start // SECOND).tolist()


def test_later_arrivals_do_not_delay_reservations() -> None:
    jobs = [(0, 3, 10, 10), (1, 4, 10, 10), (2, 1, 9, 9)]
    assert starts(jobs, Conservative()) == [0, 11, 2], "rebuilt, the shorter job goes first"
    assert starts(jobs, KEPT) == [0, 10, 20], "kept, the node is reserved from 10 s"


def test_early_release_is_used_in_priority_order() -> None:
    jobs = [(0, 4, 4, 10), (1, 4, 10, 10), (2, 2, 5, 5), (3, 2, 6, 6)]
    # Reserved: 10, 20, 20. The first run ends at 4: the job of 5 s is compressed first, and moves to 4; the one of 6 s fits
    # with it, and both end before 10. The job of 10 s could also have moved to 4, but comes later in the order.
    assert starts(jobs, KEPT) == [0, 10, 4, 4]


def test_run_that_exceeds_its_estimate_moves_reservations() -> None:
    assert starts([(0, 4, 15, 10), (1, 4, 10, 10)], KEPT) == [0, 15]


def slow_starts(jobs: Jobs, nodes: int) -> list[int]:
    """The same rule on one row of free nodes per second, SJF, for runs that never exceed their estimates."""
    jobs = sorted(jobs)
    horizon = max(s for s, *_ in jobs) + sum(r for *_, r in jobs) + 1
    promised: dict[int, int] = {}
    begun: dict[int, int] = {}
    for now in range(horizon):
        ended = any(begun[j] + jobs[j][2] == now for j in begun)
        arrived = [j for j, job in enumerate(jobs) if job[0] == now]
        if not ended and not arrived:
            continue
        free = [nodes] * (2 * horizon)

        def hold(j: int, start: int, end: int, sign: int, free: list[int] = free) -> None:
            for t in range(start, end):
                free[t] -= sign * jobs[j][1]

        def earliest(j: int, now: int = now, free: list[int] = free) -> int:
            return next(t for t in range(now, horizon) if min(free[t : t + jobs[j][3]]) >= jobs[j][1])

        for j, start in begun.items():
            if start + jobs[j][2] > now:
                hold(j, now, start + jobs[j][3], 1)
        for j, start in promised.items():
            hold(j, start, start + jobs[j][3], 1)
        waiting = sorted((*promised, *arrived), key=lambda j: (jobs[j][3], j))
        turns = [j for j in waiting if j in promised] + [j for j in waiting if j not in promised]
        moved = True
        while moved:
            moved = False
            for j in turns:
                if j in promised:
                    hold(j, promised[j], promised[j] + jobs[j][3], -1)
                start = min(earliest(j), promised.get(j, horizon))
                moved |= start != promised.get(j)
                promised[j] = start
                hold(j, start, start + jobs[j][3], 1)
            turns = waiting
        begun |= {j: now for j in waiting if promised[j] == now}
        promised = {j: start for j, start in promised.items() if start > now}
    return [begun[j] for j in range(len(jobs))]


@st.composite
def overestimated(draw: st.DrawFn) -> Jobs:
    jobs = draw(
        st.lists(st.tuples(st.integers(0, 12), st.integers(1, 4), st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=9)
    )
    return [(submit, nodes, duration, duration + more) for submit, nodes, duration, more in jobs]


@settings(max_examples=60, deadline=None)
@given(overestimated())
def test_schedule_matches_a_second_by_second_reference(jobs: Jobs) -> None:
    assert starts(jobs, KEPT) == slow_starts(jobs, 4)


@settings(max_examples=40, deadline=None)
@given(overestimated())
def test_keeping_changes_nothing_under_fcfs_with_exact_estimates(jobs: Jobs) -> None:
    exact = [(submit, nodes, duration, duration) for submit, nodes, duration, _ in jobs]
    assert starts(exact, KEPT, order=FCFS()) == starts(exact, Conservative(), order=FCFS())


class Watched(Scheduler, Dispatcher):
    """Records the first reservation of each job, and asserts that no reservation is delayed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.first_reserved: dict[int, int] = {}

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        opened = self.scheduler.open(machine, seed)
        assert isinstance(opened, ListDispatcher) and isinstance(opened.scheduler.backfill, IncrementalConservative)
        self.opened, self.backfill = opened, opened.scheduler.backfill
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        before = {job: reserved.start for job, reserved in self.backfill.reservations.items()}
        decisions = self.opened.schedule(queue, snapshot, changes)
        if any(isinstance(decision, Reject) for decision in decisions):
            return decisions  # the loop runs the pass again
        for job, reserved in self.backfill.reservations.items():
            assert snapshot.now < reserved.start <= before.get(job, reserved.start)
            self.first_reserved.setdefault(job, reserved.start)
        assert len(self.backfill.reservations) + len(decisions.entries) >= len(queue), "every waiting job has a reservation"
        return decisions


@settings(max_examples=60, deadline=None)
@example([(0, 1, 1, 1)] * 8 + [(1, 3, 1, 1)], [0] * 8 + [200], SJF())
@given(
    overestimated(), st.lists(st.sampled_from((0, 64, 90, 128, 200)), min_size=9, max_size=9), st.sampled_from((SJF(), FM()))
)
def test_no_job_starts_later_than_its_first_reservation(jobs: Jobs, memory: list[int], order: SJF | FM) -> None:
    machine = Machine.of_racks(2, 2, local=64, pool=150)
    load = workload(jobs, memory=np.array(memory[: len(jobs)]))
    simulation = Simulation(load, machine, RemoteMemory())
    watched = Watched(ListScheduler(order, KEPT))
    loop = run_loop(simulation, watched)
    began = simulation.recorder.schedule(load, machine, loop).job_start
    assert all(0 <= began[job] <= start for job, start in watched.first_reserved.items())
    assert not loop.waiting and not loop.refused


def test_compiled_engine_supports_kept_reservations() -> None:
    assert KEPT == pickle.loads(pickle.dumps(KEPT)) == replace(KEPT) != Conservative()
    assert Conservative().rule() == BackfillRule("all") != KEPT.rule() == BackfillRule("all", keeps=True)
    jobs = [(0, 3, 10, 10), (1, 4, 10, 10), (2, 1, 9, 9)]
    results = [simulate(workload(jobs), Machine.flat(4), ListScheduler(SJF(), how)) for how in (Conservative(), KEPT)]
    assert [run.engine for run in results] == ["compiled", "compiled"]
    assert [(run.schedule.job_start // SECOND).tolist() for run in results] == [[0, 11, 2], [0, 10, 20]]


def test_subclass_keeps_reservations_if_set() -> None:
    @dataclass(frozen=True)
    class Mine(Conservative):
        factor: float = 1.0

    for mine in (Mine(factor=2.0), Mine(False, 2.0)):
        assert type(mine) is Mine and mine.factor == 2.0 and mine.open() is mine
    assert isinstance(Mine(True).open(), IncrementalConservative)


def test_reservations_are_compressed_in_passes_where_nothing_fits() -> None:
    """A backfill that keeps reservations runs at every pass; others run only if something fits."""
    passes: list[int] = []

    class EveryPass(BackfillPolicy):
        every_cycle: ClassVar[bool] = True

        def select(self, cycle: SchedulingPass) -> list[Start]:
            passes.append(cycle.snapshot.now)
            return list(Conservative().select(cycle))

    class FittingPasses(EveryPass):
        every_cycle: ClassVar[bool] = False

    load = workload([(0, 4, 9, 9), (2, 1, 3, 3), (4, 1, 3, 3)])
    simulate(load, Machine.flat(4), ListScheduler(FCFS(), EveryPass()))
    assert [now // SECOND for now in passes] == [0, 2, 4, 9]
    passes.clear()
    simulate(load, Machine.flat(4), ListScheduler(FCFS(), FittingPasses()))
    assert [now // SECOND for now in passes] == [0, 9]


@pytest.mark.long
def test_policy_passes_the_conformance_checks_except_for_its_memory() -> None:
    assert [check.name for check in check_backfill(KEPT) if not check.ok] in ([], [WARM])


def test_reservation_holds_while_other_owners_are_overcommitted() -> None:
    machine, table = Machine.of_racks(2, 2), Workload.of(np.zeros(1), np.ones(1), requests={"nodes": np.ones(1)}).table
    free = machine.capacity.copy()
    free[1, 0] = -1  # a node was drained below a run
    state = Snapshot(0, machine, table, machine.capacity, free, RunTable(machine.capacity.size), Ideal())
    profile = AvailabilityProfile(state)
    assert profile.holds(Reservation(0, Placement.of([(0, 0, 0, 2)]), SECOND))
    assert not profile.holds(Reservation(0, Placement.of([(0, 1, 0, 1)]), SECOND))
