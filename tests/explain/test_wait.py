"""Explanations of random studies: one for each pass that leaves a job waiting, and every statement in it is true."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.engines import simulate
from poolwise.engines.list_scheduling import replay as compiled
from poolwise.errors import InputError, PolicyError
from poolwise.explain import Explanation, Reason, WaitCause, explain_wait
from poolwise.interfaces import Dispatcher, Scheduler, SchedulingPass
from poolwise.loop import run_loop
from poolwise.metrics import Outcomes
from poolwise.model import Changes, Decisions, Machine, Queue, Refusal, Reject, Snapshot, Start, Workload
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.conservative import Conservative
from poolwise.policies.backfill.easy import Easy, EasyNodesOnly, reservation
from poolwise.policies.backfill.none import NoBackfill, start_in_order
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import SJF
from poolwise.quantities import SECOND
from poolwise.schedulers.flow import FlowScheduler
from poolwise.schedulers.greedy import LeastAllocated
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers import random_studies
from tests.helpers.gpu_nodes import gpu_nodes
from tests.helpers.turns import turns

BACKFILLS = ("none", "easy", "easy_no_extra", "easy_nodes_only", "conservative", "skip")

pytestmark = [pytest.mark.filterwarnings("ignore:remote latency"), pytest.mark.long]


@dataclass
class Checker(Scheduler, Dispatcher):
    """Decides like the scheduler, requests a reason for each job that a pass leaves waiting, and checks it."""

    scheduler: Scheduler
    reasons: dict[int, list[tuple[int, Reason]]] = field(default_factory=dict)
    rejected: dict[int, int] = field(default_factory=dict)
    checked: dict[WaitCause, int] = field(default_factory=dict)
    inner: Dispatcher | None = None

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        self.inner = self.scheduler.open(machine, seed)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        decisions = self.inner.schedule(queue, snapshot, replace(changes, explain=frozenset(queue.jobs.tolist())))
        settled = {d.job for d in decisions if isinstance(d, Start | Reject)}
        self.rejected |= {d.job: snapshot.now for d in decisions if isinstance(d, Reject)}
        for job in sorted(set(queue.jobs.tolist()) - settled):
            turned_away = bool(decisions.entries) and all(isinstance(d, Reject) for d in decisions)
            if not turned_away:
                why = decisions.reason(job, self.inner)
                self.reasons.setdefault(job, []).append((snapshot.now, why))
                self.checked[why.cause] = self.checked.get(why.cause, 0) + 1
                self.inspect(job, why, queue, snapshot, decisions)
        return decisions

    def inspect(self, job: int, why: Reason, queue: Queue, snapshot: Snapshot, decisions: Decisions) -> None:
        settled = {d.job for d in decisions if isinstance(d, Start | Reject)}
        starts = [d for d in decisions if isinstance(d, Start)]
        if why.resource:
            assert why.needed > why.free >= 0
        if isinstance(self.scheduler, WarmUp):
            left = [k for k in queue.jobs.tolist() if k < self.scheduler.jobs and k not in settled]
            assert (why.cause is WaitCause.WARM_UP) == (job >= self.scheduler.jobs and bool(left))
            assert why.cause is not WaitCause.WARM_UP or why.ahead == len(left)
            if why.cause is WaitCause.SHORT:
                self.check_short(job, why, snapshot, starts)
            return
        assert isinstance(self.scheduler, ListScheduler)
        queue = queue.only(np.setdiff1d(queue.jobs, [d.job for d in decisions if isinstance(d, Reject)]))
        ranked = queue.jobs[np.argsort(-self.scheduler.order.priority(queue, snapshot), kind="stable")].tolist()
        rank = {row: k for k, row in enumerate(ranked)}
        assert why.ahead == len([k for k in ranked[: rank[job]] if k not in settled])
        turn = {row: k for k, row in enumerate(turns(self.scheduler, queue, snapshot, settled))}
        before = [start for start in starts if turn[start.job] < turn[job]]
        if why.cause is WaitCause.SHORT:
            self.check_short(job, why, snapshot, before)
            remote = max(0, int(snapshot.table.memory[job]) - snapshot.machine.local_memory)
            assert why.free == measured(begun(snapshot, before), why, remote)
            assert isinstance(self.scheduler.placement.place(snapshot.table.job(job), begun(snapshot, before)), Refusal)
        else:
            self.check_held(job, why, queue, snapshot, before)

    def check_short(self, job: int, why: Reason, snapshot: Snapshot, starts: list[Start]) -> None:
        workload = snapshot.table
        nodes, remote = int(workload.nodes[job]), max(0, int(workload.memory[job]) - snapshot.machine.local_memory)
        assert why.needed == (nodes if why.resource == "nodes" else nodes * remote)
        assert why.blocker is None and why.reserved is None
        assert measured(begun(snapshot, starts), why, remote) <= why.free <= measured(snapshot, why, remote)

    def check_held(self, job: int, why: Reason, queue: Queue, snapshot: Snapshot, before: list[Start]) -> None:
        order, backfill, placement = self.scheduler.order, self.scheduler.backfill, self.scheduler.placement
        jobs, priority = queue.jobs, order.priority(queue, snapshot)
        ranked = jobs[np.argsort(-priority, kind="stable")].tolist()
        rank = {row: k for k, row in enumerate(ranked)}
        assert rank[why.blocker] < rank[job]
        if isinstance(backfill, Conservative):
            for end, starts_now in ((rank[why.blocker], True), (rank[why.blocker] + 1, False)):
                some = np.array(sorted([*ranked[:end], job]))
                chosen = backfill.select(SchedulingPass(queue.only(some), priority[np.isin(jobs, some)], snapshot, placement))
                assert (job in [start.job for start in chosen]) is starts_now
            return
        _, heads, state = start_in_order(SchedulingPass(queue, priority, snapshot, placement))
        assert [why.blocker] == heads
        if isinstance(backfill, NoBackfill):
            assert why.cause is WaitCause.ORDER and isinstance(placement.place(snapshot.table.job(why.blocker), state), Refusal)
            return
        assert why.cause is WaitCause.RESERVATION and isinstance(backfill, Easy)
        assert why.reserved == reservation(state.table.job(why.blocker), backfill.reservation_state(state), placement).now
        state = begun(state, [start for start in before if rank[start.job] > rank[why.blocker]])
        placed = placement.place(snapshot.table.job(job), state)
        assert not isinstance(placed, Refusal) and state.expected_end(job, placed) > why.reserved
        if backfill.extra and type(backfill) is Easy:  # started now, it would have delayed the head
            later = reservation(state.table.job(why.blocker), state.with_started(job, placed), placement)
            assert later.now > why.reserved


def begun(snapshot: Snapshot, starts: list[Start]) -> Snapshot:
    for start in starts:
        snapshot = snapshot.with_started(start.job, start.placement)
    return snapshot


def measured(snapshot: Snapshot, why: Reason, remote: int) -> int:
    """Return the free amount of the resource that was short, as the reason counts it."""
    layout = snapshot.machine.racks
    nodes = snapshot.free[layout.nodes, layout.node_column]
    if why.resource == "nodes":
        return int(nodes.sum())
    pool = np.where(layout.pools >= 0, snapshot.free[layout.pools, layout.memory_column], 0)
    in_reach = "in reach of the free nodes" in why.text
    return int((np.minimum(nodes, pool // remote) * remote).sum()) if in_reach else int(pool.sum())


def explained(seed: int, backfills: tuple[str, ...] = BACKFILLS, most: int = 60) -> dict[WaitCause, int]:
    """Explain some jobs of a random study, check all explanations, and count the rules."""
    g = np.random.default_rng(seed)
    jobs = int(g.integers(2, most))
    on = random_studies.machine(g)
    load, how, model = (
        random_studies.workload(g, on, jobs),
        random_studies.scheduler(g, jobs, backfills),
        random_studies.model(g),
    )
    estimate = None if g.random() < 0.5 else random_studies.model(g)
    simulation, checker = Simulation(load, on, model, estimate), Checker(how)
    schedule = simulation.recorder.schedule(load, on, run_loop(simulation, checker))
    wait = np.where(schedule.job_start >= 0, schedule.job_start - load.submit, 0)
    for row in {int(np.argmax(wait)), int(g.integers(jobs)), *list(schedule.rejected)[-1:]}:
        outcomes = Outcomes.of(schedule)
        explanation = explain_wait(load, on, how, int(load.id[row]), model=model, estimate=estimate, outcomes=outcomes)
        check_story(explanation, row, schedule.job_start[row], schedule.rejected.get(row, ""))
        assert list(explanation.passes) == checker.reasons.get(row, [])
        assert len(explanation.passes) == sum(episode.passes for episode in explanation.episodes)
        assert row not in checker.rejected or explanation.until == checker.rejected[row]
    return checker.checked


def check_story(found: Explanation, row: int, start: int, rejected: str) -> None:
    """Check that episodes are contiguous from the submission to the start."""
    assert found.rejected == rejected and (found.placement is None) == (start < 0)
    assert start < 0 or found.until == start
    assert bool(found.passes) or found.wait == 0
    times = [found.job.submit] if found.passes else []
    for episode in found.episodes:
        assert episode.start == times[-1] and episode.end >= episode.start and episode.passes >= 1
        times.append(episode.end)
    assert not times or times[-1] == found.until
    assert sum(found.totals().values()) == found.wait
    content = found.to_dict()
    assert content["job"] == found.job.id and len(content["episodes"]) == len(found.episodes)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_each_pass_that_leaves_a_job_waiting_has_one_true_explanation(seed: int) -> None:
    explained(seed)


def test_random_studies_reach_every_rule_of_list_scheduling() -> None:
    counted: dict[WaitCause, int] = {}
    for seed in (*range(12), 32):
        for rule, count in explained(seed).items():
            counted[rule] = counted.get(rule, 0) + count
    assert {WaitCause.SHORT, WaitCause.ORDER, WaitCause.RESERVATION, WaitCause.WARM_UP} <= counted.keys()


@pytest.mark.parametrize("backfill", ["easy", "conservative", "kept"])
def test_replay_and_repeated_decisions_give_the_same_explanation(backfill: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(50, 56):
        g = np.random.default_rng(seed)
        on = random_studies.machine(g)
        load = random_studies.workload(g, on, 40)
        how = random_studies.scheduler(g, 40, (backfill.replace("kept", "conservative"),))
        if backfill == "kept":
            listed = replace(getattr(how, "then", how), backfill=Conservative(keep_reservations=True))
            how = replace(how, then=listed) if isinstance(how, WarmUp) else listed
        model = random_studies.model(g)
        for job in load.id[:: len(load) // 5].tolist():
            fast = explain_wait(load, on, how, job, model=model).to_dict()
            with monkeypatch.context() as patch:
                patch.setattr(compiled, "unsupported", lambda *_, **__: "not this time")
                assert explain_wait(load, on, how, job, model=model).to_dict() == fast


def flat(nodes: list[int], length: list[int], submit: list[int] | None = None) -> Workload:
    times = np.zeros(len(nodes), dtype=np.int64) if submit is None else np.array(submit) * SECOND
    return Workload.of(times, np.array(length) * SECOND, requests={"nodes": np.array(nodes)})


def test_easy_names_the_head_its_reservation_and_its_shortage() -> None:
    # Job 1 holds 3 of 4 nodes for 10 s; job 2 needs 4, so its reservation is at 10 s; job 3 would run until 20 s.
    load, machine = flat([3, 4, 1], [10, 5, 20]), Machine.flat(4)
    explanation = explain_wait(load, machine, ListScheduler(), 3)
    (first, second) = explanation.episodes
    assert (first.reason.cause, first.reason.resource, first.reason.needed, first.free) == (
        WaitCause.RESERVATION,
        "nodes",
        4,
        (3, 3),
    )
    assert (first.reason.blocker, first.reserved, first.passes) == (1, (10 * SECOND, 10 * SECOND), 1)
    assert (second.reason.cause, second.reason.needed, second.free) == (WaitCause.SHORT, 1, (0, 0))
    assert (explanation.status, explanation.until) == ("started", 15 * SECOND)
    assert explanation.totals() == {(WaitCause.RESERVATION, "nodes"): 10 * SECOND, (WaitCause.SHORT, "nodes"): 5 * SECOND}


def test_reservation_is_that_of_the_easy_variant() -> None:
    # Job 3 needs 3 of 5 nodes (free from 5 s) and 99 of 100 MiB (free from 20 s); job 4 would run until 10 s.
    nodes, memory, length = np.array([2, 2, 3, 1]), np.array([40, 0, 33, 0]), np.array([20, 5, 5, 10]) * SECOND
    load = Workload.of(np.zeros(4, dtype=np.int64), length, requests={"nodes": nodes, "memory": memory})
    machine = Machine.of_racks(1, 5, local=0, pool=100)
    explanation = explain_wait(load, machine, ListScheduler(backfill=EasyNodesOnly()), 4)
    first = explanation.episodes[0]
    assert (first.reason.blocker, first.reserved) == (2, (5 * SECOND, 5 * SECOND))
    assert (first.reason.resource, first.reason.needed, first.reason.free) == ("nodes", 3, 2)
    assert explain_wait(load, machine, ListScheduler(), 4).wait == 0


def test_without_backfilling_the_head_and_its_need_are_named() -> None:
    (first, *_) = explain_wait(flat([3, 4, 1], [10, 5, 20]), Machine.flat(4), ListScheduler(backfill=NoBackfill()), 3).episodes
    assert (first.reason.cause, first.reason.blocker, first.reason.needed, first.reason.free) == (WaitCause.ORDER, 1, 4, 1)
    assert first.reason.ahead == 1


def test_jobs_after_the_warm_up_wait_for_its_last_start() -> None:
    load = flat([4, 4, 1], [10, 10, 1], [0, 1, 2])
    explanation = explain_wait(load, Machine.flat(9), WarmUp.before(ListScheduler(), 2), 3)
    assert explanation.wait == 0 and not explanation.episodes
    explanation = explain_wait(load, Machine.flat(5), WarmUp.before(ListScheduler(order=SJF()), 2), 3)
    assert [(e.reason.cause, e.ahead, e.start, e.end) for e in explanation.episodes] == [
        (WaitCause.WARM_UP, (1, 1), 2 * SECOND, 10 * SECOND)
    ]


def test_consecutive_passes_with_one_reason_form_one_episode() -> None:
    load = flat([4, 4, 1, 1], [10, 1, 1, 1], [0, 1, 2, 3])
    explanation = explain_wait(load, Machine.flat(4), ListScheduler(), 2)
    assert [(e.passes, e.start, e.end) for e in explanation.episodes] == [(3, 1 * SECOND, 10 * SECOND)]
    load = flat([2, 2, 4, 1], [10, 20, 1, 1], [0, 1, 2, 3])
    (episode,) = explain_wait(load, Machine.flat(4), ListScheduler(order=SJF()), 3).episodes
    assert (episode.passes, episode.free, episode.ahead, episode.end) == (4, (0, 2), (0, 0), 21 * SECOND)


def test_infeasible_job_is_rejected_with_the_reason() -> None:
    explanation = explain_wait(flat([9, 1], [5, 5]), Machine.flat(4), ListScheduler(), 1)
    assert (explanation.status, explanation.wait, explanation.passes) == (
        "rejected",
        0,
        (),
    ) and "not enough free nodes" in explanation.rejected


def test_unknown_id_error_lists_the_nearest() -> None:
    with pytest.raises(InputError, match="no job 40 among the 3") as caught:
        explain_wait(flat([1, 1, 1], [1, 1, 1]), Machine.flat(4), ListScheduler(), 40)
    assert caught.value.remedy == "nearest: 1, 2, 3"


def test_run_that_differs_from_the_record_is_an_error() -> None:
    load = flat([3, 4, 1], [10, 5, 5])
    recorded = Outcomes.of(simulate(load, Machine.flat(4), ListScheduler(backfill=NoBackfill())).schedule)
    for how in (ListScheduler(), ListScheduler(backfill=Skip())):  # replayed, then decided again
        with pytest.raises(InputError, match="differs from the recorded run"):
            explain_wait(load, Machine.flat(4), how, 3, outcomes=recorded)
    other = Outcomes.of(simulate(flat([1], [1]), Machine.flat(4), ListScheduler()).schedule)
    with pytest.raises(InputError, match="differs from the recorded run"):
        explain_wait(load, Machine.flat(4), ListScheduler(), 3, outcomes=other)


def test_decisions_that_differ_from_the_compiled_record_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    load, machine = flat([3, 4, 1], [10, 5, 20]), Machine.flat(4)
    monkeypatch.setattr(Easy, "select", Skip.select)
    with pytest.raises(PolicyError, match="starts jobs that differ from its compiled record"):
        explain_wait(load, machine, ListScheduler(), 2)


def test_requeued_warm_up_job_blocks_no_other() -> None:
    load, machine = flat([4, 4], [10, 5]), Machine.flat(4)
    simulation = Simulation(load, machine, Ideal())
    simulation.table.show(2)
    queue, snapshot = Queue(simulation.table), simulation.snapshot()
    for job in (0, 1):
        queue.add(job)
    dispatcher = WarmUp.before(ListScheduler(order=SJF()), 1).open(machine, 0)
    explained = Changes(explain=frozenset({0, 1}))
    decisions = dispatcher.schedule(queue, snapshot, explained)
    assert [start.job for start in decisions.starts] == [0]
    assert decisions.reason(1, dispatcher).cause is WaitCause.SHORT, "`then` takes over in this pass"
    taken = snapshot.imagined(5 * SECOND, np.zeros_like(snapshot.free))
    again = dispatcher.schedule(queue, taken, explained)
    assert again.entries == ()
    why = again.reason(0, dispatcher), again.reason(1, dispatcher)
    assert [(reason.cause, reason.ahead) for reason in why] == [(WaitCause.SHORT, 1), (WaitCause.SHORT, 0)]


@pytest.mark.parametrize(
    ("how", "machine", "requests", "short"),
    [
        (ListScheduler(), Machine.flat(4), {"nodes": [9, 1, 4]}, ("nodes", 9, 4)),
        (LeastAllocated(), gpu_nodes((2,)), {"cores": [1, 1, 8], "gpu": [3, 0, 0]}, ("gpu", 3, 2)),
        (FlowScheduler(), gpu_nodes((2,)), {"cores": [1, 1, 8], "gpu": [3, 0, 0]}, ("gpu", 3, 2)),
    ],
    ids=["list", "greedy", "flow"],
)
def test_infeasible_job_gets_its_refusal_and_counts_as_no_predecessor_while_the_machine_may_grow(
    how: Scheduler, machine: Machine, requests: dict[str, list[int]], short: tuple[str, int, int]
) -> None:
    load = Workload.of(np.zeros(3, dtype=np.int64), np.full(3, SECOND), requests={k: np.array(v) for k, v in requests.items()})
    simulation = Simulation(load, machine, Ideal())
    simulation.table.show(3)
    queue, snapshot = Queue(simulation.table), simulation.snapshot()
    for job in range(3):
        queue.add(job)
    snapshot.may_grow = True
    dispatcher = how.open(machine, 0)
    decisions = dispatcher.schedule(queue, snapshot, Changes(explain=frozenset({0, 2})))
    assert [start.job for start in decisions.starts] == [1]
    first, last = (decisions.reason(job, dispatcher) for job in (0, 2))
    assert (first.cause, first.resource, first.needed, first.free) == (WaitCause.SHORT, *short)
    assert (last.cause, last.ahead) == (WaitCause.SHORT, 0)
