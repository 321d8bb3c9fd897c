"""The shortage in a reason is exact: adding it to the machine starts the job, both in the pass that left it waiting and alone.

The functions that add define "added", one for each kind of machine. A machine that is built with room to grow has owners
without capacity: units and devices to be added later.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolwise.arrays import IntArray
from poolwise.interfaces import Dispatcher, PerformanceModel, Scheduler
from poolwise.loop import run_loop
from poolwise.model import (
    Changes,
    Decisions,
    Kind,
    Machine,
    MachineBuilder,
    Queue,
    Reason,
    Reject,
    Snapshot,
    WaitCause,
    Workload,
)
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.policies.backfill.skip import Skip
from poolwise.policies.order.priorities import EDF
from poolwise.policies.placement.memory.racks import PoolScope, RackPlacement
from poolwise.policies.placement.nvme.composition import Composer
from poolwise.policies.placement.nvme.policies import (
    NvmeDisaggregationAware,
    NvmeFirstFit,
    NvmeMaximizeComposition,
    NvmeMinimizeFragmentation,
)
from poolwise.policies.placement.units.policy import UnitPolicy
from poolwise.policies.placement.units.view import Units
from poolwise.quantities import SECOND
from poolwise.schedulers.batch import BatchScheduler
from poolwise.schedulers.composition import CompositionScheduler
from poolwise.schedulers.dispatch import Dispatch
from poolwise.schedulers.flow import Firmament, FlowScheduler
from poolwise.schedulers.flow.scheduler import FlowDispatcher
from poolwise.schedulers.greedy import Greedy, LeastAllocated, LocalFirstRandom
from poolwise.schedulers.list import ListScheduler
from tests.helpers import random_studies
from tests.helpers.gpu_nodes import gpu_nodes
from tests.helpers.nvme_examples import RESOURCES, SHARING, workload
from tests.helpers.random_dispatch import POLICIES, policy_of, study
from tests.helpers.turns import turns

pytestmark = [pytest.mark.filterwarnings("ignore:remote latency"), pytest.mark.long]

Add = Callable[[Snapshot, int, Reason], IntArray]
"""(n_owner, n_resource) what a machine gets of what a reason names, given the state after the pass, and the job."""


def enlarged(snapshot: Snapshot, extra: IntArray) -> Snapshot:
    """Return the same instant on a larger machine, whose additions are all free."""
    other = copy.copy(snapshot)
    other.machine = snapshot.machine.with_capacity(snapshot.machine.capacity + extra)
    other.capacity, other.free = snapshot.capacity + extra, snapshot.free + extra
    return other


@dataclass
class Adding(Scheduler, Dispatcher):
    """Decides like a scheduler, and adds to the machine what waiting jobs are short of."""

    scheduler: Scheduler
    add: Add
    most: int  # additions for a job that is alone
    postpones: bool = False  # True if a job may be left waiting although there is room
    met: set[str] = field(default_factory=set)
    inner: Dispatcher | None = None

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        self.inner = self.scheduler.open(machine, seed)
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        decisions = self.inner.schedule(queue, snapshot, replace(changes, explain=frozenset(queue.jobs.tolist())))
        if not any(isinstance(d, Reject) for d in decisions):
            for job in [job for job in queue.jobs.tolist() if not whole(decisions, job, queue)][:4]:
                self.check_in_its_pass(job, queue, snapshot, decisions)
                self.alone(job, queue, snapshot)
        return decisions

    def check_in_its_pass(self, job: int, queue: Queue, snapshot: Snapshot, decisions: Decisions) -> None:
        """With the preceding starts the job is short of exactly this resource, and starts once all shortages are added.

        For jobs admitted to a flow the check differs: among exactly these jobs, the job is admitted as well.
        """
        why = decisions.reason(job, self.inner)
        if why.cause is not WaitCause.SHORT:
            return
        if "admitted" in why.text:
            self.check_admitted(job, queue, snapshot, why)
            return
        started = [start.job for start in decisions.starts]
        state = snapshot.with_starts(
            start for start in decisions.starts if self.precedes(start.job, job, queue, snapshot, started)
        )
        first = self.alone(job, queue, state)
        assert first == replace(why, ahead=0)

    def precedes(self, other: int, job: int, queue: Queue, snapshot: Snapshot, started: list[int]) -> bool:
        """Return whether a job precedes another in a pass: by priority in a list, by age in greedy scheduling."""
        jobs = queue.jobs.tolist()
        if isinstance(self.scheduler, ListScheduler):
            turn = turns(self.scheduler, queue, snapshot, started)
            return turn.index(other) < turn.index(job)
        if isinstance(self.scheduler, CompositionScheduler):
            priority = dict(zip(jobs, self.scheduler.order.priority(queue, snapshot).tolist(), strict=True))
            return (-priority[other], jobs.index(other)) < (-priority[job], jobs.index(job))
        return not isinstance(self.scheduler, Greedy) or jobs.index(other) < jobs.index(job)

    def check_admitted(self, job: int, queue: Queue, snapshot: Snapshot, why: Reason) -> None:
        """With the older admitted jobs, the job is no longer short of this resource."""
        assert isinstance(self.inner, FlowDispatcher)
        in_time = queue.jobs[self.inner._admission(queue, snapshot)[2]]
        some = queue.only(np.array([*(row for row in in_time.tolist() if self.older(row, job, queue)), job]))
        more = enlarged(snapshot, self.add(snapshot, job, why))
        dispatcher = self.scheduler.open(more.machine, 1)
        decisions = dispatcher.schedule(some, more, Changes(explain=frozenset({job})))
        if not whole(decisions, job, some):
            after = decisions.reason(job, dispatcher)
            assert "admitted" not in after.text or after.resource != why.resource

    def older(self, other: int, job: int, queue: Queue) -> bool:
        jobs = queue.jobs.tolist()
        return jobs.index(other) < jobs.index(job)

    def alone(self, job: int, queue: Queue, snapshot: Snapshot) -> Reason | None:
        """Once all shortages have been added, a job alone in the queue starts, and no shortage is reported twice.

        Returns the first reason, None if it starts at once.
        """
        queue, reasons = queue.only(np.array([job])), list[Reason]()
        while True:
            dispatcher = self.scheduler.open(snapshot.machine, 1)
            decisions = dispatcher.schedule(queue, snapshot, Changes(explain=frozenset({job})))
            if whole(decisions, job, queue):
                break
            why = decisions.reason(job, dispatcher)
            if why.cause is WaitCause.POSTPONED or not why.resource:
                assert self.postpones
                return reasons[0] if reasons else why
            assert why.cause is WaitCause.SHORT and why.needed > why.free and why.ahead == 0
            assert (why.text, why.resource) not in [(before.text, before.resource) for before in reasons]
            reasons.append(why)
            snapshot = enlarged(snapshot, self.add(snapshot.with_starts(decisions.starts), job, why))
        assert len(reasons) <= self.most
        self.met.update(why.text for why in reasons)
        return reasons[0] if reasons else None


def whole(decisions: Decisions, job: int, queue: Queue) -> bool:
    """Return whether decisions start all waiting tasks of a job."""
    return sum(len(start.tasks) for start in decisions.starts if start.job == job) == len(queue.tasks(job))


def run(
    workload: Workload, machine: Machine, adding: Adding, model: PerformanceModel, estimate: PerformanceModel | None = None
) -> set[str]:
    """Run the workload to the end; return the texts of shortages of jobs that were alone."""
    run_loop(Simulation(workload, machine, model, estimate), adding, 1)
    return adding.met


def to_racks(state: Snapshot, job: int, why: Reason) -> IntArray:
    """Add nodes or memory of one pool; "in reach of the free nodes" means pools of racks whose free nodes lack memory."""
    layout, extra = state.machine.racks, np.zeros_like(state.capacity)
    short = why.needed - why.free
    if why.resource == "nodes":
        extra[layout.nodes[0], layout.node_column] = short
    elif "in reach of the free nodes" not in why.text:
        extra[layout.pools[0], layout.memory_column] = short
    else:
        remote = int(state.table.memory[job]) - state.machine.local_memory
        for node, pool in zip(layout.nodes.tolist(), layout.pools.tolist(), strict=True):
            idle, there = int(state.free[node, layout.node_column]), int(state.free[pool, layout.memory_column])
            added = min(short, max(0, idle - there // remote) * remote)
            extra[pool, layout.memory_column] = added
            short -= added
        assert short == 0
    return extra


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["rack", "system"]))
def test_shortages_of_nodes_and_pool_memory_are_exact(seed: int, scope: PoolScope) -> None:
    nodes_and_pool_memory(seed, scope)


def nodes_and_pool_memory(seed: int, scope: PoolScope) -> set[str]:
    """Run a random study of list scheduling; return the texts of shortages of jobs that were alone."""
    g = np.random.default_rng(seed)
    jobs, on = int(g.integers(2, 30)), random_studies.machine(g)
    load, model = random_studies.workload(g, on, jobs), random_studies.model(g)
    how = random_studies.scheduler(g, 0, ("none", "easy", "easy_no_extra", "conservative", "skip"))
    listed = replace(getattr(how, "then", how), placement=RackPlacement(scope))
    return run(load, on, Adding(listed, to_racks, 2), model)


def test_rack_shortages_are_met_in_their_scope() -> None:
    for scope, memory in (("rack", "not enough pool memory in reach of the free nodes"), ("system", "not enough pool memory")):
        met = set().union(*(nodes_and_pool_memory(seed, scope) for seed in range(12)))
        assert met == {"not enough free nodes", memory}


SPARE = 9
"""GPUs of each node that are not there yet."""


def growing(gpus: tuple[int, ...], cores: int) -> Machine:
    """Return nodes with GPUs and with slots for more."""
    machine = gpu_nodes(tuple(count + SPARE for count in gpus), cores=cores)
    capacity, first = machine.capacity.copy(), len(gpus)
    for count in gpus:
        capacity[first + count : first + count + SPARE, 2] = 0
        first += count + SPARE
    return machine.with_capacity(capacity)


def to_shared_nodes(state: Snapshot, job: int, why: Reason) -> IntArray:
    """Add cores or memory, or GPUs if there are slots for them, to the node that has most of it free."""
    machine, extra, short = state.machine, np.zeros_like(state.capacity), why.needed - why.free
    nodes = machine.of_kind(Kind.NODE)
    if why.resource != "gpu":
        column = machine.resource(why.resource)
        extra[nodes[np.argmax(state.free[nodes, column])], column] = short
        return extra
    gpus = machine.of_kind(Kind.DEVICE)
    free = np.array([int(state.free[gpus[machine.home[gpus] == node], 2].sum()) for node in nodes.tolist()])
    for node in nodes[np.argsort(-free, kind="stable")].tolist():
        places = gpus[(machine.home[gpus] == node) & (state.capacity[gpus, 2] == 0)][:short]
        extra[places, 2] = 1
        short -= len(places)
    assert short == 0
    return extra


@pytest.mark.parametrize(
    "scheduler",
    [FlowScheduler(), FlowScheduler(admission="filter", patience_s=20.0), Firmament(), LeastAllocated(), LocalFirstRandom()],
    ids=str,
)
def test_shortages_on_shared_nodes_are_exact(scheduler: Scheduler) -> None:
    met: set[str] = set()
    for seed in range(6):
        g, n = np.random.default_rng(seed), 12
        workload = Workload.of(
            np.sort(g.integers(0, 20, n)) * SECOND,
            g.integers(5, 40, n) * SECOND,
            tasks=g.integers(1, 4, n),
            requests={
                name: g.integers(low, high, n) for name, low, high in (("cores", 1, 5), ("memory", 0, 40), ("gpu", 0, 3))
            },
        )
        adding = Adding(scheduler, to_shared_nodes, 6, postpones=True)
        met |= run(workload, growing((2, 1, 1), int(g.integers(4, 9))), adding, Ideal())
    assert {"cores", "gpu"} <= {text.split(" ")[3] for text in met if text.startswith("not enough free")}


def composable(g: np.random.Generator) -> Machine:
    """Return nodes, devices of two sizes in two racks and in a node, a slot for another in each rack, and fabrics or none."""
    build = MachineBuilder("composable", RESOURCES)
    nodes = [build.node(f"node{k}", cores=int(g.integers(8, 20))) for k in range(2)]
    for k in range(int(g.integers(3, 7))):
        bandwidth, storage = [(2000, 600), (1000, 900)][g.integers(2)]
        home = [-1, -1, nodes[1]][g.integers(3)]
        build.device(f"nvme{k}", home=home, rack=int(g.integers(2)) if home < 0 else 0, bandwidth=bandwidth, storage=storage)
    for rack in range(2):
        build.device(f"spare{rack}", rack=rack)
        if g.random() < 0.5:
            build.pool(f"fabric{rack}", rack=rack, bandwidth=int(g.choice([1000, 2000, 4500])))
    return Machine.of(build)


def to_composed(alone: bool) -> Add:
    """Return additions for policies that give a workload a single device, or compose devices of one location."""

    def add(state: Snapshot, job: int, why: Reason) -> IntArray:
        """Add cores to the emptiest node, bandwidth to every fabric, the rest to the emptiest free device or location."""
        machine, extra, short = state.machine, np.zeros_like(state.capacity), why.needed - why.free
        column, nodes = machine.resource(why.resource), machine.of_kind(Kind.NODE)
        if why.resource == "cores":
            extra[nodes[np.argmax(state.free[nodes, column])], column] = short
            return extra
        if "fabric" in why.text:
            extra[machine.of_kind(Kind.POOL), column] = short
            return extra
        cores, storage = state.table.request("cores")[job], state.table.request("storage")[job]
        places: dict[tuple[int, ...], list[int]] = {}
        for device in machine.of_kind(Kind.DEVICE).tolist():
            home, rack = int(machine.home[device]), int(machine.rack[device])
            if not state.occupants(device) and (home < 0 or state.free[home, machine.resource("cores")] >= cores):
                places.setdefault((home, rack if home < 0 else 0, device if alone else 0), []).append(device)
        stored = {key: int(state.capacity[devices, machine.resource("storage")].sum()) for key, devices in places.items()}
        able = [devices for key, devices in places.items() if why.resource == "storage" or stored[key] >= storage]
        had = [int(state.capacity[devices, column].sum()) for devices in able]
        assert why.free == max(had)
        extra[able[int(np.argmax(had))][-1], column] = short
        return extra

    return add


NVME = [
    NvmeFirstFit(),
    NvmeFirstFit(share=True),
    NvmeMaximizeComposition(),
    NvmeMinimizeFragmentation(),
    NvmeDisaggregationAware(),
]


@pytest.mark.parametrize("policy", NVME, ids=lambda policy: type(policy).__name__)
def test_shortages_of_compositions_are_exact(policy: Composer) -> None:
    met, alone = set[str](), isinstance(policy, NvmeFirstFit)
    for seed in range(6):
        g, n = np.random.default_rng(seed), 12
        kinds = g.choice(["smufin", "fio", "capacity", "small", "compute"], n).tolist()
        load = workload(list(zip(np.sort(g.integers(0, 1000, n)).tolist(), kinds, strict=True)))
        requests, most = load.request("bandwidth") > 0, 800 if alone else 1500
        amounts = {"bandwidth": requests * g.integers(1, 10, n) * 200, "storage": requests * g.choice([0, 100, 500, most], n)}
        load = replace(load, requests={**load.requests, **amounts})
        scheduler = CompositionScheduler(EDF(), policy) if seed % 2 else ListScheduler(EDF(), Skip(), policy)
        met |= run(load, composable(g), Adding(scheduler, to_composed(alone), 4), SHARING)
    place = "any free device" if alone else "the free devices of any one location"
    assert met == {
        "no node has enough free cores",
        f"not enough storage on {place} that a node with enough free cores can attach",
        f"not enough bandwidth on {place} that a node with enough free cores can attach",
        "the fabric of the free devices has too little bandwidth left",
    }


def modules() -> Machine:
    """Return three nodes of different speed and a pool."""
    numbers = {"frequency": np.array([2.0, 1.5, 1.0, np.nan]), "static": np.array([1.6, 1.2, 0.7, np.nan])}
    return Machine(
        "modules", tuple(f"o{k}" for k in range(4)), np.array([Kind.NODE] * 3 + [Kind.POOL]), ("node",) * 3 + ("pool",),
        np.zeros(4, dtype=np.int64), np.zeros((4, 2), dtype=np.int64), np.full(4, -1), ("cores", "memory"),
        np.array([[16, 1000]] * 3 + [[0, 2000]]), {}, numbers,
    )  # fmt: skip


def to_modules(state: Snapshot, job: int, why: Reason) -> IntArray:
    """Add to each node that has exactly the stated free amount; add what nodes and pool lack together to the pool."""
    extra, column = np.zeros_like(state.capacity), state.machine.resource(why.resource)
    nodes = state.machine.of_kind(Kind.NODE)
    if "pool" in why.text:
        extra[state.machine.of_kind(Kind.POOL)[0], column] = why.needed - why.free
    else:
        extra[nodes[state.free[nodes, column] == why.free], column] = why.needed - why.free
    assert extra.any()
    return extra


def test_shortages_of_a_batch_are_exact() -> None:
    met: set[str] = set()
    for seed in range(12):
        g, n = np.random.default_rng(seed), 10
        workload = Workload.of(
            np.sort(g.integers(0, 40, n)) * SECOND,
            g.integers(5, 30, n) * SECOND,
            requests={"cores": g.integers(1, 17, n), "memory": g.integers(1, 1800, n)},
            attributes={"frequency": g.integers(10, 20, n) / 10, "tolerance": g.integers(0, 30, n) / 20},
        )
        met |= run(workload, modules(), Adding(BatchScheduler("first-fit"), to_modules, 4), CpuFrequency())
    assert len({text.split(" ")[-1] for text in met}) >= 2


@dataclass
class Deploying(Adding):
    """Adds units, still to be deployed, that may run tasks of a job that is alone."""

    deployed: int = 0

    def check_in_its_pass(self, job: int, queue: Queue, snapshot: Snapshot, decisions: Decisions) -> None:
        """Skip the check: other jobs may take what is added."""

    def alone(self, job: int, queue: Queue, snapshot: Snapshot) -> None:
        """As many of its tasks start as units were added, unless the policy waits for better ones."""
        queue = queue.only(np.array([job]))
        dispatcher = self.scheduler.open(snapshot.machine, 1)
        decisions = dispatcher.schedule(queue, snapshot, Changes(explain=frozenset({job})))
        if whole(decisions, job, queue):
            return
        why = decisions.reason(job, dispatcher)
        if why.cause is WaitCause.POSTPONED:
            assert self.postpones
            return
        extra = self.add(snapshot, job, why)
        more = enlarged(snapshot, extra)
        dispatcher = self.scheduler.open(more.machine, 1)
        then = dispatcher.schedule(queue, more, Changes(explain=frozenset({job})))
        new, added = len(then.starts) - len(decisions.starts), int(extra.sum())
        self.deployed += new
        if new < added:
            assert self.postpones and then.reason(job, dispatcher).cause is WaitCause.POSTPONED


@pytest.mark.parametrize("entry", POLICIES, ids=[f"{name}-{kw}" for name, kw in POLICIES])
def test_unit_shortages_of_tasks_are_exact(entry: tuple[str, dict[str, object]]) -> None:
    deployed = 0
    for seed in range(4):
        deployed += units_for_tasks(seed, policy_of(entry), entry[0] in ("earliest_finish", "delay"))
    assert deployed


def units_for_tasks(seed: int, policy: UnitPolicy, waits: bool) -> int:
    """Run a study in which every other unit is yet to be deployed; return how many tasks additions have started."""
    case = study(seed, 40).case()
    full, gone = case.machine, np.zeros_like(case.machine.capacity)
    slots = full.resource("slots")
    away = np.flatnonzero(full.capacity[:, slots])[::2]
    gone[away, slots] = full.capacity[away, slots]

    def to_units(state: Snapshot, job: int, why: Reason) -> IntArray:
        """Add single-task units that may run the job's tasks: as many as it lacks, or as there are slots for."""
        units = Units(enlarged(state, gone))
        allowed = [leaf for low, high in policy.allowed(job, units) for leaf in range(low, high)]
        extra = np.zeros_like(gone)
        extra[np.intersect1d(units.layout.owner[allowed], away)[: why.needed - why.free], slots] = 1
        return extra

    how = Deploying(Dispatch(policy), to_units, 1, waits)
    run(case.workload, full.with_capacity(full.capacity - gone), how, case.model, case.estimate)
    return how.deployed
