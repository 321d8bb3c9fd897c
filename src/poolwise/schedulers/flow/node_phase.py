"""Node phase of flow scheduling: places tasks on machines by processors and memory (and by free local devices).

A flow cannot model several resources at once. An arc therefore leads only to machines on which the task fits with every
resource, and its capacity is the number of such tasks that fit. Tasks that do not fit together are detected when machines are
assigned; the flow is then solved again for them. Source: specs of the flow placement, "Graph per phase".
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
"""Name of the node phase; each device phase has the name of its kind of device."""


@dataclass(frozen=True, eq=False)
class NodeOffer:
    """A way to place a task on a machine: with devices on the machine, with devices elsewhere, or regardless of devices.

    Attributes
    ----------
    demand : (n_class, n_resource + n_kind) demand of one task on the machine
    allowed : (n_class,) True for classes that may use this offer
    preferred, remote : see `Places`
    """

    demand: IntArray
    allowed: BoolArray
    preferred: bool
    remote: bool


@dataclass(frozen=True, eq=False)
class NodeGraph:
    """Graph of the node phase, and the meaning of its parts.

    Attributes
    ----------
    shapes : (n_class,) shape of each class of tasks
    group : (n_task,) group of each task
    place_of : (n_node,) machine class of each node
    offers : ways to place a task on a machine
    offer, place : (n_arc,) offer and machine class of each arc from a class
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
        (n_task,) job of each task, as a position in the round's jobs, ascending.

    Returns
    -------
    (n_task,) node positions, -1 for waiting tasks. All placed tasks fit.
    """
    node = np.full(len(job), -1, dtype=np.int64)
    if not len(job):
        return node
    free = state.free[: len(state.layout.nodes)].copy()
    for _ in range(MOST_ROUNDS):
        pending = np.flatnonzero(node < 0)
        if not len(pending):
            break
        nodes, evicted = _solve(state, job[pending], free)
        node[pending] = nodes
        if not evicted:
            break
    return node


def _solve(state: Round, job: IntArray, free: IntArray) -> tuple[IntArray, int]:
    """Return the nodes of pending tasks, (n_task,), -1 for none, and the number that did not fit; updates `free`."""
    built = node_graph(state, job, free)
    answer = built.graph.solve(state.options.solver, state.clock, state.kept.get(NODES))
    placed = rank_within(built.group) < (built.graph.supply - answer.waiting)[built.group]
    node = np.full(len(job), -1, dtype=np.int64)
    task_class = built.graph.group_class[built.group]
    for k, nodes in _assign_nodes(built, answer.through, free).items():
        tasks = np.flatnonzero(placed & (task_class == k))
        node[tasks[: len(nodes)]] = nodes
    return node, int(np.count_nonzero(placed) - np.count_nonzero(node >= 0))


def node_graph(state: Round, job: IntArray, free: IntArray) -> NodeGraph:
    """Build the graph for tasks, (n_task,), of jobs on nodes with given free amounts, (n_node, n_resource + n_kind)."""
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
    """Machine classes and, for every preferred offer, a sub-place of each class: the machines with free local devices."""

    n: int
    capacity: list[IntArray] = field(default_factory=list)

    def add(self, capacity: IntArray, *, part: bool) -> int:
        """Add places for the tasks of an offer, (n,); return the number of the first place to which its arcs lead."""
        if not self.capacity:
            self.capacity.append(np.zeros(self.n, dtype=np.int64))
        self.capacity[0] = np.maximum(self.capacity[0], capacity)
        if part:
            self.capacity.append(capacity)
        return self.n * (len(self.capacity) - 1) if part else 0

    def columns(self) -> tuple[IntArray, IntArray]:
        """Return the capacity and drain of each place, (n_place,) each."""
        parts = len(self.capacity) - 1
        drain = np.concatenate([np.full(self.n, -1), np.tile(np.arange(self.n), parts)])
        return np.concatenate(self.capacity), drain.astype(np.int64)


def _arcs(fit: IntArray, cost: FloatArray, count: IntArray, many: IntArray, base: int) -> Arcs:
    """Return the arcs of an offer: one per class and machine class, or one per copy if copies differ in cost.

    Parameters
    ----------
    fit
        (n_class, n_place) number of tasks that fit on one machine.
    cost
        (n_class, n_place, 1 or copies) cost per task.
    count, many
        (n_place,) number of machines and (n_class,) number of tasks.
    base
        Number of the first place.
    """
    copies = cost.shape[2]
    each = fit[:, :, None] if copies == 1 else fit[:, :, None] > np.arange(copies)
    row, column, copy = np.nonzero((each > 0) & np.isfinite(cost))
    most = np.minimum(each[row, column, copy] * count[column], many[row])
    return Arcs(row, base + column, most, cost[row, column, copy])


def _offers(state: Round, demand: IntArray) -> tuple[NodeOffer, ...]:
    """Return the ways to place tasks on a machine, given each class's demand, (n_class, n_resource + n_kind)."""
    n = len(state.layout.columns)
    needs_devices: BoolArray = np.any(demand[:, n:], axis=1)
    every_class = np.ones(len(demand), dtype=np.bool_)
    if not state.options.pooled:
        return (NodeOffer(demand, every_class, False, False),)
    without = demand.copy()
    without[:, n:] = 0
    if not state.options.local_first:
        return (NodeOffer(without, every_class, False, False),)
    ways = (
        NodeOffer(demand, needs_devices, True, False),
        NodeOffer(without, needs_devices, False, True),
        NodeOffer(without, np.logical_not(needs_devices), False, False),
    )
    return tuple(way for way in ways if way.allowed.any())


def _columns(state: Round, shapes: IntArray, demand: IntArray, free: IntArray) -> list[NDArray[np.generic]]:
    """Return the columns, (n_node,) each, in which nodes must be equal to be merged."""
    n = len(free)
    columns: list[NDArray[np.generic]] = [np.zeros(n, dtype=np.int64) if state.options.aggregated else np.arange(n)]
    if not state.options.aggregated:
        return columns
    requested = np.flatnonzero(demand.any(axis=0))
    capacity = state.layout.machine.capacity[np.ix_(state.layout.nodes, state.layout.columns)]
    columns += [free[:, k] for k in requested.tolist()]
    columns += [capacity[:, k] for k in requested.tolist() if k < capacity.shape[1]]
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
    """Return the cost of an offer on the machine that represents each class, (n_class, n_place, 1 or copies)."""
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


def _assign_nodes(built: NodeGraph, flow: IntArray, free: IntArray) -> dict[int, IntArray]:
    """Return class -> nodes of its tasks, balanced over the nodes of a machine class, large tasks first; updates `free`."""
    arcs = np.flatnonzero(flow)
    size = (built.offers[0].demand / np.maximum(free.max(axis=0, initial=1), 1)).max(axis=1)
    tail = built.graph.through.tail
    key = np.lexsort((built.place[arcs], built.offer[arcs], tail[arcs], -size[tail[arcs]]))
    order = np.argsort(built.place_of, kind="stable")
    bounds = np.searchsorted(built.place_of[order], np.arange(int(built.place_of.max(initial=-1)) + 2))
    wanted: dict[tuple[int, int, int], int] = {}
    for arc in arcs[key].tolist():
        target = int(tail[arc]), int(built.offer[arc]), int(built.place[arc])
        wanted[target] = wanted.get(target, 0) + int(flow[arc])
    used = np.zeros(len(free), dtype=np.int64)
    nodes_of_class: dict[int, list[IntArray]] = {}
    for (k, offer, place), tasks in wanted.items():
        members = order[bounds[place] : bounds[place + 1]]
        members = members[np.argsort(used[members], kind="stable")]
        demand = built.offers[offer].demand[k]
        share = _evenly(room(free[members], demand[None], tasks)[0], tasks)
        free[members] -= share[:, None] * demand
        used[members] += share
        nodes_of_class.setdefault(k, []).append(np.repeat(members, share))
    return {k: np.concatenate(nodes) for k, nodes in nodes_of_class.items()}


def _evenly(room: IntArray, tasks: int) -> IntArray:
    """Return the number of tasks for each node, (n,), as balanced as their room allows; earlier nodes fill first."""
    share = np.zeros_like(room)
    left = min(tasks, int(room.sum()))
    while left:
        open_ = np.flatnonzero(share < room)
        each = left // len(open_)
        if each == 0:
            share[open_[:left]] += 1
            break
        more = np.minimum(each, room[open_] - share[open_])
        share[open_] += more
        left -= int(more.sum())
    return share
