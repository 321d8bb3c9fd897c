"""Batch scheduling: a batch placement method places the whole queue, at each event or at intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.batch.methods.method import Limit, Method, find_method, impossible
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.definition import Batch, Modules, Problem, Theta
from poolwise.errors import InputError
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import (
    Changes,
    Decision,
    Decisions,
    JobTable,
    Kind,
    Machine,
    Placement,
    Queue,
    Reason,
    Refusal,
    Reject,
    Snapshot,
    Start,
    Wait,
    WaitCause,
)
from poolwise.model.shared_nodes import SharedNodes, shared_nodes
from poolwise.performance.cpu_frequency import profile_of
from poolwise.registry import register
from poolwise.schedulers.rounds import BETWEEN, Rounds
from poolwise.short_repr import short_repr


@register("schedulers", "batch")
@dataclass(frozen=True)
class BatchScheduler(Scheduler):
    """Places all waiting jobs together on shared nodes and one memory pool, by solving IRoP's problem on the free resources.

    Nodes have cores, memory and the attributes frequency, static and dynamic (energy). Jobs request cores and memory and may
    have the attributes frequency, tolerance, priority and profile. Jobs without a place wait, lowest priority first; jobs
    that could never be placed are rejected.

    Parameters
    ----------
    method
        "place", "irop", "opt", "heep", "cfm", "first-fit" or FILE.py:NAME.
    settings
        Settings of the method.
    every_s
        Seconds between placements; 0 places at each arrival and end.
    effort_s
        Effort of one placement: "place" and "opt" convert seconds to fixed counts of moves and nodes, so that runs are
        reproducible.
    eta, theta, clip, normalise, least_local
        See `batch.problem.definition.Problem`.
    tolerance
        Accepted slowdown of jobs without a tolerance.
    profile
        Profile of jobs without one.
    """

    __repr__ = short_repr

    method: str = "place"
    settings: Mapping[str, Any] = field(default_factory=dict)
    every_s: float = 0.0
    effort_s: float = 0.05
    eta: float = 0.5
    theta: Theta = "relative"
    clip: bool = False
    normalise: bool = False
    least_local: float = 0.25
    tolerance: float = 0.25
    profile: str = "kmeans"

    def open(self, machine: Machine, seed: int) -> Dispatcher:
        """Start a run; raise InputError for a machine without shared nodes or an unknown method."""
        return BatchDispatcher(self, self.method_of(seed), ModuleLayout.of(machine))

    def method_of(self, seed: int) -> Method:
        """Create the method with its settings; its random draws follow the run's seed, and it reads no clock."""
        settings = dict(self.settings)
        if self.method == "place":
            settings = {"seed": seed, "guard": False, **settings}
        elif self.method == "cfm":
            settings = {"seed": seed, **settings}
        return find_method(self.method, **settings)


@dataclass(frozen=True, eq=False)
class ModuleLayout(SharedNodes):
    """View of a machine for a batch: shared nodes as modules, and at most one memory pool.

    Attributes
    ----------
    pool : owner number of the pool, -1 without one
    cores, memory : resource columns
    frequency, static, dynamic : (n_node,) attributes of the modules
    """

    pool: int
    cores: int
    memory: int
    frequency: FloatArray
    static: FloatArray
    dynamic: FloatArray

    @classmethod
    def of(cls, machine: Machine) -> ModuleLayout:
        """Build the view; raise InputError for a machine without nodes with cores and memory, or with several pools."""
        shared = shared_nodes(machine, "cores", "memory")
        nodes, memory = shared.nodes, shared.column("memory")
        pools = [p for p in machine.of_kind(Kind.POOL).tolist() if machine.capacity[p, memory] > 0]
        if len(pools) > 1:
            raise InputError(
                f"machine '{machine.name}' has {len(pools)} memory pools; batch scheduling supports at most one",
                field="pool",
                remedy='set per = "machine" in the [[pool]]',
            )

        def attribute(name: str, default: float) -> FloatArray:
            column = machine.attributes.get(name)
            values = np.full(len(nodes), np.nan) if column is None else column[nodes]
            return np.where(np.isnan(values), default, values)

        return cls(
            **vars(shared),
            pool=pools[0] if pools else -1,
            cores=shared.column("cores"),
            memory=memory,
            frequency=attribute("frequency", 1.0),
            static=attribute("static", 0.0),
            dynamic=attribute("dynamic", 1.0),
        )


@dataclass(frozen=True)
class BatchDispatcher(Dispatcher):
    """Stateless dispatcher of a batch scheduler."""

    scheduler: BatchScheduler
    method: Method
    layout: ModuleLayout

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Place the whole queue if a round is due."""
        decisions = self.decide_on(queue, snapshot, snapshot.free)
        state = snapshot.with_starts(decisions.starts) if changes.explain else snapshot
        left = changes.explain.difference((start.job for start in decisions.starts), decisions.rejected)
        return replace(decisions, reasons={job: self._reason(job, state) for job in left if job in queue})

    def decide_on(self, queue: Queue, snapshot: Snapshot, free: IntArray) -> Decisions:
        """Place the whole queue on free amounts, (n_owner, n_resource), if a round is due."""
        rounds = Rounds(self.scheduler.every_s)
        wake = rounds.after(snapshot.now) if len(queue) else None
        if not len(queue) or not rounds.due(snapshot.now):
            return Decisions((), wake)
        jobs = queue.jobs
        hopeless = self._hopeless(jobs, snapshot)
        rejects: list[Decision] = [
            Wait(job, Refusal(why)) if snapshot.may_grow else Reject(job, f"cannot run on the empty machine: {why}")
            for job, why in hopeless.items()
        ]
        jobs = jobs[~np.isin(jobs, list(hopeless))]
        if not len(jobs):
            return Decisions(tuple(rejects), None if len(hopeless) == len(queue) and not snapshot.may_grow else wake)
        solution = self.method.solve(self.problem(jobs, snapshot, free), self._limit)
        starts = self._starts(jobs, queue, solution, free)
        waiting = len(starts) < len(jobs)
        return Decisions((*rejects, *starts), wake if waiting else None)

    @property
    def _limit(self) -> Limit:
        """Effort limit of one placement: an amount of work or, for `place`, seconds, to which its `guard` and `pace` apply."""
        effort = self.scheduler.effort_s
        return Limit(effort) if self.scheduler.method == "place" else Limit.by_work(effort)

    def _reason(self, job: int, snapshot: Snapshot) -> Reason:
        """Return the resource that is short after the decisions, or state that the placement omitted a job that fits alone."""
        if not Rounds(self.scheduler.every_s).due(snapshot.now):
            return BETWEEN
        short = _shortage(self.problem(np.array([job], dtype=np.int64), snapshot, snapshot.free))
        if short is not None:
            return Reason.of(WaitCause.SHORT, short.reason, short)
        return Reason(WaitCause.POSTPONED, "it fits alone, but the batch placement does not include it")

    def problem(self, jobs: IntArray, snapshot: Snapshot, free: IntArray) -> Problem:
        """Build the problem of placing jobs on free amounts, (n_owner, n_resource)."""
        layout, scheduler, workload = self.layout, self.scheduler, snapshot.table
        capacity = snapshot.machine.capacity[layout.nodes, layout.cores]
        free_cores = free[layout.nodes, layout.cores]
        modules = Modules(
            tuple(snapshot.machine.owners[n] for n in layout.nodes.tolist()),
            np.maximum(capacity, 1),
            layout.frequency,
            np.maximum(free[layout.nodes, layout.memory], 0).astype(np.float64),
            layout.static,
            layout.dynamic,
            np.maximum(free_cores, 0),
            free_cores < capacity,
        )
        pool = int(free[layout.pool, layout.memory]) if layout.pool >= 0 else 0
        batch = Batch(
            tuple(str(i) for i in workload.id[jobs].tolist()),
            np.maximum(workload.request("cores")[jobs] * workload.tasks[jobs], 1),
            self._attribute(workload, jobs, "frequency", layout.frequency.min()),
            np.maximum(workload.memory[jobs] * workload.tasks[jobs], 1).astype(np.float64),
            self._attribute(workload, jobs, "tolerance", scheduler.tolerance),
            self._attribute(workload, jobs, "priority", 0).astype(np.int64),
            tuple(profile_of(workload, job, scheduler.profile) for job in jobs.tolist()),
        )
        return Problem(
            batch,
            modules,
            float(max(0, pool)),
            scheduler.eta,
            scheduler.theta,
            scheduler.clip,
            scheduler.normalise,
            scheduler.least_local,
        )

    @staticmethod
    def _attribute(workload: JobTable, jobs: IntArray, name: str, default: float) -> FloatArray:
        column = workload.attributes.get(name)
        return np.full(len(jobs), float(default)) if column is None else np.asarray(column)[jobs].astype(np.float64)

    def _hopeless(self, jobs: IntArray, snapshot: Snapshot) -> dict[int, str]:
        """Return the jobs that no pass could ever place, with reasons."""
        problem = self.problem(jobs, snapshot, snapshot.capacity)
        reasons = ((job, impossible(problem, k)) for k, job in enumerate(jobs.tolist()))
        return {job: why for job, why in reasons if why}

    def _starts(self, jobs: IntArray, queue: Queue, solution: Solution, free: IntArray) -> list[Start]:
        """Return starts of placed jobs in queue order, with memory in whole MiB; a job without room after rounding waits."""
        layout, placed = self.layout, solution.assignment.placed
        pool = int(free[layout.pool, layout.memory]) if layout.pool >= 0 else 0
        starts: dict[int, Start] = {}
        for module in np.unique(solution.assignment.module[placed]).tolist():
            node = int(layout.nodes[module])
            rows = placed[solution.assignment.module[placed] == module]
            for k, local in whole_mib(solution, rows, module, int(free[node, layout.memory])).items():
                remote = int(solution.problem.batch.memory[k]) - local
                if remote > pool:
                    continue
                pool -= remote
                taken = [(0, node, layout.cores, int(solution.problem.batch.cores[k])), (0, node, layout.memory, local)]
                taken += [(0, layout.pool, layout.memory, remote)] if remote else []
                job = int(jobs[k])
                starts[k] = Start(job, queue.tasks(job), Placement.of(taken))
        return [starts[k] for k in sorted(starts)]


def _shortage(problem: Problem) -> Refusal | None:
    """Return the shortage of the only job of a problem, None if it fits."""
    groups, cores, memory = problem.groups, int(problem.batch.cores[0]), float(problem.batch.memory[0])
    fast: BoolArray = ~np.isnan(problem.least[0])
    where = " that is fast enough" if not fast.all() else ""
    most = int(groups.free_cores[fast].max(initial=0))
    if cores > most:
        return Refusal(f"no node{where} has enough free cores", "cores", cores, most)
    wide = fast & (groups.free_cores >= cores)
    least = np.ceil(problem.least[0, wide] * memory).astype(np.int64)
    if not problem.allowed[0].any():
        near = int(np.argmin(least - groups.memory[wide]))
        text = "too little free memory in the nodes to keep its slowdown within its tolerance"
        return Refusal(text, "memory", int(least[near]), int(groups.memory[wide][near]))
    reach = int(groups.memory[problem.allowed[0]].max() + problem.remote)
    if memory > reach:
        return Refusal("not enough free memory in a node and the pool together", "memory", int(memory), reach)
    return None


def whole_mib(solution: Solution, rows: IntArray, module: int, free: int) -> dict[int, int]:
    """Return rounded local MiB of (k,) workloads on one module: each at least its slowdown bound, together at most `free`.

    If the rounded minimum shares alone exceed `free`, the last workload is omitted.
    """
    problem, group = solution.problem, int(solution.problem.groups.of_module[module])
    size = problem.batch.memory[rows]
    share = solution.assignment.local[rows]
    bound = np.minimum(np.nan_to_num(problem.least[rows, group], nan=0.0), share)  # methods without a bound go below it
    least, local = np.ceil(bound * size - 1e-6), np.floor(share * size + 1e-6)
    local = np.maximum(local, least)
    while len(rows) and float(local.sum()) > free:
        spare = local - least
        if float(spare.sum()) < float(local.sum()) - free:
            rows, local, least = rows[:-1], local[:-1], least[:-1]
            continue
        most = int(np.argmax(spare))
        local[most] -= min(float(spare[most]), float(local.sum()) - free)
    return {int(k): int(amount) for k, amount in zip(rows.tolist(), local.tolist(), strict=True)}
