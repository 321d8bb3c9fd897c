"""Whole rounds of the flow scheduler in two phases: admission, graphs, solving, assignment and starts."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Figures, case, seconds
from poolwise.model import Changes, Decisions, Kind, Machine, Queue, Snapshot, Start, Workload
from poolwise.model.run_table import RunTable
from poolwise.performance.device_profiles import read_device_profiles
from poolwise.performance.ideal import Ideal
from poolwise.quantities import SECOND
from poolwise.schedulers.flow import FlowScheduler

GPUS = 4
CORES, MEMORY = 160, 512 * 1024
TASK_CORES, TASK_MEMORY = 20, 64 * 1024


class Cluster:
    """Machines at all levels of utilization, and waiting jobs of the shipped profiles with different numbers of passes."""

    def __init__(self, machines: int, waiting: int, more: int = 0, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n = machines * (1 + GPUS)
        capacity = np.zeros((n, 3), dtype=np.int64)
        capacity[:machines, 0], capacity[:machines, 1], capacity[machines:, 2] = CORES, MEMORY, 1
        self.machines = machines
        self.machine = Machine(
            name="cluster",
            owners=tuple(map(str, range(n))),
            kind=np.repeat([Kind.NODE, Kind.DEVICE], [machines, n - machines]).astype(np.int64),
            type=("server",) * machines + ("gpu",) * (n - machines),
            rack=np.zeros(n, dtype=np.int64),
            position=np.zeros((n, 2), dtype=np.int64),
            home=np.concatenate([np.full(machines, -1), np.repeat(np.arange(machines), GPUS)]),
            resources=("cores", "memory", "devices"),
            capacity=capacity,
        )
        jobs = waiting + more
        kinds = np.array(list(read_device_profiles("catalog:rodinia")))
        self.workload = Workload.of(
            np.sort(rng.integers(0, 100, jobs)) * SECOND,
            np.full(jobs, 75 * SECOND),
            requests={name: np.full(jobs, v) for name, v in (("cores", TASK_CORES), ("memory", TASK_MEMORY), ("gpu", 1))},
            attributes={"kind": kinds[rng.integers(0, len(kinds), jobs)]},
        )
        self.free = capacity.copy()
        self.queue = Queue(self.workload.table)
        self.next = 0
        self.arrive(waiting, passes=97)

    def occupy(self, least: int, seed: int = 1) -> None:
        """Run `least` to 8 tasks on each machine; each task gets a local GPU while one is free."""
        many = np.random.default_rng(seed).integers(least, 9, self.machines)
        self.free[: self.machines, 0] -= many * TASK_CORES
        self.free[: self.machines, 1] -= many * TASK_MEMORY
        self.free[self.machines :, 2] = (np.arange(GPUS) >= many[:, None]).reshape(-1)

    def arrive(self, jobs: int, passes: int = 0) -> None:
        """Add waiting jobs; with `passes`, count a scheduling pass after every `passes` jobs."""
        for job in range(self.next, self.next + jobs):
            self.queue.add(job)
            if passes and job % passes == 0:
                self.queue.count_pass()
        self.next += jobs

    def depart(self, tasks: int, rng: np.random.Generator) -> None:
        """Free the GPUs of some tasks, and the cores of half of them."""
        gpus = rng.choice(np.flatnonzero(self.free[self.machines :, 2] == 0), tasks, replace=False)
        self.free[self.machines + gpus, 2] = 1
        for node in (gpus[: tasks // 2] // GPUS).tolist():
            self.free[node, 0] = min(CORES, self.free[node, 0] + TASK_CORES)
            self.free[node, 1] = min(MEMORY, self.free[node, 1] + TASK_MEMORY)

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        capacity = self.machine.capacity
        return Snapshot(200 * SECOND, self.machine, self.workload.table, capacity, self.free, RunTable(capacity.size), Ideal())

    def commit(self, decisions: Decisions) -> int:
        """Commit decisions and return the number of starts."""
        starts = [decision for decision in decisions if isinstance(decision, Start)]
        for start in starts:
            np.subtract.at(self.free, (start.placement.owner, start.placement.resource), start.placement.amount)
            self.queue.remove_tasks(start.job)
        assert int(self.free.min()) >= 0
        return len(starts)


def cold(machines: int, waiting: int) -> Figures:
    """Return milliseconds of one round, merged and flat."""
    cluster = Cluster(machines, waiting)
    cluster.occupy(0)
    snapshot, figures = cluster.snapshot(), {}
    for name, aggregated in (("ms", True), ("flat_ms", False)):
        dispatcher = FlowScheduler(aggregated=aggregated).open(cluster.machine, 0)
        took, decisions = seconds(lambda d=dispatcher: d.schedule(cluster.queue, snapshot, Changes()), 3)
        figures[name] = 1e3 * took
        figures["starts"] = sum(isinstance(decision, Start) for decision in decisions)
    return {**figures, "flat_over_merged": figures["flat_ms"] / figures["ms"]}


@case("flow-scheduler", ms=("<=", 350), flat_over_merged=(">=", 1))
def flow_scheduler() -> Figures:
    """Benchmark 12,500 machines and 10,000 waiting tasks, all of which start."""
    return cold(12_500, 10_000)


@case("flow-scheduler-128", ms=("<=", 10))
def flow_scheduler_128() -> Figures:
    """Benchmark 128 machines and 4,096 waiting tasks; two phases of 5 ms."""
    return cold(128, 4_096)


@case("flow-scheduler-rounds", ms=("<=", 50))
def flow_scheduler_rounds(repeat: int = 6) -> Figures:
    """Return the median time of rounds after 1,000 arrivals and departures, on 12,500 machines with 10,000 waiting tasks."""
    cluster, rng, spent, starts = Cluster(12_500, 10_000, 1_000 * repeat), np.random.default_rng(2), [], 0
    cluster.occupy(4)
    dispatcher = FlowScheduler().open(cluster.machine, 0)
    for _ in range(repeat):
        cluster.depart(1_000, rng)
        snapshot = cluster.snapshot()
        took, decisions = seconds(lambda s=snapshot: dispatcher.schedule(cluster.queue, s, Changes(ended=(0,))))
        spent.append(took)
        starts += cluster.commit(decisions)
        cluster.queue.count_pass()
        cluster.arrive(1_000)
    return {"ms": 1e3 * float(np.median(spent)), "starts": starts / repeat}
