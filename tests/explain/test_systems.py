"""Waits under flow, greedy, batch and dispatch scheduling: each pass that leaves a job waiting has a true reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.explain import Reason, WaitCause, explain_wait
from poolwise.interfaces import Dispatcher, PerformanceModel, Scheduler
from poolwise.loop import run_loop
from poolwise.metrics import Outcomes
from poolwise.model import Changes, Decisions, Kind, Machine, Queue, Reject, Snapshot, Start, Workload
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.device_network import DeviceNetwork
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.quantities import SECOND
from poolwise.schedulers.batch import BatchScheduler
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.flow import Firmament, FlowScheduler
from poolwise.schedulers.greedy import LeastAllocated, LocalFirstRandom
from poolwise.schedulers.list import ListScheduler
from poolwise.schedulers.list_flow import ListFlow
from poolwise.schedulers.warm_up import WarmUp
from tests.helpers.gpu_nodes import gpu_nodes
from tests.helpers.random_dispatch import POLICIES, policy_of, study
from tests.helpers.shared_nodes import shared_nodes

pytestmark = pytest.mark.long

FLOWS = (
    FlowScheduler(),
    FlowScheduler(settings={"network_aware": True}, every_s=7.0),
    FlowScheduler(admission="filter", patience_s=20.0),
    FlowScheduler(costs="quincy", patience_s=0.0, admission="filter"),
    Firmament(),
    LeastAllocated(),
    LocalFirstRandom(),
)


@dataclass(frozen=True)
class Pass:
    """Input and decisions of a pass."""

    queue: Queue
    snapshot: Snapshot
    decisions: Decisions


@dataclass
class Asked(Scheduler, Dispatcher):
    """Decides like a scheduler, and requests a reason for every job that a pass leaves waiting."""

    scheduler: Scheduler
    look_at: Callable[[Pass, int, Reason], None]  # checked at once, because a snapshot shows the current state
    said: dict[int, list[tuple[int, Reason]]] = field(default_factory=dict)
    inner: Dispatcher | None = None

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        self.inner = self.scheduler.open(machine, seed)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        decisions = self.inner.schedule(queue, snapshot, replace(changes, explain=frozenset(queue.jobs.tolist())))
        begun = Counter(d.job for d in decisions if isinstance(d, Start) for _ in d.tasks)
        over = {d.job for d in decisions if isinstance(d, Reject)}
        only_rejects = bool(over) and all(isinstance(d, Reject) for d in decisions)
        for job in queue.jobs.tolist():
            if job not in over and begun[job] < len(queue.tasks(job)):
                if only_rejects:
                    continue  # a pass with only rejections is followed by another pass
                what = Pass(queue, snapshot, decisions)
                why = decisions.reason(job, self.inner)
                self.said.setdefault(job, []).append((snapshot.now, why))
                self.look(what, job, why)
        return decisions

    def look(self, what: Pass, job: int, why: Reason) -> None:
        """Check what holds under every scheduler, then the condition of the test."""
        assert why.cause is not WaitCause.UNREPORTED and why.text
        if why.resource:
            assert why.needed > why.free >= 0
        if why.blocker is not None:
            jobs = what.queue.jobs.tolist()
            assert jobs.index(why.blocker) < jobs.index(job)
            assert why.blocker not in {start.job for start in what.decisions.starts} and why.ahead >= 1
        self.look_at(what, job, why)

    @property
    def met(self) -> set[tuple[WaitCause, str]]:
        """Return the reported rules and the resources that were short."""
        return {(why.cause, why.resource) for passes in self.said.values() for _, why in passes}


def asked(
    workload: Workload,
    machine: Machine,
    scheduler: Scheduler,
    model: PerformanceModel,
    check: Callable[[Pass, int, Reason], None] = lambda what, job, why: None,
    estimate: PerformanceModel | None = None,
) -> Asked:
    """Run a workload; explain one of the waits separately, and compare both explanations."""
    simulation = Simulation(workload, machine, model, estimate)
    witness = Asked(scheduler, check)
    schedule = simulation.recorder.schedule(workload, machine, run_loop(simulation, witness, 1))
    if witness.said:
        row = max(witness.said, key=lambda job: len(witness.said[job]))
        job, done = int(workload.id[row]), Outcomes.of(schedule)
        explanation = explain_wait(workload, machine, scheduler, job, model=model, estimate=estimate, seed=1, outcomes=done)
        assert list(explanation.passes) == witness.said[row]
        assert sum(explanation.totals().values()) == explanation.wait and explanation.status != "waiting"
    return witness


@st.composite
def machines(draw) -> Machine:
    gpus = draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    return gpu_nodes(gpus, cores=draw(st.integers(2, 8)), rack_gpus=draw(st.integers(0 if sum(gpus) else 1, 2)))


@st.composite
def gangs(draw, most: int = 3) -> Workload:
    n = draw(st.integers(2, 10))

    def column(low: int, high: int) -> np.ndarray:
        return np.array(draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))

    return Workload.of(
        column(0, 20) * SECOND,
        column(1, 30) * SECOND,
        tasks=column(1, most),
        requests={"cores": column(1, 4), "memory": column(0, 20), "gpu": column(0, 3), "bandwidth": column(0, 900)},
        attributes={"kind": np.array([("nw", "hotspot", "unknown")[k] for k in column(0, 2).tolist()])},
    )


def fits(job: int, state: Snapshot, pooled: bool) -> bool:
    """Return whether all tasks of a job fit into the free amounts, each on the first node with room."""
    machine, workload, free = state.machine, state.table, state.free.copy()
    cores, memory, gpu = (int(workload.request(name)[job]) for name in ("cores", "memory", "gpu"))
    devices = [d for d in machine.of_kind(Kind.DEVICE).tolist() if free[d, 2]]
    if pooled and len(devices) < gpu * int(workload.tasks[job]):
        return False
    for _ in range(int(workload.tasks[job])):
        for node in machine.of_kind(Kind.NODE).tolist():
            here = [d for d in devices if machine.home[d] == node]
            if free[node, 0] >= cores and free[node, 1] >= memory and (pooled or len(here) >= gpu):
                free[node, 0] -= cores
                free[node, 1] -= memory
                devices = devices if pooled else [d for d in devices if d not in here[:gpu]]
                break
        else:
            return False
    return True


@pytest.mark.parametrize("scheduler", FLOWS, ids=str)
@given(machine=machines(), workload=gangs())
@settings(max_examples=10, deadline=None, derandomize=True)
def test_waits_of_gangs_on_shared_nodes_have_true_reasons(scheduler: Scheduler, machine: Machine, workload: Workload) -> None:
    pooled = getattr(scheduler, "pooled", isinstance(scheduler, LocalFirstRandom))

    def check(what: Pass, job: int, why: Reason) -> None:
        after = what.snapshot.with_starts(what.decisions.starts)
        if why.cause is WaitCause.POSTPONED:
            assert fits(job, after, pooled)
        elif why.cause is WaitCause.SHORT and "admitted" not in why.text:
            assert not fits(job, after, pooled)
        elif why.cause is WaitCause.ROUND:
            assert not what.decisions.entries and what.decisions.next_wakeup is not None

    asked(workload, machine, scheduler, DeviceNetwork(), check)


def test_every_rule_of_flow_scheduling_occurs() -> None:
    causes: set[tuple[WaitCause, str]] = set()
    n = 24
    g = np.random.default_rng(5)
    workload = Workload.of(
        np.sort(g.integers(0, 30, n)) * SECOND,
        g.integers(5, 40, n) * SECOND,
        tasks=g.integers(1, 3, n),
        requests={name: g.integers(low, high, n) for name, low, high in (("cores", 1, 5), ("memory", 1, 30), ("gpu", 0, 3))},
        attributes={"kind": np.array(["hotspot", "nw"])[g.integers(0, 2, n)]},
    )
    for scheduler in FLOWS[:4]:
        causes |= asked(workload, gpu_nodes((2, 2, 1)), scheduler, DeviceNetwork()).met
    causes |= asked(workload, gpu_nodes((2, 2, 1)), WarmUp(FlowScheduler(), 6, FlowScheduler()), DeviceNetwork()).met
    assert {rule for rule, _ in causes} >= {WaitCause.SHORT, WaitCause.ORDER, WaitCause.ROUND, WaitCause.WARM_UP}
    assert {name for rule, name in causes if rule is WaitCause.SHORT} >= {"cores", "gpu"}


@given(machine=machines(), workload=gangs(most=1))
@settings(max_examples=15, deadline=None, derandomize=True)
def test_waits_under_list_flow_have_true_reasons(machine: Machine, workload: Workload) -> None:
    how = ListFlow()
    listed = ListScheduler(how.order, how.backfill, how.placement)

    def check(what: Pass, job: int, why: Reason) -> None:
        """The reason is that of the list before the flow moves its starts."""
        alone = listed.open(machine, 1)
        assert why == alone.schedule(what.queue, what.snapshot, Changes(explain=frozenset({job}))).reason(job, alone)

    met = asked(workload, machine, how, Ideal(), check).met
    assert {rule for rule, _ in met} <= {WaitCause.SHORT, WaitCause.RESERVATION}


def test_moved_starts_do_not_affect_reasons() -> None:
    """With the moved starts some of these jobs would fit: they waited because of the list's placements."""
    g, n = np.random.default_rng(3), 25
    workload = Workload.of(
        np.sort(g.integers(0, 60, n)) * SECOND,
        g.integers(5, 40, n) * SECOND,
        requests={name: g.integers(low, high, n) for name, low, high in (("cores", 1, 6), ("memory", 0, 40), ("gpu", 0, 3))},
    )
    met = asked(workload, gpu_nodes((2, 2, 1, 1)), ListFlow(costs="best_fit"), Ideal()).met
    assert {rule for rule, _ in met} <= {WaitCause.SHORT, WaitCause.RESERVATION}


def modules() -> Machine:
    numbers = {"frequency": np.array([2.0, 1.5, 1.0, np.nan]), "static": np.array([1.6, 1.2, 0.7, np.nan])}
    return Machine(
        "modules", tuple(f"o{k}" for k in range(4)), np.array([Kind.NODE] * 3 + [Kind.POOL]), ("node",) * 3 + ("pool",),
        np.zeros(4, dtype=np.int64), np.zeros((4, 2), dtype=np.int64), np.full(4, -1), ("cores", "memory"),
        np.array([[16, 1000]] * 3 + [[0, 2000]]), {}, numbers,
    )  # fmt: skip


@pytest.mark.parametrize("every_s", [0.0, 7.0])
def test_batch_reasons_name_cores_memory_and_rounds(every_s: float) -> None:
    causes: set[tuple[WaitCause, str]] = set()
    for seed in range(6):
        g, n = np.random.default_rng(seed), 10
        workload = Workload.of(
            np.sort(g.integers(0, 40, n)) * SECOND,
            g.integers(5, 30, n) * SECOND,
            requests={"cores": g.integers(1, 17, n), "memory": g.integers(1, 1800, n)},
            attributes={"frequency": g.integers(10, 20, n) / 10, "tolerance": g.integers(0, 30, n) / 20},
        )
        scheduler = BatchScheduler("first-fit", every_s=every_s)

        def check(what: Pass, job: int, why: Reason, requests: Mapping[str, np.ndarray] = workload.requests) -> None:
            after = what.snapshot.with_starts(what.decisions.starts)
            if why.resource == "cores":
                assert why.needed == requests["cores"][job] and why.free <= after.free[:3, 0].max()
            elif why.resource == "memory":
                assert why.free <= after.free[:3, 1].max() + after.free[3, 1]

        causes |= asked(workload, modules(), scheduler, CpuFrequency(), check).met
    assert (WaitCause.SHORT, "cores") in causes and (WaitCause.SHORT, "memory") in causes
    assert ((WaitCause.ROUND, "") in causes) is (every_s > 0)


@pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])
@pytest.mark.parametrize("contended", [False, True])
def test_waits_for_units_have_true_reasons(entry: tuple[str, dict[str, object]], contended: bool) -> None:
    met: set[tuple[WaitCause, str]] = set()

    def check(what: Pass, job: int, why: Reason) -> None:
        after = what.snapshot.with_starts(what.decisions.starts)
        idle = int((after.free[:, after.machine.resource("slots")] > 0).sum())
        if why.cause is WaitCause.SHORT:
            begun = sum(start.job == job for start in what.decisions.starts)
            assert why.needed == len(what.queue.tasks(job)) - begun and why.free == 0
        else:
            assert why.cause is WaitCause.POSTPONED and idle and entry[0] in ("earliest_finish", "delay")

    for seed in range(3):
        case = study(seed, 40).case(contended=contended)
        met |= asked(case.workload, case.machine, Dispatch(policy_of(entry)), case.model, check, case.estimate).met
    assert (WaitCause.SHORT, "slots") in met


def test_shortage_of_units_equals_the_waiting_tasks() -> None:
    zeros, durations = np.zeros(2, dtype=np.int64), np.full(2, SECOND)
    workload = Workload.of(zeros, durations, tasks=np.array([5, 1]))
    simulation, dispatcher = Simulation(workload, shared_nodes(slots=1), Ideal()), Dispatch().open(shared_nodes(slots=1), 0)
    simulation.table.show(2)
    queue, snapshot = Queue(simulation.table), simulation.snapshot()
    for job in (0, 1):
        queue.add(job)
    decisions = dispatcher.schedule(queue, snapshot, Changes(explain=frozenset({0, 1})))
    assert [start.tasks for start in decisions.starts] == [(0,), (1,)]
    first, second = (decisions.reason(job, dispatcher) for job in (0, 1))
    assert (first.resource, first.needed, first.free, first.ahead) == ("slots", 3, 0, 0)
    assert (second.resource, second.needed, second.free, second.ahead) == ("slots", 1, 0, 1)
