"""Flow scheduler: admission, node and device phases, gangs, starts.

Source: Amaral et al., DRMaestro, Algorithms 1 and 2; specs of the flow placement.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from poolwise import registry
from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import (
    Changes,
    Decision,
    Decisions,
    JobTable,
    Machine,
    Queue,
    Reason,
    Refusal,
    Reject,
    Snapshot,
    Wait,
    WaitCause,
)
from poolwise.optimize.min_cost_flow import FlowSolver
from poolwise.performance.link_load import access_links, link_loads, sites
from poolwise.policies.cost.model import CostModel
from poolwise.quantities import SECOND
from poolwise.registry import SettingsOf, register
from poolwise.schedulers.flow.flow_layout import FlowLayout
from poolwise.schedulers.flow.graph import Clock
from poolwise.schedulers.flow.idle import IdleMachine, shortage
from poolwise.schedulers.flow.node_phase import NODES
from poolwise.schedulers.flow.phases import solve_gangs, starts
from poolwise.schedulers.flow.round import Admission, Options, Round, admit
from poolwise.schedulers.flow.shapes import Requests, ShapeTable
from poolwise.schedulers.rounds import BETWEEN, Rounds
from poolwise.short_repr import short_repr

if TYPE_CHECKING:
    from poolwise.optimize.min_cost_flow.named import NamedFlow

_Admission = tuple[IntArray, IntArray, BoolArray, BoolArray]
"""(n_queued, n_resource) demand, (n_resource,) free amounts, and (n_queued,) admitted and patient jobs."""


@register("schedulers", "flow")
@dataclass(frozen=True)
class FlowScheduler(Scheduler):
    """Places waiting tasks on shared nodes, and assigns them devices of any node, at minimum cost.

    Jobs request node resources (cores, memory) and devices by the name of their kind, each per task. A job starts completely
    or not at all; all its tasks form one run.

    Parameters
    ----------
    costs, settings
        Registered name of the cost model (group "costs") and its settings.
    pooled
        True if a task may use devices of any node. Otherwise there is a single phase, in which one node must have everything.
    kinds
        Kinds of devices in the order of their phases; all kinds of the machine, by name, if not given.
    local_first
        True if the node phase prefers nodes with enough free local devices. False ignores devices there, as in the paper.
    every_s
        Seconds between rounds; 0 for a round at every event.
    at_ends
        True for additional rounds whenever something ends, between those of `every_s`.
    admission
        Treatment of the jobs behind one that does not fit the free amounts in total: see `admission.admit`.
    patience_s
        Wait after which a job can no longer be overtaken: no younger job starts before it.
    solve_again
        True to solve again without a job that was placed only in part, so that others may complete with its nodes and devices.
        False is Algorithm 2 of the paper as printed: the job waits for the next round, in which the same gangs may block each
        other again.
    aggregated
        True to merge equal tasks and machines. False gives the same optimum on a much larger graph.
    solver
        Solver of the flow problems. "kept" is Poolwise's own; it starts from the residual graph of the previous round. The cost
        is the same, but among tied optima a long-running dispatcher may choose a different one than a newly opened dispatcher.
    """

    __repr__ = short_repr

    costs: str = "utility"
    settings: Annotated[Mapping[str, Any], SettingsOf("costs", "costs")] = field(default_factory=dict)
    pooled: bool = True
    kinds: tuple[str, ...] = ()
    local_first: bool = True
    every_s: float = 0.0
    at_ends: bool = True
    admission: Admission = "prefix"
    patience_s: float = 3600.0
    solve_again: bool = True
    aggregated: bool = True
    solver: FlowSolver | Literal["kept"] = "ortools"

    @property
    def keeps_state(self) -> str:
        """State that the solver "kept" stores between passes."""
        return "residual graphs: among tied optima, another may be chosen" if self.solver == "kept" else ""

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for jobs that request something that the machine lacks, or are pinned to something but a node."""
        self.open(machine, 0).shapes.check(jobs)

    def open(self, machine: Machine, seed: int) -> FlowDispatcher:
        """Start a run; raise InputError for a machine without shared nodes."""
        return self.reading(machine, Requests())

    def reading(self, machine: Machine, requests: Requests) -> FlowDispatcher:
        """Start a run that reads requests other than those of the job table; see `open`."""
        cost: CostModel = registry.make("costs", self.costs, **self.settings)
        layout = FlowLayout.of(machine, self.kinds)
        shapes = ShapeTable(layout, requests)
        flows: dict[str, NamedFlow] = {}
        if self.solver == "kept":
            from poolwise.optimize.min_cost_flow.named import NamedFlow  # compiles kernels, which other solvers do not need

            flows = {phase: NamedFlow() for phase in (NODES, *layout.kinds)}
        solver: FlowSolver = "ortools" if self.solver == "kept" else self.solver
        options = Options(cost, self.pooled, self.local_first, self.aggregated, solver, self.solve_again)
        return FlowDispatcher(self, options, layout, shapes, IdleMachine(shapes, self.pooled), flows)


@register("schedulers", "firmament")
@dataclass(frozen=True)
class Firmament(FlowScheduler):
    """Flow scheduling without disaggregation: one phase, in which a node must have cores, memory and devices."""

    __repr__ = short_repr

    costs: str = "cpu_mem"
    pooled: bool = False


@dataclass
class FlowDispatcher(Dispatcher):
    """State of a run; everything except the settings can be rebuilt.

    It caches data on the machine, on classes of jobs and on runs, and with the solver "kept" the residual graph of each phase.
    """

    scheduler: FlowScheduler
    options: Options
    layout: FlowLayout
    shapes: ShapeTable
    idle: IdleMachine
    kept: Mapping[str, NamedFlow]
    clock: Clock = field(default_factory=Clock)
    _sent: dict[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)  # run -> (link, MB/s) of its traffic

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Decisions:
        """Run a round if one is due."""
        if not len(queue):
            return Decisions()
        wake = Rounds(self.scheduler.every_s).after(snapshot.now)
        if not self._due(snapshot):
            return Decisions((), wake, dict.fromkeys(changes.explain, BETWEEN))
        begun, solver = time.process_time(), self.clock.solver_s
        never = self.idle.refusals(queue, snapshot)
        unfit: list[Decision] = [
            Wait(job, refusal) if snapshot.may_grow else Reject(job, refusal.reason) for job, refusal in never.items()
        ]
        if never:
            queue = queue.only(np.setdiff1d(queue.jobs, list(never)))
        admission = self._admission(queue, snapshot)
        decisions = Decisions((*unfit, *self._round(queue, snapshot, admission)), wake)
        self.clock.rounds.append((time.process_time() - begun, self.clock.solver_s - solver))
        left = [job for job in changes.explain if job in queue and all(start.job != job for start in decisions.starts)]
        decisions = replace(decisions, reasons={job: self._reason(job, queue, snapshot, decisions, admission) for job in left})
        return (
            decisions
            if len(decisions.starts) + len(decisions.rejected) < len(queue) + len(never)
            else replace(decisions, next_wakeup=None)
        )

    def _reason(self, job: int, queue: Queue, snapshot: Snapshot, decisions: Decisions, admission: _Admission) -> Reason:
        """Return the step of a round that left the job waiting: admission, patience of older jobs, or placement."""
        jobs, (demand, free, admitted, patient) = queue.jobs, admission
        k = int(np.flatnonzero(jobs == job)[0])
        ahead = int(np.count_nonzero(~np.isin(jobs[:k], [start.job for start in decisions.starts])))

        def shortfall(row: int) -> Refusal:
            left = free - demand[:row][admitted[:row]].sum(axis=0)
            worst = int(np.argmax(demand[row] - left))
            text = f"not enough free {self.layout.resources[worst]} beyond the demand of older admitted jobs"
            return Refusal(text, self.layout.resources[worst], int(demand[row, worst]), int(left[worst]))

        if not admitted[k] and (short := shortfall(k)).needed > short.free:
            return Reason.of(WaitCause.SHORT, short.reason, short, ahead=ahead)
        blocking = np.flatnonzero(~admitted[:k] & (patient[:k] | (self.scheduler.admission == "prefix")))
        if len(blocking):
            first = int(blocking[0])
            text = f"no job may pass an older job that has {shortfall(first).reason}"
            blocker = int(jobs[first])
            return Reason.of(WaitCause.ORDER, text, shortfall(first), blocker=blocker, ahead=ahead, blocker_needs=True)
        amounts = self.layout.amounts(snapshot.with_starts(decisions.starts).free)
        shape = self.shapes.of(queue.table, jobs[k : k + 1])
        refused = shortage(self.shapes, shape, len(queue.tasks(job)), amounts, pooled=self.options.pooled)
        if refused is not None:
            return Reason.of(WaitCause.SHORT, refused.reason, refused, ahead=ahead)
        refusal = decisions.waits.get(job)
        return Reason(WaitCause.POSTPONED, refusal.reason if refusal else "it fits, but the flow left it waiting", ahead=ahead)

    def _due(self, snapshot: Snapshot) -> bool:
        """Return whether a round is due."""
        ended = self.scheduler.at_ends and snapshot.freed_at == snapshot.now
        return ended or Rounds(self.scheduler.every_s).due(snapshot.now)

    def _admission(self, queue: Queue, snapshot: Snapshot) -> _Admission:
        """Admit waiting jobs to a round."""
        free = self.layout.amounts(snapshot.free).sum(axis=0)
        demand = self.shapes.demand(self.shapes.of(queue.table, queue.jobs)) * queue.waiting()[:, None]
        patient: BoolArray = snapshot.now - queue.table.submit[queue.jobs] >= self.scheduler.patience_s * SECOND
        return demand, free, admit(demand, free, self.scheduler.admission), patient

    def _round(self, queue: Queue, snapshot: Snapshot, admission: _Admission) -> list[Decision]:
        """Start the jobs that the phases place, and state why other admitted jobs wait."""
        _, _, admitted, patient = admission
        admitted = admitted & np.logical_and.accumulate(
            admitted | ~patient
        )  # no job passes a patient job that was not admitted
        if not admitted.any():
            return []
        state = self.state(queue.only(queue.jobs[admitted]), snapshot)
        return self._decide(state, int(np.count_nonzero(patient[admitted])))

    def _decide(self, state: Round, patient: int) -> list[Decision]:
        """Start the jobs that the phases place; no job overtakes the first `patient` jobs.

        If one of these cannot start, the phases run again without all younger jobs.
        """
        tried = np.arange(len(state.jobs))
        while True:
            outcome, withdrawn = solve_gangs(state, tried)
            left = np.flatnonzero(~outcome.whole[:patient])
            if not len(left) or not outcome.whole[left[0] :].any():
                break
            tried = tried[tried <= left[0]]
        waiting = np.flatnonzero(~outcome.whole)
        hopeless = self._hopeless(state, waiting)
        waits = [
            Wait(int(state.jobs[k]), _refusal(bool(withdrawn[k]), alone, k > tried[-1]))
            for k, alone in zip(waiting.tolist(), hopeless.tolist(), strict=True)
        ]
        return [*starts(state, outcome), *waits]

    def _hopeless(self, state: Round, jobs: IntArray) -> BoolArray:
        """Return a mask of the jobs, (k,), that would miss their goal even on the idle machine."""
        shapes = state.of[jobs]
        return self.options.cost.hopeless(state.asking(shapes, self.layout.resources, state.shapes.demand[shapes]))

    def state(self, queue: Queue, snapshot: Snapshot) -> Round:
        """Collect the input of the phases, for all jobs of a queue."""
        layout, looks = self.layout, self.options.cost.looks_at
        tasks = queue.waiting()
        shapes, of = self.shapes.live(self.shapes.of(queue.table, queue.jobs), tasks)
        local = self.idle.local(shapes.number, shapes.tasks, snapshot)
        return Round(
            layout,
            shapes,
            of,
            self.options,
            self.clock,
            queue.jobs,
            tuple(queue.tasks(job) for job in queue.jobs.tolist()),
            tasks,
            queue.passes(),
            queue.waited_s(snapshot.now),
            layout.amounts(snapshot.free),
            {kind: layout.free_devices(snapshot.free, kind) for kind in layout.kinds},
            self._load(snapshot) if "load" in looks else np.zeros(layout.n_spot),
            self._running(snapshot) if "running" in looks else np.zeros(layout.n_spot, dtype=np.int64),
            local & (self.options.local_first or not self.options.pooled),
            self.kept,
        )

    def _load(self, snapshot: Snapshot) -> FloatArray:
        """Return the load of each spot's link, (n_spot,): requested traffic of running jobs, or measured traffic if higher."""
        machine, access = self.layout.machine, access_links(self.layout.machine)
        requested = snapshot.table.request("bandwidth")
        used = np.zeros(machine.n_owner)
        sent_by_run: dict[int, tuple[tuple[int, float], ...]] = {}
        for run in snapshot.runs():
            sent = self._sent.get(run.id)
            if sent is None:
                site = sites(run.placement, machine)
                sent = tuple(
                    (link, share * int(requested[run.job])) for link, share in zip(site.links, site.shares, strict=True)
                )
            sent_by_run[run.id] = sent
            for link, amount in sent:
                used[link] += amount
        self._sent = sent_by_run
        if "bandwidth" not in machine.resources:
            return np.zeros(self.layout.n_spot)
        if snapshot.traffic is not None:
            used = np.maximum(used, snapshot.traffic)
        each = link_loads(used, snapshot.capacity[:, machine.resource("bandwidth")].astype(np.float64))
        owners = self.layout.spot_owners
        return np.where(access[owners] >= 0, each[access[owners]], 0.0)

    def _running(self, snapshot: Snapshot) -> IntArray:
        """Return the number of running tasks at each spot, (n_spot,)."""
        count = np.zeros(self.layout.machine.n_owner, dtype=np.int64)
        for run in snapshot.runs():
            here = np.unique(np.stack([run.placement.owner, run.placement.task]), axis=1)
            np.add.at(count, here[0], 1)
        values = np.zeros(self.layout.n_spot, dtype=np.int64)
        values[: len(self.layout.nodes)] = count[self.layout.nodes]
        return values


def _refusal(withdrawn: bool, hopeless: bool, overtaking: bool) -> Refusal:
    """Return the reason why an admitted job waits."""
    if overtaking:
        return Refusal("an older job has waited so long that nothing may overtake it")
    if withdrawn:
        return Refusal("only a part of its tasks could be placed")
    if hopeless:
        return Refusal("its goal would be missed even on the idle machine, and its cheapest place is occupied")
    return Refusal("no suitable place is free: there is no room, or its goal would be missed at the current load")
