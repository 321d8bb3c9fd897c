"""Guarantees of the backfill policies within one pass from one state."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.errors import PolicyError
from poolwise.interfaces import BackfillPolicy, PlacementPolicy, QueuePolicy, SchedulingPass
from poolwise.model import Job, Machine, MachineBuilder, Placement, Queue, Refusal, Run, Snapshot, Start, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.policies.backfill import easy
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy, EasyNoExtra, reservation
from poolwise.policies.backfill.none import NoBackfill, start_in_order
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import SJF
from poolwise.policies.placement.memory.racks import RackPlacement
from poolwise.policies.placement.nodes.placement import FirstNodes
from poolwise.quantities import SECOND
from poolwise.schedulers.list import ListScheduler

NOW = 100 * SECOND


@st.composite
def states(draw: st.DrawFn) -> tuple[Snapshot, np.ndarray, np.ndarray, RackPlacement]:
    """A machine with runs, waiting jobs (each fits the empty machine), their priorities (ties included) and a placement."""
    machine = Machine.of_racks(draw(st.integers(1, 3)), draw(st.integers(1, 6)), local=64, pool=draw(st.integers(0, 500)))
    placement = RackPlacement(draw(st.sampled_from(("rack", "system"))))
    jobs = draw(
        st.lists(
            st.tuples(st.integers(1, 9), st.sampled_from((0, 64, 80, 164, 300)), st.integers(1, 30), st.floats(0, 0.999)),
            min_size=2,
            max_size=20,
        )
    )
    nodes, memory, length, u = (np.array(column) for column in zip(*jobs, strict=True))
    workload = Workload.of(
        np.arange(len(jobs)),
        length * SECOND,
        requests={"nodes": nodes, "memory": memory},
        attributes={"u": u},
    )
    table, free = RunTable(machine.capacity.size), machine.capacity.copy()
    model = RemoteMemory()
    empty = Snapshot(NOW, machine, workload.table, machine.capacity, machine.capacity, RunTable(machine.capacity.size), model)
    waiting = []
    running = draw(st.integers(0, len(jobs) - 1))
    for row in range(len(jobs)):
        view = Snapshot(NOW, machine, workload.table, machine.capacity, free, table, model)
        placed = placement.place(workload.job(row), view)
        if row < running and not isinstance(placed, Refusal):
            end = draw(st.integers(90, 130)) * SECOND  # some are overdue
            table.add(Run(row, row, (0,), placed, 0, end), placed.owner * 2 + placed.resource, ())
            np.subtract.at(free, (placed.owner, placed.resource), placed.amount)
        elif not isinstance(placement.place(workload.job(row), empty), Refusal):
            waiting.append(row)
    assume(len(waiting) >= 2)
    priority = np.array([float(draw(st.integers(0, 4))) for _ in waiting])
    return Snapshot(NOW, machine, workload.table, machine.capacity, free, table, model), np.array(waiting), priority, placement


def after(snapshot: Snapshot, starts: list[Start]) -> Snapshot:
    for start in starts:
        snapshot = snapshot.with_started(start.job, start.placement)
    return snapshot


State = tuple[Snapshot, np.ndarray, np.ndarray, RackPlacement]


@settings(max_examples=150, deadline=None)
@given(states(), st.sampled_from((Easy(), EasyNoExtra())))
def test_easy_does_not_delay_the_reservation_of_the_head(state: State, chosen: Easy) -> None:
    snapshot, jobs, priority, placement = state
    this_pass = SchedulingPass(waiting(snapshot, jobs), priority, snapshot, placement)
    in_order, heads, begun = start_in_order(this_pass)
    starts = list(chosen.select(this_pass))
    assert starts[: len(in_order)] == in_order
    end = after(snapshot, starts)
    assert (end.free >= 0).all()
    for job in heads:
        assert job not in [start.job for start in starts]
        assert (
            reservation(snapshot.table.job(job), end, placement).now
            <= reservation(snapshot.table.job(job), begun, placement).now
        )
        assert not isinstance(
            placement.place(snapshot.table.job(job), reservation(snapshot.table.job(job), end, placement)), Refusal
        )


@settings(max_examples=100, deadline=None)
@given(states())
def test_easy_no_extra_starts_at_least_as_many_jobs_as_no_backfill(state: State) -> None:
    snapshot, jobs, priority, placement = state
    this_pass = SchedulingPass(waiting(snapshot, jobs), priority, snapshot, placement)
    count = [len(list(b.select(this_pass))) for b in (NoBackfill(), EasyNoExtra())]
    assert count[0] <= count[1]


@settings(max_examples=100, deadline=None)
@given(states(), st.sampled_from((NoBackfill(), Easy(), EasyNoExtra(), Conservative())))
def test_jobs_that_fit_in_order_start_under_every_backfill(state: State, backfill: BackfillPolicy) -> None:
    snapshot, jobs, priority, placement = state
    this_pass = SchedulingPass(waiting(snapshot, jobs), priority, snapshot, placement)
    in_order, _, _ = start_in_order(this_pass)
    starts = list(backfill.select(this_pass))
    assert [start.job for start in in_order] == [start.job for start in starts][: len(in_order)]
    assert (after(snapshot, starts).free >= 0).all()


class Picky(RackPlacement):
    """Places jobs at a single instant only, so it is not monotone."""

    def place(self, job: Job, snapshot: Snapshot) -> Placement | Refusal:
        idle = bool((snapshot.free == snapshot.capacity).all())
        return super().place(job, snapshot) if idle and snapshot.now == NOW else Refusal("not now")


def waiting(snapshot: Snapshot, jobs: np.ndarray) -> Queue:
    queue = Queue(snapshot.table)
    for job in jobs.tolist():
        queue.add(job)
    return queue


class Unscreened(PlacementPolicy):
    """Rack placement with the default `prefilter`."""

    def __init__(self, racks: RackPlacement) -> None:
        self.place = racks.place


@given(states(), st.sampled_from([NoBackfill(), Skip(), Easy(), EasyNoExtra(), Conservative()]))
def test_screening_does_not_change_decisions(state: State, backfill: BackfillPolicy) -> None:
    snapshot, jobs, priority, placement = state
    chosen = [
        list(backfill.open().select(SchedulingPass(waiting(snapshot, jobs), priority, snapshot, p)))
        for p in (placement, Unscreened(placement))
    ]
    decisions = [[(start.job, start.placement.rows()) for start in starts] for starts in chosen]
    assert decisions[0] == decisions[1]


@settings(max_examples=150, deadline=None)
@given(states(), st.booleans())
def test_reservation_is_the_same_by_bisection(state: State, screens: bool) -> None:
    snapshot, jobs, _, placement = state
    queue = waiting(snapshot, jobs)
    policy = placement if screens else Unscreened(placement)
    for job in jobs.tolist():
        reservations = []
        for wide in (1, 10**9):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(easy, "WIDE", wide)
                reservations.append(reservation(queue.job(job), snapshot, policy))
        assert reservations[0].now == reservations[1].now and np.array_equal(reservations[0].free, reservations[1].free)


def test_conservative_rejects_nonmonotone_placements_but_accepts_lost_capacity() -> None:
    machine = Machine.flat(4)
    workload = Workload.of(np.zeros(2, dtype=np.int64), np.array([5, 5]) * SECOND, requests={"nodes": np.array([3, 2])})
    table, held = RunTable(machine.capacity.size), Placement.of([(0, 0, 0, 2)])
    table.add(Run(0, 1, (0,), held, 0, 120 * SECOND), held.owner * 2 + held.resource, ())
    jobs, priority = np.array([0, 1]), np.array([1.0, 0.0])

    def state(capacity: int) -> Snapshot:
        have = np.array([[capacity, 0]])
        return Snapshot(NOW, machine, workload.table, have, have - np.array([[2, 0]]), table, RemoteMemory())

    with pytest.raises(PolicyError, match="not monotone"):
        list(Conservative().select(SchedulingPass(waiting(state(4), jobs), priority, state(4), Picky())))
    # Job 0 needs three nodes of which two are left; job 1 waits for the run that holds both, then for no other job.
    for free, started in ((2, []), (4, [1])):
        this_pass = SchedulingPass(waiting(state(4), jobs), priority, state(free), RackPlacement())
        assert [start.job for start in Conservative().select(this_pass)] == started


class ShortestFirst(Easy):
    """EASY that tries the shortest candidates first, by overriding `backfill_order`."""

    @property
    def backfill_order(self) -> QueuePolicy:
        return SJF()


@pytest.mark.parametrize("machine", [Machine.flat(4), "shared"])
def test_overridden_order_of_candidates_has_the_effect_of_a_given_one(machine: Machine | str) -> None:
    requests = {"nodes": [3, 4, 1, 1]}
    if not isinstance(machine, Machine):
        build, requests = MachineBuilder("shared", ("cores",)), {"cores": [3, 4, 1, 1]}
        build.node("n", cores=4)
        machine = Machine.of(build)
    load = Workload.of(["0 s", "1 s", "2 s", "2 s"], ["100 s", "100 s", "90 s", "50 s"], requests=requests)
    placement = RackPlacement() if "nodes" in machine.resources else FirstNodes()
    starts = {}
    for name, backfill in (("queue", Easy()), ("given", Easy(order=SJF())), ("overridden", ShortestFirst())):
        both_starts = [
            simulate(load, machine, ListScheduler(backfill=backfill, placement=placement), engine=engine).schedule.job_start
            for engine in ("auto", "reference")
        ]
        assert np.array_equal(*both_starts), name
        starts[name] = (both_starts[0] // SECOND).tolist()
    assert starts["queue"] == [0, 100, 2, 200] or starts["queue"][2] == 2
    assert starts["overridden"] == starts["given"] != starts["queue"] and starts["given"][3] == 2
