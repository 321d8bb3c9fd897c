"""The flow scheduler: admission, phases, gangs, starts.

Source: Amaral et al., DRMaestro, Algorithms 1 and 2; specs of the flow placement.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from poolwise import registry
from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.interfaces import Dispatcher, Scheduler
from poolwise.model import (
    Changes,
    Decision,
    JobTable,
    Machine,
    Plan,
    Queue,
    Reason,
    Refusal,
    Reject,
    Rule,
    Snapshot,
    Start,
    Wait,
)
from poolwise.optimize.min_cost_flow import FlowSolver
from poolwise.performance.link_load import access_links, link_loads, sites
from poolwise.policies.cost.model import CostModel
from poolwise.registry import register
from poolwise.schedulers.flow.admission import Admission, admit
from poolwise.schedulers.flow.flow_layout import FlowLayout
from poolwise.schedulers.flow.graph import Clock
from poolwise.schedulers.flow.idle import IdleMachine
from poolwise.schedulers.flow.node_phase import NODES
from poolwise.schedulers.flow.phases import solve_gangs, starts
from poolwise.schedulers.flow.round import Options, Round
from poolwise.schedulers.flow.shapes import Requests, ShapeTable
from poolwise.schedulers.flow.shortage import shortage
from poolwise.schedulers.rounds import BETWEEN, Rounds
from poolwise.units import SECOND

if TYPE_CHECKING:
    from poolwise.optimize.min_cost_flow.named import NamedFlow


@register("schedulers", "flow")
@dataclass(frozen=True)
class FlowScheduler(Scheduler):
    """Place waiting tasks on shared nodes, and devices of any node with them, at least cost.

    Jobs ask for what nodes have (cores, memory) and for devices by the name of their kind, each per task. A job starts whole
    or not at all; all its tasks are one run.

    Parameters
    ----------
    costs, settings
        Cost model by its name in the group "costs", and its settings.
    pooled
        Devices of any node may be given to a task; otherwise there is one phase, in which a node must have everything.
    kinds
        Kinds of devices in the order of their phases; all of the machine by name if not given.
    local_first
        The first phase prefers nodes with enough free devices of their own (False: the paper's, which does not look at them).
    every_s
        Seconds between rounds. 0: at every event.
    at_ends
        A round is also made whenever something ends, between those of `every_s`.
    admission
        What happens behind a job that does not fit what is free in total: see `admission.admit`.
    patience_s
        A job that has waited longer is not overtaken any more: no younger job starts before it.
    solve_again
        Where a job was placed in part, everything is solved again without it, so that others may complete with what it held
        (False: Algorithm 2 of the paper as printed, in which it waits for the next round; the same gangs may then stand in each
        other's way for ever).
    aggregated
        Merge tasks and machines that are alike (False: the same optimum on a much larger graph).
    solver
        Of the flow problems. "kept" is one of our own that goes on from the residual graph of the round before: the cost is
        the same, but where optima tie a dispatcher that ran for long may choose others than one freshly opened.
    """

    costs: str = "utility"
    settings: Mapping[str, Any] = field(default_factory=dict)
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
    def remembers(self) -> str:
        """The residual graphs of the solver "kept"."""
        return "residual graphs: where optima tie, another may be chosen" if self.solver == "kept" else ""

    def check(self, machine: Machine, jobs: JobTable) -> None:
        """Raise InputError for jobs that ask for what the machine does not have, or are pinned to no node of it."""
        self.open(machine, 0).shapes.check(jobs)

    def open(self, machine: Machine, seed: int) -> FlowDispatcher:
        """Begin a run. Raises InputError for a machine without shared nodes."""
        return self.reading(machine, Requests())

    def reading(self, machine: Machine, requests: Requests) -> FlowDispatcher:
        """Begin a run that reads other requests of jobs than those of the job table; see `open`."""
        cost: CostModel = registry.make("costs", self.costs, **self.settings)
        layout = FlowLayout.of(machine, self.kinds)
        shapes = ShapeTable(layout, requests)
        kept: dict[str, NamedFlow] = {}
        if self.solver == "kept":
            from poolwise.optimize.min_cost_flow.named import NamedFlow  # compiles kernels; the other solvers need none

            kept = {phase: NamedFlow() for phase in (NODES, *layout.kinds)}
        solver: FlowSolver = "ortools" if self.solver == "kept" else self.solver
        options = Options(cost, self.pooled, self.local_first, self.aggregated, solver, self.solve_again)
        return FlowDispatcher(self, options, layout, shapes, IdleMachine(shapes, self.pooled), kept)


@register("schedulers", "firmament")
@dataclass(frozen=True)
class Firmament(FlowScheduler):
    """Flow scheduling without disaggregation: one phase, a node must hold cores, memory and devices together."""

    costs: str = "cpu_mem"
    pooled: bool = False


@dataclass
class FlowDispatcher(Dispatcher):
    """A run of the scheduler. What it holds besides its settings can be rebuilt.

    It holds what is known of the machine, of classes of jobs and of runs, and with the solver "kept" the residual graph of
    each phase.
    """

    scheduler: FlowScheduler
    options: Options
    layout: FlowLayout
    shapes: ShapeTable
    idle: IdleMachine
    kept: Mapping[str, NamedFlow]
    clock: Clock = field(default_factory=Clock)
    _sent: dict[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)  # run -> (link, MB/s) that it sends

    def schedule(self, queue: Queue, snapshot: Snapshot, changes: Changes) -> Plan:
        """Make a round where it is time to."""
        if not len(queue):
            return Plan()
        wake = Rounds(self.scheduler.every_s).after(snapshot.now)
        if not self._due(snapshot):
            return Plan((), wake)
        begun, solver = time.process_time(), self.clock.solver_s
        never = self.idle.refusals(queue, snapshot)
        aside: list[Decision] = [
            Wait(job, refusal) if snapshot.may_grow else Reject(job, refusal.reason) for job, refusal in never.items()
        ]
        decisions = self._round(queue.only(np.setdiff1d(queue.jobs, list(never))) if never else queue, snapshot)
        self.clock.rounds.append((time.process_time() - begun, self.clock.solver_s - solver))
        settled = sum(isinstance(decision, Start | Reject) for decision in (*aside, *decisions))
        return Plan((*aside, *decisions), wake if settled < len(queue) else None)

    def why(self, job: int, queue: Queue, snapshot: Snapshot, plan: Plan) -> Reason:
        """Say at which step of a round a job was left: let in, not overtaken, placed (see `FlowScheduler`)."""
        if not self._due(snapshot):
            return BETWEEN
        never = self.idle.refusals(queue, snapshot)
        if job in never:
            return super().why(job, queue, snapshot, plan)
        queue = queue.only(np.setdiff1d(queue.jobs, list(never))) if never else queue
        jobs, (demand, free, let_in, patient) = queue.jobs, self._admission(queue, snapshot)
        k = int(np.flatnonzero(jobs == job)[0])
        ahead = int(np.count_nonzero(~np.isin(jobs[:k], [start.job for start in plan.starts])))

        def lack(row: int) -> Refusal:
            left = free - demand[:row][let_in[:row]].sum(axis=0)
            worst = int(np.argmax(demand[row] - left))
            text = f"not enough free {self.layout.resources[worst]} beside the older jobs that were let in"
            return Refusal(text, self.layout.resources[worst], int(demand[row, worst]), int(left[worst]))

        if not let_in[k] and (short := lack(k)).needed > short.free:
            return Reason.of(Rule.SHORT, short.reason, short, ahead=ahead)
        in_the_way = np.flatnonzero(~let_in[:k] & (patient[:k] | (self.scheduler.admission == "prefix")))
        if len(in_the_way):
            first = int(in_the_way[0])
            text = f"nothing may pass an older job that has {lack(first).reason}"
            return Reason.of(Rule.ORDER, text, lack(first), blocker=int(jobs[first]), ahead=ahead)
        amounts, shape = (
            self.layout.amounts(snapshot.with_starts(plan.starts).free),
            self.shapes.of(queue.table, jobs[k : k + 1]),
        )
        found = shortage(self.shapes, shape, len(queue.tasks(job)), amounts, pooled=self.options.pooled)
        if found is not None:
            return Reason.of(Rule.SHORT, found.reason, found, ahead=ahead)
        said = plan.waits.get(job)
        return Reason(Rule.POSTPONED, said.reason if said else "there is room, but the flow left it waiting", ahead=ahead)

    def _due(self, snapshot: Snapshot) -> bool:
        """Whether it is time for a round."""
        ended = self.scheduler.at_ends and snapshot.freed_at == snapshot.now
        return ended or Rounds(self.scheduler.every_s).due(snapshot.now)

    def _admission(self, queue: Queue, snapshot: Snapshot) -> tuple[IntArray, IntArray, BoolArray, BoolArray]:
        """What jobs ask for, (n_queued, n_resource), what is free of it, (n_resource,), who is let in, and who is patient."""
        free = self.layout.amounts(snapshot.free).sum(axis=0)
        demand = self.shapes.demand(self.shapes.of(queue.table, queue.jobs)) * queue.waiting()[:, None]
        patient: BoolArray = snapshot.now - queue.table.submit[queue.jobs] >= self.scheduler.patience_s * SECOND
        return demand, free, admit(demand, free, self.scheduler.admission), patient

    def _round(self, queue: Queue, snapshot: Snapshot) -> list[Decision]:
        """Start what the phases place, say why the others that were let in wait."""
        _, _, admitted, patient = self._admission(queue, snapshot)
        admitted &= np.logical_and.accumulate(admitted | ~patient)  # nothing passes a patient job that was not let in
        if not admitted.any():
            return []
        state = self.state(queue.only(queue.jobs[admitted]), snapshot)
        return self._decide(state, int(np.count_nonzero(patient[admitted])))

    def _decide(self, state: Round, patient: int) -> list[Decision]:
        """Start what the phases place; the first `patient` jobs are not overtaken.

        Where one of them is left, all younger ones are left too, and the others are tried again.
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
        """(k,) which of (k,) jobs would miss their goal on the idle machine too."""
        shapes = state.of[jobs]
        return self.options.cost.hopeless(state.asking(shapes, self.layout.resources, state.shapes.demand[shapes]))

    def state(self, queue: Queue, snapshot: Snapshot) -> Round:
        """Collect what the phases use, for all jobs of a queue."""
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
        """(n_spot,) load of the link of each spot: by what the runs at work ask for, or as it is measured if that is more."""
        machine, access = self.layout.machine, access_links(self.layout.machine)
        asks = snapshot.table.request("bandwidth")
        used = np.zeros(machine.n_owner)
        known: dict[int, tuple[tuple[int, float], ...]] = {}
        for run in snapshot.runs():
            sent = self._sent.get(run.id)
            if sent is None:
                site = sites(run.placement, machine)
                sent = tuple((link, share * int(asks[run.job])) for link, share in zip(site.links, site.shares, strict=True))
            known[run.id] = sent
            for link, amount in sent:
                used[link] += amount
        self._sent = known
        if "bandwidth" not in machine.resources:
            return np.zeros(self.layout.n_spot)
        if snapshot.traffic is not None:
            used = np.maximum(used, snapshot.traffic)
        each = link_loads(used, snapshot.capacity[:, machine.resource("bandwidth")].astype(np.float64))
        owners = self.layout.spot_owners
        return np.where(access[owners] >= 0, each[access[owners]], 0.0)

    def _running(self, snapshot: Snapshot) -> IntArray:
        """(n_spot,) tasks that run on each node."""
        count = np.zeros(self.layout.machine.n_owner, dtype=np.int64)
        for run in snapshot.runs():
            here = np.unique(np.stack([run.placement.owner, run.placement.task]), axis=1)
            np.add.at(count, here[0], 1)
        found = np.zeros(self.layout.n_spot, dtype=np.int64)
        found[: len(self.layout.nodes)] = count[self.layout.nodes]
        return found


def _refusal(withdrawn: bool, hopeless: bool, overtaking: bool) -> Refusal:
    """Why a job that was let in waits."""
    if overtaking:
        return Refusal("an older job has waited so long that nothing may overtake it")
    if withdrawn:
        return Refusal("only a part of it could be placed")
    if hopeless:
        return Refusal("its goal would be missed on the idle machine too, and its cheapest place is taken")
    return Refusal("no place that would do is free: there is no room, or its goal would be missed at the present load")
