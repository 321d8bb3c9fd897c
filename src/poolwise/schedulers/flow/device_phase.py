"""Device phases of flow scheduling, one per kind of device: each requested device is a separate sub-task.

A sub-task prefers devices of the node where the node phase placed its task, and may use any other device over the network.
Slots are units, so these phases are exact. Source: Amaral et al., DRMaestro, Figure 2b and 2c.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.policies.cost.model import Places
from poolwise.schedulers.flow.classes import merged, rank_within
from poolwise.schedulers.flow.graph import Arcs, Graph
from poolwise.schedulers.flow.round import Round


@dataclass(frozen=True, eq=False)
class DeviceGraph:
    """Graph of a device phase, and the meaning of its parts.

    Attributes
    ----------
    shapes, load : (n_class,) shape of each class of sub-tasks, and load of the links of their tasks' nodes
    group : (n_sub,) group of each sub-task
    spots : (n_spot_used,) spots with free devices
    place_of : (n_spot_used,) place (class of spots) of each spot
    """

    graph: Graph
    shapes: IntArray
    load: FloatArray
    group: IntArray
    spots: IntArray
    place_of: IntArray


def place_devices(state: Round, kind: str, job: IntArray, node: IntArray) -> IntArray:
    """Assign devices of a kind to the tasks that request them.

    Parameters
    ----------
    job, node
        (n_sub,) job and node of the task of each sub-task. There is one sub-task per device; those of a task are adjacent.

    Returns
    -------
    (n_sub,) owners, -1 for waiting sub-tasks.
    """
    owner = np.full(len(job), -1, dtype=np.int64)
    if not len(job):
        return owner
    if not state.options.pooled:
        return _at_home(state, kind, node)
    built = device_graph(state, kind, job, node)
    answer = built.graph.solve(state.options.solver, state.clock, state.kept.get(kind))
    rank = rank_within(built.group)
    placed = rank < (built.graph.supply - answer.waiting)[built.group]
    at_home = np.zeros(len(built.graph.supply), dtype=np.int64)
    at_home[built.graph.preference.tail] = answer.preference
    local = placed & (rank < at_home[built.group])
    stock = _stock(state, kind, built)
    home_place = np.zeros(len(at_home), dtype=np.int64)
    home_place[built.graph.preference.tail] = built.graph.preference.place
    taken = np.zeros(len(built.graph.capacity), dtype=np.int64)
    for group in np.flatnonzero(at_home).tolist():
        place, many = int(home_place[group]), int(at_home[group])
        owner[local & (built.group == group)] = stock[place][taken[place] : taken[place] + many]
        taken[place] += many
    sub_class = built.graph.group_class[built.group]
    through = built.graph.through
    pool: dict[int, list[IntArray]] = {}
    for arc in np.flatnonzero(answer.through).tolist():
        place, many = int(through.place[arc]), int(answer.through[arc])
        pool.setdefault(int(through.tail[arc]), []).append(stock[place][taken[place] : taken[place] + many])
        taken[place] += many
    for k, devices in pool.items():
        owner[placed & ~local & (sub_class == k)] = np.concatenate(devices)
    return owner


def device_graph(state: Round, kind: str, job: IntArray, node: IntArray) -> DeviceGraph:
    """Build the graph for sub-tasks (n_sub,) of placed tasks; see `place_devices`."""
    free = np.bincount(state.layout.spot[kind][state.free_devices[kind]], minlength=state.layout.n_spot)
    load = state.load if "load" in state.options.cost.looks_at else np.zeros_like(state.load)
    sub_class, leader = merged(state.of[job], load[node])
    shapes, home_load = state.of[job[leader]], load[node[leader]]
    home = np.where(free[node] > 0, node, -1)
    spots, columns = np.flatnonzero(free), _columns(state, home, free, load)
    place_of, first = merged(*columns)
    capacity = np.bincount(place_of, weights=free[spots], minlength=len(first)).astype(np.int64)
    local, remote = (_cost(state, kind, shapes, home_load, spots[first], free, preferred) for preferred in (True, False))
    row, column = np.nonzero(np.isfinite(remote) & (capacity > 0))
    through = Arcs(row, column, np.minimum(np.bincount(sub_class)[row], capacity[column]), remote[row, column])
    own = np.full(state.layout.n_spot, -1, dtype=np.int64)
    own[spots] = place_of
    own = np.where(home >= 0, own[home], -1)
    own_cost = np.full(len(job), np.inf)
    own_cost[own >= 0] = local[sub_class[own >= 0], own[own >= 0]]
    wait = state.waiting(job, _max_arc_cost(job, through, sub_class, own_cost), len(job))
    group, lead = state.groups(job, wait, sub_class, own)
    supply = np.bincount(group, minlength=len(lead))
    direct = np.flatnonzero(np.isfinite(own_cost[lead]))
    mine = own[lead[direct]]
    preference = Arcs(direct, mine, np.minimum(supply[direct], capacity[mine]), own_cost[lead[direct]])
    apart = [state.jobs[job[lead]], home[lead], load[node[lead]]]
    names = state.names(apart, [*state.shapes.names(shapes), home_load], [[values[first] for values in columns]])
    drain = np.full(len(capacity), -1, dtype=np.int64)
    graph = Graph(supply, sub_class[lead], wait[lead], len(shapes), capacity, drain, preference, through, names)
    return DeviceGraph(graph, shapes, home_load, group, spots, place_of)


def _columns(state: Round, home: IntArray, free: IntArray, load: FloatArray) -> list[NDArray[np.generic]]:
    """Return the columns in which spots with free devices must be equal to be merged; preferred spots are not merged."""
    spots = np.flatnonzero(free)
    apart = np.isin(spots, home) if state.options.aggregated else np.ones(len(spots), dtype=np.bool_)
    columns: list[NDArray[np.generic]] = [np.where(apart, spots, -1), load[spots]]
    if "running" in state.options.cost.looks_at:
        columns.append(state.running[spots])
    if "position" in state.options.cost.looks_at:
        columns += list(_positions(state)[spots].T)
    return columns


def _max_arc_cost(job: IntArray, through: Arcs, sub_class: IntArray, own_cost: FloatArray) -> FloatArray:
    """Return the highest arc cost among all sub-tasks of each sub-task's job, (n_sub,)."""
    of_class = np.zeros(int(sub_class.max()) + 1)
    np.maximum.at(of_class, through.tail, through.cost)
    of_job = np.zeros(int(job.max()) + 1)
    np.maximum.at(of_job, job, np.maximum(of_class[sub_class], np.where(np.isfinite(own_cost), own_cost, 0.0)))
    return of_job[job]


def _cost(
    state: Round, kind: str, shapes: IntArray, home_load: FloatArray, spots: IntArray, free: IntArray, preferred: bool
) -> FloatArray:
    """Return the cost of a device at a spot, on the task's node or over the network, (n_class, n_place)."""
    total = np.bincount(state.layout.spot[kind], minlength=state.layout.n_spot)
    places = Places(
        free[spots][:, None],
        total[spots][:, None],
        state.running[spots],
        state.load[spots],
        _positions(state)[spots],
        preferred,
        not preferred,
    )
    single_device = np.ones((len(shapes), 1), dtype=np.int64)
    return state.options.cost.placing(state.asking(shapes, (kind,), single_device, home_load), places, 1)[:, :, 0]


def _positions(state: Round) -> IntArray:
    """Return the positions of the spots, (n_spot, 2); -1 for locations outside nodes."""
    position = np.full((state.layout.n_spot, 2), -1, dtype=np.int64)
    position[: len(state.layout.nodes)] = state.layout.position()
    return position


def _stock(state: Round, kind: str, built: DeviceGraph) -> list[IntArray]:
    """Return the free devices of each place in assignment order: round-robin over its spots."""
    free: BoolArray = state.free_devices[kind]
    owners, spot = state.layout.owners[kind][free], state.layout.spot[kind][free]
    place_at = np.zeros(state.layout.n_spot, dtype=np.int64)
    place_at[built.spots] = built.place_of
    order = np.lexsort((spot, rank_within(spot), place_at[spot]))
    bounds = np.cumsum(built.graph.capacity)[:-1]
    return np.split(owners[order], bounds)


def _at_home(state: Round, kind: str, node: IntArray) -> IntArray:
    """Return the devices of the tasks' own nodes, (n_sub,); -1 where a node has too few."""
    free = state.free_devices[kind]
    owners, spot = state.layout.owners[kind][free], state.layout.spot[kind][free]
    order = np.argsort(spot, kind="stable")
    begin = np.searchsorted(spot[order], np.arange(state.layout.n_spot + 1))
    at = begin[node] + rank_within(node)
    owner = np.full(len(node), -1, dtype=np.int64)
    available = at < begin[node + 1]
    owner[available] = owners[order][at[available]]
    return owner
