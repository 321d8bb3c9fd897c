"""Which rule held a waiting job back where jobs share nodes: flow and greedy scheduling, batches."""

from __future__ import annotations

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import PolicyError
from poolwise.explain.seen import Pass, started
from poolwise.model import JobTable, Machine, Refusal, Start, Wait
from poolwise.model.reason import Reason, Rule
from poolwise.schedulers.batch import BatchDispatcher, BatchScheduler
from poolwise.schedulers.flow.admission import admit
from poolwise.schedulers.flow.layout import FlowLayout, room
from poolwise.schedulers.flow.scheduler import FlowScheduler
from poolwise.schedulers.flow.shapes import Requests, ShapeTable
from poolwise.schedulers.rounds import Rounds
from poolwise.units import SECOND

_BETWEEN = Reason(Rule.ROUND, "the scheduler plans at the next round")


def flow(scheduler: FlowScheduler, job: int, seen: Pass) -> Reason:
    """Say at which step of a round of flow scheduling a job was left: let in, not overtaken, placed (see `FlowScheduler`)."""
    now, workload = seen.snapshot.now, seen.snapshot.table
    if not (Rounds(scheduler.every_s).due(now) or seen.changes.ended or seen.changes.capacity):
        return _BETWEEN
    layout, shapes = _read(seen.snapshot.machine, scheduler.kinds)
    queue = seen.queue.only(np.setdiff1d(seen.queue.jobs, seen.rejected))
    jobs = queue.jobs
    demand = shapes.demand(shapes.of(workload, jobs)) * queue.waiting()[:, None]
    free = layout.amounts(seen.snapshot.free).sum(axis=0)
    let_in = admit(demand, free, scheduler.admission)
    k = int(np.flatnonzero(jobs == job)[0])
    ahead = _waiting(jobs[:k], seen)

    def lack(row: int) -> Refusal:
        left = free - demand[:row][let_in[:row]].sum(axis=0)
        worst = int(np.argmax(demand[row] - left))
        text = f"not enough free {layout.resources[worst]} beside the older jobs that were let in"
        return Refusal(text, layout.resources[worst], int(demand[row, worst]), int(left[worst]))

    if not let_in[k] and bool((demand[k] > free - demand[:k][let_in[:k]].sum(axis=0)).any()):
        return Reason.of(Rule.SHORT, lack(k).reason, lack(k), ahead=ahead)
    patient = now - workload.submit[jobs] >= scheduler.patience_s * SECOND
    in_the_way = np.flatnonzero(~let_in[:k] & (patient[:k] | (scheduler.admission == "prefix")))
    if len(in_the_way):
        first = int(in_the_way[0])
        text = f"nothing may pass an older job that has {lack(first).reason}"
        return Reason.of(Rule.ORDER, text, lack(first), blocker=int(jobs[first]), ahead=ahead)
    amounts = layout.amounts(started(seen.snapshot, seen.starts).free)
    found = shortage(*_shape(job, workload, shapes), len(seen.queue.tasks(job)), amounts, layout, pooled=scheduler.pooled)
    if found is not None:
        return Reason.of(Rule.SHORT, found.reason, found, ahead=ahead)
    said = next((d.refusal.reason for d in seen.plan.decisions if isinstance(d, Wait) and d.job == job), "")
    return Reason(Rule.POSTPONED, said or "there is room, but the flow left it waiting", ahead=ahead)


def greedy(job: int, seen: Pass, *, pooled: bool) -> Reason:
    """Say what was short when the turn of a job came, oldest first.

    Raises PolicyError if nothing was.
    """
    layout, shapes = _read(seen.snapshot.machine, ())
    jobs = seen.queue.jobs.tolist()
    older = jobs[: jobs.index(job)]
    before = [start for start in seen.starts if start.job in set(older)]
    amounts = layout.amounts(started(seen.snapshot, before).free)
    found = shortage(*_shape(job, seen.snapshot.table, shapes), len(seen.queue.tasks(job)), amounts, layout, pooled=pooled)
    if found is None:
        name = int(seen.snapshot.table.id[job])
        raise PolicyError(f"job {name} was left waiting at {seen.snapshot.now} ns, although there was room for it")
    return Reason.of(Rule.SHORT, found.reason, found, ahead=_waiting(np.setdiff1d(older, seen.rejected), seen))


def batch(scheduler: BatchScheduler, job: int, seen: Pass) -> Reason:
    """Say what a job lacks on what a plan has left; a plan that leaves room may still have left it out."""
    if not Rounds(scheduler.every_s).due(seen.snapshot.now):
        return _BETWEEN
    dispatcher = scheduler.open(seen.snapshot.machine, 0)
    assert isinstance(dispatcher, BatchDispatcher)  # what a batch scheduler opens
    state = started(seen.snapshot, seen.starts)
    problem = dispatcher.problem(np.array([job], dtype=np.int64), state, state.free)
    groups, cores, memory = problem.groups, int(problem.batch.cores[0]), float(problem.batch.memory[0])
    fast: BoolArray = ~np.isnan(problem.least[0])
    where = " that is fast enough" if not fast.all() else ""
    most = int(groups.free_cores[fast].max(initial=0))
    if cores > most:
        short = Refusal(f"no node{where} has enough free cores", "cores", cores, most)
        return Reason.of(Rule.SHORT, short.reason, short)
    wide = fast & (groups.free_cores >= cores)
    least = np.ceil(problem.least[0, wide] * memory).astype(np.int64)
    if not problem.allowed[0].any():
        near = int(np.argmin(least - groups.memory[wide]))
        short = Refusal(
            "too little free memory in the nodes to keep its slowdown within what it accepts",
            "memory",
            int(least[near]),
            int(groups.memory[wide][near]),
        )
        return Reason.of(Rule.SHORT, short.reason, short)
    reach = int(groups.memory[problem.allowed[0]].max() + problem.remote)
    if memory > reach:
        short = Refusal("not enough free memory in a node and the pool together", "memory", int(memory), reach)
        return Reason.of(Rule.SHORT, short.reason, short)
    return Reason(Rule.POSTPONED, "there is room for it alone, but the plan left it out")


def shortage(
    demand: IntArray, pinned: int, tasks: int, amounts: IntArray, layout: FlowLayout, *, pooled: bool
) -> Refusal | None:
    """Find what tasks that ask for (n_resource,) each lack in (n_spot, n_resource) amounts; None where all of them find room.

    A resource in total, then a resource of nodes that is there but in pieces too small, then several on one node.
    """
    n = len(layout.columns)
    nodes = amounts[: len(layout.nodes)] if pinned < 0 else amounts[[pinned]]
    for k in np.flatnonzero(demand).tolist():
        name, asked = layout.resources[k], int(demand[k])
        there = amounts[:, k] if pooled and k >= n else nodes[:, k]
        if asked * tasks > (total := int(there.sum())):
            return Refusal(f"not enough free {name}", name, asked * tasks, total)
        if pooled and k >= n:
            continue
        if asked > (most := int(there.max())):
            return Refusal(f"no node has enough free {name}", name, asked, most)
        if tasks > (fit := int((there // asked).sum())):
            return Refusal(f"free {name} of the nodes in pieces too small for all its tasks", name, asked * tasks, asked * fit)
    on_nodes = np.where(np.arange(len(demand)) < n, demand, 0) if pooled else demand
    if int(room(nodes, on_nodes[None], tasks).sum()) < tasks:
        return Refusal("each resource is there, but not enough of them on the same nodes")
    return None


def _waiting(older: IntArray, seen: Pass) -> int:
    """How many older jobs a pass left waiting."""
    settled = {d.job for d in seen.plan.decisions if isinstance(d, Start)}
    return sum(row not in settled for row in older.tolist())


def _shape(job: int, table: JobTable, shapes: ShapeTable) -> tuple[IntArray, int]:
    """(n_resource,) what one task of a job asks for, and the node that it is pinned to."""
    number = shapes.of(table, np.array([job]))
    return shapes.demand(number)[0], int(shapes.pinned(number)[0])


def _read(machine: Machine, kinds: tuple[str, ...]) -> tuple[FlowLayout, ShapeTable]:
    layout = FlowLayout.of(machine, kinds)
    return layout, ShapeTable(layout, Requests())
