"""The first phase: tasks are placed on machines, by processor and memory (and devices that are free beside them).

Several resources are no flow: an arc leads only to machines where the task fits on every resource, its capacity is how many
fit there; what does not fit together is found when machines are given out, and tried again. Source: specs of the flow
placement, "Graph per phase".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.policies.cost.model import Places
from poolwise.schedulers.flow.classes import merged, rank_within
from poolwise.schedulers.flow.flow_layout import room
from poolwise.schedulers.flow.graph import Arcs, Graph
from poolwise.schedulers.flow.round import Round
from poolwise.schedulers.flow.shapes import ANYWHERE

MOST_ROUNDS = 8
NODES = "nodes"
"""Name of the first phase; the others have that of their kind of device."""


@dataclass(frozen=True, eq=False)
class NodeOffer:
    """A way to place a task on a machine: with devices beside the task, with devices elsewhere, or whatever the devices.

    Attributes
    ----------
    demand : (n_class, n_resource + n_kind) what one task takes there
    allowed : (n_class,) classes to which it is open
    preferred, remote : see `Places`
    """

    demand: IntArray
    allowed: BoolArray
    preferred: bool
    remote: bool


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """The graph of the phase and what its parts stand for.

    Attributes
    ----------
    shapes : (n_class,) shape of each class of tasks
    group : (n_task,) group of each task
    place_of : (n_node,) machine class of each node
    offers : ways to place a task on a machine
    offer, place : (n_arc,) of each arc from a class: offer and machine class
    """

    graph: Graph
    shapes: IntArray
    group: IntArray
    place_of: IntArray
    offers: tuple[NodeOffer, ...]
    offer: IntArray
    place: IntArray


def place_on_nodes(state: Round, job: IntArray) -> IntArray:
    """Place tasks on nodes.

    Parameters
    ----------
    job
        (n_task,) the job of each task, a position in the round's jobs, ascending.

    Returns
    -------
    (n_task,) position of a node, -1 where the task waits. What is placed fits.
    """
    node = np.full(len(job), -1, dtype=np.int64)
    if not len(job):
        return node
    free = state.free[: len(state.layout.nodes)].copy()
    for _ in range(MOST_ROUNDS):
        pending = np.flatnonzero(node < 0)
        if not len(pending):
            break
        found, evicted = _solve(state, job[pending], free)
        node[pending] = found
        if not evicted:
            break
    return node


def _solve(state: Round, job: IntArray, free: IntArray) -> tuple[IntArray, int]:
    """(n_task,) nodes of pending tasks, -1 without; takes them off `free`. And how many the flow placed that did not fit."""
    built = node_graph(state, job, free)
    answer = built.graph.solve(state.options.solver, state.clock, state.kept.get(NODES))
    placed = rank_within(built.group) < (built.graph.supply - answer.waiting)[built.group]
    node = np.full(len(job), -1, dtype=np.int64)
    task_class = built.graph.group_class[built.group]
    for k, nodes in _give_out(built, answer.through, free).items():
        tasks = np.flatnonzero(placed & (task_class == k))
        node[tasks[: len(nodes)]] = nodes
    return node, int(np.count_nonzero(placed) - np.count_nonzero(node >= 0))


def node_graph(state: Round, job: IntArray, free: IntArray) -> NodeGraph:
    """Build the graph for tasks (n_task,) of jobs on nodes with (n_node, n_resource + n_kind) free."""
    shapes, task_class = np.unique(state.of[job], return_inverse=True)
    many = np.bincount(task_class, minlength=len(shapes))
    demand = state.shapes.demand[shapes]
    offers = _offers(state, demand)
    columns = _columns(state, shapes, demand, free)
    place_of, first = merged(*columns)
    count = np.bincount(place_of, minlength=len(first))
    pinned = state.shapes.pinned[shapes]
    reach = (pinned[:, None] == ANYWHERE) | (place_of[pinned][:, None] == np.arange(len(first)))
    places, arcs, offer = _Places(len(first)), [], []
    for k, way in enumerate(offers):
        fit = np.where(reach & way.allowed[:, None], room(free[first], way.demand, len(job)), 0)
        cost = _cost(state, shapes, way, first, free, min(int(fit.max(initial=0)), int(many.max())))
        base = places.add(fit.max(axis=0, initial=0) * count, part=way.preferred)
        arcs.append(_arcs(fit, cost, count, many, base))
        offer.append(np.full(len(arcs[-1]), k))
    through = Arcs.joined(arcs)
    dearest = np.zeros(len(shapes))
    np.maximum.at(dearest, through.tail, through.cost)
    wait = state.waiting(job, dearest[task_class], len(job))
    group, leader = state.groups(job, wait, task_class)
    supply = np.bincount(group, minlength=len(leader))
    capacity, drain = places.columns()
    same = [column[first] for column in columns]
    parts = [same] * (len(capacity) // max(len(first), 1))
    names = state.names([state.jobs[job[leader]]], state.shapes.names(shapes), parts)
    graph = Graph(supply, task_class[leader], wait[leader], len(shapes), capacity, drain, Arcs.none(), through, names)
    return NodeGraph(graph, shapes, group, place_of, offers, np.concatenate(offer), through.place % max(len(first), 1))


@dataclass
class _Places:
    """Machine classes, and below them a part of each for every offer that is preferred: what has devices beside it."""

    n: int
    capacity: list[IntArray] = field(default_factory=list)

    def add(self, capacity: IntArray, *, part: bool) -> int:
        """Add places that take (n,) tasks by an offer; returns the number of the first place that its arcs lead to."""
        if not self.capacity:
            self.capacity.append(np.zeros(self.n, dtype=np.int64))
        self.capacity[0] = np.maximum(self.capacity[0], capacity)
        if part:
            self.capacity.append(capacity)
        return self.n * (len(self.capacity) - 1) if part else 0

    def columns(self) -> tuple[IntArray, IntArray]:
        """(n_place,) capacity of each place and what it drains into."""
        parts = len(self.capacity) - 1
        drain = np.concatenate([np.full(self.n, -1), np.tile(np.arange(self.n), parts)])
        return np.concatenate(self.capacity), drain.astype(np.int64)


def _arcs(fit: IntArray, cost: FloatArray, count: IntArray, many: IntArray, base: int) -> Arcs:
    """Arcs of an offer: one for each class and machine class, or one for each copy where copies differ in cost.

    Parameters
    ----------
    fit
        (n_class, n_place) tasks that fit on one machine.
    cost
        (n_class, n_place, 1 or copies).
    count, many
        (n_place,) machines and (n_class,) tasks.
    base
        Number of the first place.
    """
    copies = cost.shape[2]
    each = fit[:, :, None] if copies == 1 else fit[:, :, None] > np.arange(copies)
    row, column, copy = np.nonzero((each > 0) & np.isfinite(cost))
    most = np.minimum(each[row, column, copy] * count[column], many[row])
    return Arcs(row, base + column, most, cost[row, column, copy])


def _offers(state: Round, demand: IntArray) -> tuple[NodeOffer, ...]:
    """Ways to place tasks on a machine for classes that ask for (n_class, n_resource + n_kind)."""
    n = len(state.layout.columns)
    asks: BoolArray = np.any(demand[:, n:], axis=1)
    everyone = np.ones(len(demand), dtype=np.bool_)
    if not state.options.pooled:
        return (NodeOffer(demand, everyone, False, False),)
    without = demand.copy()
    without[:, n:] = 0
    if not state.options.local_first:
        return (NodeOffer(without, everyone, False, False),)
    ways = (
        NodeOffer(demand, asks, True, False),
        NodeOffer(without, asks, False, True),
        NodeOffer(without, np.logical_not(asks), False, False),
    )
    return tuple(way for way in ways if way.allowed.any())


def _columns(state: Round, shapes: IntArray, demand: IntArray, free: IntArray) -> list[NDArray[np.generic]]:
    """Columns (n_node,) in which nodes must be equal to be merged."""
    n = len(free)
    columns: list[NDArray[np.generic]] = [np.zeros(n, dtype=np.int64) if state.options.aggregated else np.arange(n)]
    if not state.options.aggregated:
        return columns
    asked = np.flatnonzero(demand.any(axis=0))
    capacity = state.layout.machine.capacity[np.ix_(state.layout.nodes, state.layout.columns)]
    columns += [free[:, k] for k in asked.tolist()]
    columns += [capacity[:, k] for k in asked.tolist() if k < capacity.shape[1]]
    pinned = state.shapes.pinned[shapes]
    if (pinned >= 0).any():
        mark = np.zeros(n, dtype=np.int64)
        mark[pinned[pinned >= 0]] = pinned[pinned >= 0] + 1
        columns.append(mark)
    looks = state.options.cost.looks_at
    if "load" in looks:
        columns.append(state.load[:n])
    if "running" in looks:
        columns.append(state.running[:n])
    if "position" in looks:
        columns += list(state.layout.position().T)
    return columns


def _cost(state: Round, shapes: IntArray, offer: NodeOffer, first: IntArray, free: IntArray, copies: int) -> FloatArray:
    """(n_class, n_place, 1 or copies) cost of an offer on the machines that stand for their class."""
    layout = state.layout
    capacity = layout.machine.capacity[np.ix_(layout.nodes[first], layout.columns)]
    devices = np.zeros((len(first), len(layout.kinds)), dtype=np.int64)
    for k, kind in enumerate(layout.kinds):
        devices[:, k] = np.bincount(layout.spot[kind], minlength=layout.n_spot)[first]
    places = Places(
        free[first],
        np.concatenate([capacity, devices], axis=1),
        state.running[first],
        state.load[first],
        layout.position()[first],
        offer.preferred,
        offer.remote,
    )
    return state.options.cost.placing(state.asking(shapes, layout.resources, offer.demand), places, max(copies, 1))


def _give_out(built: NodeGraph, flow: IntArray, free: IntArray) -> dict[int, IntArray]:
    """Class -> nodes of its tasks, evenly over the nodes of a machine class, large tasks first; takes them off `free`."""
    arcs = np.flatnonzero(flow)
    size = (built.offers[0].demand / np.maximum(free.max(axis=0, initial=1), 1)).max(axis=1)
    tail = built.graph.through.tail
    key = np.lexsort((built.place[arcs], built.offer[arcs], tail[arcs], -size[tail[arcs]]))
    order = np.argsort(built.place_of, kind="stable")
    bounds = np.searchsorted(built.place_of[order], np.arange(int(built.place_of.max(initial=-1)) + 2))
    wanted: dict[tuple[int, int, int], int] = {}
    for arc in arcs[key].tolist():
        where = int(tail[arc]), int(built.offer[arc]), int(built.place[arc])
        wanted[where] = wanted.get(where, 0) + int(flow[arc])
    used = np.zeros(len(free), dtype=np.int64)
    found: dict[int, list[IntArray]] = {}
    for (k, offer, place), tasks in wanted.items():
        members = order[bounds[place] : bounds[place + 1]]
        members = members[np.argsort(used[members], kind="stable")]
        demand = built.offers[offer].demand[k]
        give = _evenly(room(free[members], demand[None], tasks)[0], tasks)
        free[members] -= give[:, None] * demand
        used[members] += give
        found.setdefault(k, []).append(np.repeat(members, give))
    return {k: np.concatenate(nodes) for k, nodes in found.items()}


def _evenly(room: IntArray, tasks: int) -> IntArray:
    """(n,) tasks that each of (n,) nodes gets, as evenly as their room allows, the first ones first."""
    give = np.zeros_like(room)
    left = min(tasks, int(room.sum()))
    while left:
        open_ = np.flatnonzero(give < room)
        each = left // len(open_)
        if each == 0:
            give[open_[:left]] += 1
            break
        more = np.minimum(each, room[open_] - give[open_])
        give[open_] += more
        left -= int(more.sum())
    return give
