"""Small machines and workloads for the checks, and runs that pass every state to a visitor or compare two engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from poolwise.conformance.findings import Findings
from poolwise.engines import simulate
from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, PerformanceModel, Scheduler
from poolwise.loop import LoopResult, run_loop
from poolwise.model import (
    Changes,
    Decisions,
    JobTable,
    Kind,
    Machine,
    MachineBuilder,
    Placement,
    Queue,
    Schedule,
    Snapshot,
    Start,
    Workload,
)
from poolwise.model.machine_builder import Vertex
from poolwise.performance.affinity import Affinity
from poolwise.performance.ideal import Ideal
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.platforms.simulated import Simulation
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.schedulers.list import ListScheduler

Visit = Callable[[Queue, Snapshot, Changes], None]
LOCAL = 65536


@dataclass(frozen=True)
class Case:
    """A machine and a workload.

    Attributes
    ----------
    workload, machine : the workload, and the machine that it runs on
    walker : scheduler that places the jobs if the checked object is not a scheduler
    model : performance model, unless a model is checked
    """

    workload: Workload
    machine: Machine
    walker: Scheduler = field(default_factory=ListScheduler)
    model: PerformanceModel = field(default_factory=Ideal)


def check_suitable_cases(cases: Sequence[Case], check: Callable[[Case], None]) -> None:
    """Run a check on each case; an object may decline some machines with an InputError, because of their shape, but not all."""
    declined: list[InputError] = []
    for case in cases:
        try:
            check(case)
        except InputError as error:
            declined.append(error)
    if len(declined) == len(cases):
        raise declined[0]


def racks(jobs: int = 40, seed: int = 1) -> Case:
    """Return three overloaded racks of four nodes and a pool each: ties, jobs on several racks, large memory, two too large."""
    rows = np.arange(jobs)
    size, hunger, length = (uniform(seed, name, rows) for name in ("size", "hunger", "length"))
    nodes = np.where(size < 0.6, 1 + (size * 5).astype(np.int64), 1 + (size * 10).astype(np.int64))
    nodes[[jobs // 3, jobs // 2]] = 13  # more than there are
    memory = np.where(hunger < 0.5, LOCAL // 2, (hunger * 6 * LOCAL).astype(np.int64) // 4)
    submit, duration = _stream(rows, seed, 4)
    workload = Workload.of(
        submit,
        duration,
        requested=np.where(length < 0.3, 2 * duration, duration),
        requests={"nodes": nodes, "memory": memory, "bandwidth": np.full(jobs, 100)},
        attributes=_columns(rows, seed, submit, duration),
        name="racks",
    )
    return Case(workload, Machine.of_racks(3, 4, local=LOCAL, pool=4 * LOCAL, cores=8), model=RemoteMemory())


def devices(jobs: int = 30, seed: int = 2) -> Case:
    """Return four shared nodes and four devices on a network with two switches; some jobs use a local or remote device."""
    want = uniform(seed, "want", np.arange(jobs))
    requests = {
        "cores": np.full(jobs, 2),
        "bandwidth": np.where(want < 0.8, 500 + (want * 1800).astype(np.int64), 0),
        "storage": np.where(want < 0.8, 150, 0),
    }
    return Case(_asking(requests, seed, "devices"), _network(), RoundRobin())


def modules(jobs: int = 24, seed: int = 3) -> Case:
    """Return five shared nodes with cores and memory, and one memory pool; jobs request both cores and memory."""
    want = uniform(seed, "want", np.arange(jobs))
    requests = {"cores": 1 + (want * 7).astype(np.int64), "memory": LOCAL // 4 + (want * LOCAL).astype(np.int64) // 2}
    build = MachineBuilder("modules", ("cores", "memory"))
    for n in range(5):
        build.node(f"module{n}", type="any", rack=-1, cores=8, memory=LOCAL)
    build.pool("pool", type="any", rack=-1, memory=4 * LOCAL)
    return Case(_asking(requests, seed, "modules"), Machine.of(build), RoundRobin())


def units(jobs: int = 24, seed: int = 4) -> Case:
    """Return six units of two types in two racks; jobs have one to four tasks of two types, with data at some position."""
    rows = np.arange(jobs)
    want = uniform(seed, "want", rows)
    submit, length = _stream(rows, seed, 4)
    operations = length // 1000
    kind = (want * 4).astype(np.int64) % 2
    rate = np.array([[1.0, 2.0], [1.0, 0.5]])  # of each task type on each unit type, operations per microsecond
    duration = np.ceil(operations / rate.max(axis=1)[kind]).astype(np.int64) * 1000
    columns = _columns(rows, seed, submit, duration)
    workload = Workload.of(
        submit,
        duration,
        tasks=1 + (want * 4).astype(np.int64),
        requests={"slots": np.ones(jobs, dtype=np.int64)},
        attributes={**columns, "task_type": kind, "preferred_type": kind, "operations": operations},
        name="units",
    )
    return Case(workload, _dispatching(rate), model=Affinity())


def _dispatching(rate: np.ndarray) -> Machine:
    """Return units 0..5 of alternating types at the positions (0, 0) to (1, 2), with a network as in `_network`."""
    build = MachineBuilder("units", ("slots", "bandwidth"))
    units = [build.node(f"node{k}", type=f"type{k % 2}", rack=k // 3, shelf=k % 3, slots=1) for k in range(6)]
    build.vertices([*units, "left", "right", "core"])
    for k, switch in enumerate(["left"] * 3 + ["right"] * 3):
        build.link(f"link{6 + k}", k, switch, bandwidth=1250)
    for k, switch in enumerate(["left", "right"]):
        build.link(f"link{12 + k}", switch, "core", bandwidth=125)
    code = np.array([k % 2 if k < len(units) else -1 for k in range(len(build.owners))])
    speed = {f"affinity.{k}": np.where(code < 0, 0.0, row[code]) for k, row in enumerate(rate)}
    return replace(Machine.of(build), attributes={"unit_type": code.astype(np.float64), **speed})


def _asking(requests: dict[str, np.ndarray], seed: int, name: str) -> Workload:
    rows = np.arange(len(requests["cores"]))
    submit, duration = _stream(rows, seed, 6)
    return Workload.of(submit, duration, requests=requests, attributes=_columns(rows, seed, submit, duration), name=name)


def _stream(rows: np.ndarray, seed: int, gap: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw submissions less than `gap` times 15 s apart, some of them simultaneous, and durations in whole minutes."""
    apart, length = (uniform(seed, name, rows) for name in ("gap", "length"))
    return np.cumsum((apart * gap).astype(np.int64)) * 15 * SECOND, (1 + (length * 8).astype(np.int64)) * 60 * SECOND


def _columns(rows: np.ndarray, seed: int, submit: np.ndarray, duration: np.ndarray) -> dict[str, np.ndarray]:
    """Draw the attributes that common policies and models read."""
    place = uniform(seed, "place", rows)
    return {
        "deadline": submit + 3 * duration,
        "class": rows % 3,
        "user": rows % 5,
        "data_size": (place * 4e9).astype(np.int64),
        "data_x": (place * 2).astype(np.int64),
        "data_y": (place * 4).astype(np.int64) % 2,
    }


def _network() -> Machine:
    """Make nodes 0..3 and devices 4..7 at the same vertices, a link to each of them, and one between the two switches."""
    build = MachineBuilder("devices", ("cores", "bandwidth", "storage"))
    nodes = [build.node(f"node{k}", type="any", rack=k // 2, shelf=k % 2, cores=8) for k in range(4)]
    for node in nodes:
        build.device(f"device{4 + node}", type="any", home=node, bandwidth=2000, storage=600)
    build.vertices([*nodes, "left", "right"])
    ends: list[tuple[Vertex, Vertex]] = [(0, "left"), (1, "left"), (2, "right"), (3, "right"), ("left", "right")]
    for k, ((here, there), bandwidth) in enumerate(zip(ends, (1250, 1250, 400, 1250, 1000), strict=True)):
        build.link(f"link{8 + k}", here, there, type="any", bandwidth=bandwidth, latency=100)
    return Machine.of(build)


@dataclass(frozen=True)
class RoundRobin(Scheduler, Dispatcher):
    """Scheduler that uses shared nodes in turn; a job that requests bandwidth shares a device that its row number selects."""

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Begin a run; the scheduler keeps no state."""
        return self

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Start the jobs for which there are cores, in order."""
        free, starts = snapshot.free[:4, 0].tolist(), []
        for job in queue.jobs.tolist():
            cores = snapshot.table.job(job).request("cores")
            node = next((n for n in ((job // 3 + k) % 4 for k in range(4)) if free[n] >= cores), None)
            if node is None:
                break
            free[node] -= cores
            rows = [(0, node, 0, cores)]
            if snapshot.table.job(job).request("bandwidth"):
                rows.append((0, 4 + job % 4, 1, 0))
            starts.append(Start(job, (0,), Placement.of(rows)))
        return Decisions(tuple(starts))


def state(queue: Queue, snapshot: Snapshot) -> tuple[object, ...]:
    """Return the parts of the state that a dispatcher must not change."""
    jobs = queue.jobs.tolist()
    runs = [(run.id, run.job, run.tasks, run.expected_end) for run in snapshot.runs()]
    arrays = (snapshot.free, snapshot.capacity, snapshot.machine.capacity)
    return jobs, [queue.tasks(job) for job in jobs], snapshot.now, runs, [array.tobytes() for array in arrays]


@dataclass
class Watched(Scheduler, Dispatcher):
    """A scheduler that passes every state to a visitor before it decides."""

    scheduler: Scheduler
    visit: Visit
    dispatcher: Dispatcher = field(init=False)

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Open the watched scheduler."""
        self.dispatcher = self.scheduler.open(machine, seed)
        return self

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Run the check of the watched scheduler."""
        self.scheduler.check(machine, jobs)

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Call the visitor, then decide."""
        self.visit(queue, snapshot, changes)
        return self.dispatcher.schedule(queue, snapshot, changes)


def walk(
    case: Case, visit: Visit, scheduler: Scheduler | None = None, model: PerformanceModel | None = None, seed: int = 0
) -> tuple[Schedule, LoopResult, Snapshot]:
    """Run a case and pass every state to a visitor; the last snapshot is taken at the end."""
    scheduler, model = scheduler if scheduler is not None else case.walker, model if model is not None else case.model
    for part in (scheduler, model):
        part.check(case.machine, case.workload.table)
    simulation = Simulation(case.workload, case.machine, model)
    loop = run_loop(simulation, Watched(scheduler, visit), seed)
    return simulation.recorder.schedule(case.workload, case.machine, loop), loop, simulation.snapshot()


RULE = "follows the rule that it states"


def compare_engines(scheduler: Scheduler, case: Case, findings: Findings, model: PerformanceModel | None = None) -> None:
    """Compare the schedule of the reference engine with that of the engine that follows the rule, also with small pools."""
    scarce = case.machine.capacity.copy()
    scarce[case.machine.of_kind(Kind.POOL)] //= 3
    for machine in (case.machine, case.machine.with_capacity(scarce)):
        called, by_rule = (
            simulate(case.workload, machine, scheduler, model=model or case.model, engine=engine).schedule
            for engine in ("reference", "auto")
        )
        for column, verb in (("job_start", "starts"), ("job_end", "ends")):
            other = np.flatnonzero(getattr(called, column) != getattr(by_rule, column))
            findings.require(RULE, not len(other), f"under its rule, the job in row {other[:1]} {verb} at a different time")
        same = called.owner.tobytes() == by_rule.owner.tobytes() and called.amount.tobytes() == by_rule.amount.tobytes()
        findings.require(RULE, same, "under its rule, a job gets a different placement")
