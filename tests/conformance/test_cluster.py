"""Schedulers on the fake cluster: without faults as in the simulator, with faults consistent."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise import loop as loops
from poolwise import registry
from poolwise.conformance.cases import Case, devices, modules, racks, units
from poolwise.conformance.fake_cluster import FakeCluster, Fault, calm_starts, survive
from poolwise.engines import simulate
from poolwise.errors import InputError, PolicyError
from poolwise.loop import Loop
from poolwise.model import Continuation, EventBatch, Queue
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.backfill.none import NoBackfill
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import FCFS, FM, SJF
from poolwise.schedulers.list import ListScheduler

pytestmark = pytest.mark.long

CASES = {"racks": racks, "devices": devices, "modules": modules, "units": units}


def suited() -> list[tuple[str, str]]:
    """Return the registered schedulers with the cases on which they work."""
    cases = []
    for name in registry.names("schedulers"):
        for where, make in CASES.items():
            case, scheduler = make(), registry.make("schedulers", name)
            try:
                scheduler.check(case.machine, case.workload.table)
                simulate(case.workload, case.machine, scheduler, model=case.model, engine="reference")
            except InputError:
                continue
            cases.append((name, where))
    return cases


SUITED = suited()
TROUBLE = st.builds(
    Fault,
    late=st.sampled_from((0.0, 0.5, 1.0)),
    late_s=st.sampled_from((1.0, 120.0)),
    conflicts=st.sampled_from((0.0, 0.1, 0.5)),
    refused=st.sampled_from((0.0, 0.1, 0.5)),
    twice=st.sampled_from((0.0, 0.3)),
    withdrawn=st.sampled_from((0.0, 0.1)),
    unknown=st.sampled_from((0.0, 0.2, 1.0)),
    leaving=st.integers(0, 5),
    draining=st.integers(0, 5),
    recycled=st.integers(0, 5),
    shuffled=st.booleans(),
)


def test_every_scheduler_has_a_case() -> None:
    assert {name for name, _ in SUITED} == set(registry.names("schedulers"))


@pytest.mark.parametrize(("name", "where"), SUITED)
def test_cluster_without_faults_equals_the_simulator(name: str, where: str) -> None:
    case, scheduler = CASES[where](), registry.make("schedulers", name)
    schedule = simulate(case.workload, case.machine, scheduler, model=case.model, engine="reference").schedule
    owners, ids = case.machine.owners, case.workload.id
    expected = [
        (int(ids[job]), tasks, start, tuple(owners[owner] for owner, _, _ in schedule.placement_of(run)))
        for run, (job, tasks, start) in enumerate(
            zip(schedule.job.tolist(), schedule.tasks.tolist(), schedule.start.tolist(), strict=True)
        )
    ]
    got = calm_starts(scheduler, case)
    assert len(got) > 10
    assert [(job, len(tasks), start, places) for job, tasks, start, places in got] == expected


@settings(max_examples=130, deadline=None)
@given(st.sampled_from(SUITED), TROUBLE, st.integers(0, 10**6))
def test_no_double_allocation_and_no_lost_job_under_faults(which: tuple[str, str], faults: Fault, seed: int) -> None:
    """Each example has about eighty instants, all together more than ten thousand."""
    name, where = which
    steps, problems = survive(registry.make("schedulers", name), CASES[where](seed=seed % 7), faults, seed)
    assert steps > 0 and not problems


REUSING = [
    ListScheduler(order, backfill)
    for order in (FCFS(), FM(), SJF())
    for backfill in (NoBackfill(), Easy(), Conservative(), Skip())
]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([*REUSING, *SUITED]), TROUBLE, st.integers(0, 10**6))
def test_reused_rows_do_not_change_decisions(which: Any, faults: Fault, seed: int) -> None:
    """A table in which no row is given to a later job is the reference."""
    name, where = which if isinstance(which, tuple) else ("", "racks")
    scheduler = registry.make("schedulers", name) if name else which
    if scheduler.keeps_state:
        return  # a replaced table opens the dispatcher again
    plain, reusing = (FakeCluster(CASES[where](seed=seed % 7), replace(faults, recycled=k), seed) for k in (0, 6))
    for cluster in (plain, reusing):
        loop = Loop(cluster, scheduler, seed)
        for _, batch in zip(range(2000), cluster.events(), strict=False):  # some schedulers retry forever under some faults
            loop.step(batch)
    assert reusing.started_ids == plain.started_ids and reusing.done == plain.done and reusing.gone == plain.gone
    assert len(reusing.table) <= len(plain.table)


def test_of_all_kinds_sets_every_fault() -> None:
    full = Fault.of_all_kinds()
    for kind, value in vars(full).items():
        assert value, kind
    assert survive(ListScheduler(FM()), racks(), full, 3)[1] == []


def broken(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Break one method of the loop."""
    take, add = Queue.remove_tasks, Queue.add
    if what == "arrivals are counted twice":
        monkeypatch.setattr(loops.Loop, "_absorb", forgetful(loops.Loop._absorb))
    elif what == "starts stay in the queue":
        monkeypatch.setattr(Queue, "remove_tasks", lambda self, job, tasks=None: None if tasks else take(self, job, tasks))
    elif what == "refused tasks are not queued again":
        monkeypatch.setattr(
            Queue, "add", lambda self, job, tasks=None, passes=0: None if tasks else add(self, job, tasks, passes)
        )


def forgetful(absorb):
    def forget(self, batch):
        self._known.clear()
        return absorb(self, batch)

    return forget


@pytest.mark.parametrize(
    "what", ["arrivals are counted twice", "starts stay in the queue", "refused tasks are not queued again"]
)
def test_problems_reports_a_broken_loop(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    broken(monkeypatch, what)
    deviations = []
    for seed in range(4):
        try:
            deviations += survive(ListScheduler(), racks(), Fault.of_all_kinds(), seed)[1]
        except PolicyError as error:
            deviations.append(str(error))
    assert deviations


def test_schedulers_declare_what_they_remember() -> None:
    scheduler = ListScheduler(backfill=Conservative(keep_reservations=True))
    assert scheduler.keeps_state and not ListScheduler().keeps_state
    assert survive(scheduler, racks(), Fault.of_all_kinds(), 1)[1] == []


def test_no_job_is_rejected_while_the_machine_may_grow() -> None:
    case = racks()
    cluster = FakeCluster(case, Fault(leaving=2), 5)
    loop = Loop(cluster, ListScheduler())
    for batch in cluster.events():
        rejected = len(loop.result.rejected)
        may_grow = cluster.snapshot().may_grow
        loop.step(batch)
        assert not may_grow or len(loop.result.rejected) == rejected
    assert loop.result.rejected, "the two jobs that no machine holds are turned away in the end"
    assert loop.result.opened > 4, "each time that an owner left or joined"


def test_loop_raises_on_an_unknown_event() -> None:
    class Sunset:
        """An event of an unknown type."""

    loop = Loop(FakeCluster(racks()), ListScheduler())
    with pytest.raises(PolicyError, match="does not support the event"):
        loop.step(EventBatch(0, (Sunset(),)))


class TestContinuation:
    """Saved state of a run."""

    def test_round_trip_through_json(self) -> None:
        queue = Queue(racks().workload.table)
        queue.add(3)
        queue.count_pass()
        queue.add(5)
        continuation = Continuation.of(queue, 7)
        assert Continuation.from_json(continuation.to_json()) == continuation
        assert (continuation.seed, continuation.passes, continuation.next_draw) == (7, {"4": 1, "6": 0}, len(queue.table))
        assert continuation.draw("4") == 3 and continuation.draw("x") is None

    def test_invalid_text_is_refused(self) -> None:
        for text in ("", "[]", "{}", '{"version": 99}', '{"version": 1, "surprise": 2}'):
            with pytest.raises(InputError):
                Continuation.from_json(text)

    def test_passes_continue_in_another_loop(self) -> None:
        case = replace(racks(), workload=racks().workload)
        cluster = FakeCluster(case)
        loop = Loop(cluster, ListScheduler())
        for k, batch in enumerate(cluster.events()):
            loop.step(batch)
            if k == 12:
                break
        before = dict(zip(loop.queue.jobs.tolist(), loop.queue.passes().tolist(), strict=True))
        assert max(before.values()) > 1
        cluster.take_over()
        other = Loop(cluster, ListScheduler(), continued=Continuation.of(loop.queue, 0))
        other.step(next(cluster.events()))
        after = dict(zip(other.queue.jobs.tolist(), other.queue.passes().tolist(), strict=True))
        assert after == {job: before[job] + 1 for job in after if job in before}


def test_checks_accept_a_case() -> None:
    case = Case(racks(12).workload, racks().machine)
    assert np.all([start[2] >= 0 for start in calm_starts(ListScheduler(), case)])
