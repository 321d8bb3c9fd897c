"""Minimum-cost flow at the size of scheduling rounds: merged and flat graphs, solved cold or kept between rounds.

Machines have a kind (their free resources), and waiting tasks a type. The cost of a task depends on its type and the machine's
kind, is halved on the preferred machine, and the cost of waiting grows with the wait. One problem, two graphs:

- flat: task -> type -> machine -> sink, task -> preferred machine, task -> sink (the task remains waiting);
- merged: tasks of one type and age form one class, and machines of one kind one node. A preferred machine has a separate node
  below its kind, and the tasks of a class that prefer it have one above their class.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.case import Figures, case, seconds
from poolwise.arrays import BoolArray, FloatArray, IntArray
from poolwise.optimize.min_cost_flow import Flow, FlowSolver, min_cost_flow, scaled
from poolwise.optimize.min_cost_flow.named import NamedFlow

TYPES = 8
AGES = 50
ANY = 1 << 30  # capacity of an unlimited arc

Arcs = tuple[IntArray, IntArray, IntArray, IntArray]
"""Tail, head, capacity, cost."""


@dataclass
class Cluster:
    """Machines, their free capacity, and the waiting tasks.

    Attributes
    ----------
    kind, free : (n_machine,) kind of a machine, tasks that it can take
    price : (TYPES, n_kind) cost of a task on a machine
    fits : (TYPES, n_kind)
    tasks : (n_task, 3) type, round of arrival, preferred machine or -1
    now : round
    """

    kind: IntArray
    free: IntArray
    price: FloatArray
    fits: BoolArray
    tasks: IntArray
    now: int = AGES

    def arrive(self, rng: np.random.Generator, tasks: int, preferring: float, ages: int = 1) -> None:
        """Add waiting tasks, a share of which prefers a machine."""
        liked = np.where(rng.random(tasks) < preferring, rng.integers(0, len(self.kind), tasks), -1)
        new = np.stack((rng.integers(0, TYPES, tasks), self.now - rng.integers(0, ages, tasks), liked), axis=1)
        self.tasks = np.concatenate((self.tasks, new))

    def waiting_cost(self, born: IntArray) -> IntArray:
        """Return the cost of not placing tasks, by their rounds of arrival."""
        return scaled(2.0 + self.now - born)

    def liked_cost(self, types: IntArray, machines: IntArray) -> IntArray:
        """Return the cost of tasks on their preferred machines."""
        return scaled(0.5 * self.price[types, self.kind[machines]])

    def start(self, placed: IntArray, places: IntArray) -> None:
        """Remove the first `placed` tasks of each row of `np.unique(tasks)`, and use `places` (n_machine,) of the machines."""
        _, of, count = np.unique(self.tasks, axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(of, kind="stable")
        rank = np.empty(len(of), dtype=np.int64)
        rank[order] = np.arange(len(of)) - (np.cumsum(count) - count)[of[order]]
        self.tasks = self.tasks[rank >= placed[of]]
        self.free = self.free - places


def draw(machines: int, tasks: int, kinds: int, preferring: float, most: int, seed: int = 1) -> Cluster:
    """Draw a cluster whose machines take up to `most` tasks each."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, kinds, machines)
    free = rng.integers(0, most + 1, kinds)[kind]
    cluster = Cluster(
        kind, free, rng.random((TYPES, kinds)), rng.random((TYPES, kinds)) < 0.8, np.empty((0, 3), dtype=np.int64)
    )
    cluster.arrive(rng, tasks, preferring, AGES)
    return cluster


def joined(groups: list[tuple[Any, Any, Any, Any]]) -> Arcs:
    """Return the arcs of all groups, with scalars of a group broadcast to its arcs."""
    tail, head, capacity, cost = (
        np.concatenate([np.broadcast_to(group[field], len(group[0])) for group in groups]) for field in range(4)
    )
    return tail, head, capacity, cost


def flat(cluster: Cluster) -> tuple[Arcs, IntArray]:
    """Return arcs and supplies of the graph with one node per task and machine."""
    n, m = len(cluster.tasks), len(cluster.kind)
    types, born, liked = cluster.tasks.T
    task, of_type, machine, sink = np.arange(n), n + np.arange(TYPES), n + TYPES + np.arange(m), n + TYPES + m
    t, k = np.nonzero(cluster.fits[:, cluster.kind])
    p = np.flatnonzero(liked >= 0)
    groups = [
        (task, of_type[types], 1, 0),
        (of_type[t], machine[k], ANY, scaled(cluster.price[t, cluster.kind[k]])),
        (task[p], machine[liked[p]], 1, cluster.liked_cost(types[p], liked[p])),
        (machine, sink, cluster.free, 0),
        (task, sink, 1, cluster.waiting_cost(born)),
    ]
    return joined(groups), np.concatenate((np.ones(n, dtype=np.int64), np.zeros(TYPES + m, dtype=np.int64), [-n]))


class Merged:
    """The merged graph of a cluster.

    Attributes
    ----------
    names, supply : (n_node,) identity of a node across rounds, its supply
    arcs : groups in the order of `groups`
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.rows, self.of_row = np.unique(cluster.tasks, axis=0, return_counts=True)
        likes = self.rows[:, 2] >= 0
        classes, of = np.unique(self.rows[:, :2], axis=0, return_inverse=True)
        self.wish, self.liked = np.flatnonzero(likes), np.unique(self.rows[likes, 2])
        self.wish_class, self.plain = of[self.wish], np.full(len(classes), -1)
        self.plain[of[~likes]] = np.flatnonzero(~likes)
        n_kind, m = cluster.price.shape[1], len(cluster.kind)
        sizes = (len(classes), len(self.wish), TYPES, n_kind, len(self.liked), 1)
        first = np.cumsum((0, *sizes))
        node = [np.arange(low, high) for low, high in pairwise(first)]
        task, wish, of_type, kind, machine, sink = node
        target = np.searchsorted(self.liked, self.rows[self.wish, 2])
        t, k = np.nonzero(cluster.fits)
        self.room = cluster.free.copy()
        self.room[self.liked] = 0
        self.groups = [
            (task, of_type[classes[:, 0]], ANY, 0),
            (task, sink, ANY, cluster.waiting_cost(classes[:, 1])),
            (wish, task[self.wish_class], ANY, 0),
            (wish, machine[target], ANY, cluster.liked_cost(*self.rows[self.wish][:, [0, 2]].T)),
            (of_type[t], kind[k], ANY, scaled(cluster.price[t, k])),
            (kind, sink, np.bincount(cluster.kind, self.room, n_kind).astype(np.int64), 0),
            (kind[cluster.kind[self.liked]], machine, ANY, 0),
            (machine, sink, cluster.free[self.liked], 0),
        ]
        self.arcs = joined(self.groups)
        own = np.where(self.plain >= 0, self.of_row[self.plain], 0)
        silent = np.zeros(first[-2] - first[2], dtype=np.int64)
        self.supply = np.concatenate((own, self.of_row[self.wish], silent, [-len(cluster.tasks)]))
        label = classes[:, 1] * TYPES + classes[:, 0]
        wishes = label[self.wish_class] * m + self.rows[self.wish, 2]
        parts = (label, wishes, np.arange(TYPES), np.arange(n_kind), self.liked, np.zeros(1, dtype=np.int64))
        self.names = np.concatenate([len(parts) * part + number for number, part in enumerate(parts)])

    def start(self, flow: IntArray) -> IntArray:
        """Start the tasks that flow to machines; return the (n_arc,) flow of these tasks, without those that wait."""
        parts = np.split(flow, np.cumsum([len(group[0]) for group in self.groups])[:-1])
        placed, _, shared, direct, _, filled, _, own = parts
        from_class = np.where(self.plain >= 0, np.minimum(placed, self.of_row[self.plain]), 0)
        rest, before = placed - from_class, np.cumsum(shared) - shared
        begin = np.full(len(placed), len(flow) * ANY)
        np.minimum.at(begin, self.wish_class, before)
        taken = np.clip(rest[self.wish_class] - (before - begin[self.wish_class]), 0, shared)
        tasks = np.zeros(len(self.rows), dtype=np.int64)
        tasks[self.plain[self.plain >= 0]] = from_class[self.plain >= 0]
        tasks[self.wish] = direct + taken
        places = np.zeros(len(self.room), dtype=np.int64)
        places[self.liked] = own
        order = np.argsort(self.cluster.kind, kind="stable")
        kind, room = self.cluster.kind[order], self.room[order]
        ahead = np.cumsum(room) - room
        begin = np.append(ahead, 0)[np.searchsorted(kind, np.arange(len(filled)))]
        places[order] += np.clip(filled[kind] - (ahead - begin[kind]), 0, room)
        self.cluster.start(tasks, places)
        parts[1], parts[2] = np.zeros_like(placed), taken
        return np.concatenate(parts)


def solve(arcs: Arcs, supply: IntArray, solver: FlowSolver = "ortools") -> Flow:
    """Solve without a previous solution; raise AssertionError unless the answer is optimal."""
    tail, head, capacity, cost = arcs
    answer = min_cost_flow(tail, head, 0, capacity, cost, supply, solver=solver)
    if not answer.optimal:
        raise AssertionError(answer.status)
    return answer


def cold(machines: int, tasks: int, kinds: int) -> Figures:
    """Return milliseconds on the merged graph (OR-Tools, shortest paths) and on the flat one; `ms` includes building it."""
    cluster = draw(machines, tasks, kinds, preferring=0.3, most=1)
    solvers: tuple[FlowSolver, ...] = ("ortools", "successive_shortest_path")
    for solver in solvers:
        solve(*flat(draw(10, 10, 2, 0.3, 1)), solver)  # loads it
    whole, graph = seconds(lambda: Merged(cluster), repeat=3)
    figures, costs = {}, set()
    for solver in solvers:
        spent, merged = seconds(lambda solver=solver: solve(graph.arcs, graph.supply, solver), repeat=10)
        figures[f"{solver}_ms"] = 1e3 * spent
        costs.add(merged.cost)
    slow, reference = seconds(lambda: solve(*flat(cluster)))
    if costs != {reference.cost}:
        raise AssertionError("the merged graph and the flat one disagree")
    whole = 1e3 * whole + figures["ortools_ms"]
    return {"ms": whole, **figures, "flat_ms": 1e3 * slow, "ratio": 1e3 * slow / whole}


@case("flow-cold", ms=("<=", 350), ratio=(">=", 1))
def flow_cold() -> Figures:
    """Benchmark 12,500 machines of 500 kinds and 10,000 waiting tasks, 3 in 10 of which prefer a machine."""
    return cold(12_500, 10_000, 500)


@case("flow-phase", successive_shortest_path_ms=("<=", 5))
def flow_phase() -> Figures:
    """Benchmark 128 machines of 20 kinds and 4,096 waiting tasks: here OR-Tools is as fast on the flat graph."""
    return cold(128, 4_096, 20)


class Clock:
    """A callable that records the CPU time of its last call."""

    def __init__(self, act: Callable[[], Flow]) -> None:
        self.act, self.seconds = act, 0.0

    def __call__(self) -> Flow:
        """Call the function."""
        self.seconds, result = seconds(self.act)
        return result


def rounds(kinds: int, preferring: float, repeat: int = 8) -> Figures:
    """Return milliseconds per round on a full cluster with a kept graph; each round has a thousand arrivals and departures.

    The cost of each answer must equal that of a cold solver. `solver_ms` is the time on the residual graph, `ms` also includes
    finding the changes, and `built_ms` also building the merged graph. All are medians over rounds.
    """
    rng = np.random.default_rng(2)
    cluster = draw(12_500, 11_000, kinds, preferring, most=0)
    incremental, spent = NamedFlow(), []
    clock = incremental.network.solve = Clock(incremental.network.solve)  # type: ignore[method-assign]  # timed from within
    for _ in range(repeat + 2):
        begun = time.process_time()
        graph = Merged(cluster)
        built = time.process_time()
        answer = incremental.solve(graph.names, *graph.arcs, graph.supply)
        done = time.process_time()
        reference, fresh = seconds(lambda graph=graph: solve(graph.arcs, graph.supply))
        if answer.cost != fresh.cost or not answer.optimal:
            raise AssertionError("the kept graph and a cold solver disagree")
        spent.append((done - built, clock.seconds, done - begun, reference))
        incremental.withdraw(graph.start(answer.flow))
        cluster.now += 1
        np.add.at(cluster.free, rng.integers(0, 12_500, 1_000), 1)
        cluster.arrive(rng, 1_000, preferring)
    medians = (1e3 * np.median(np.array(spent[2:]), axis=0)).tolist()
    return dict(zip(("ms", "solver_ms", "built_ms", "cold_ms"), medians, strict=True))


@case("flow-rounds", ms=("<=", 50), solver_ms=("<=", 5))
def flow_rounds() -> Figures:
    """Benchmark 50 kinds of machines, where 3 in 10 tasks prefer a machine."""
    return rounds(50, 0.3)


@case("flow-rounds-kinds", ms=("<=", 50))
def flow_rounds_kinds() -> Figures:
    """Benchmark 3,000 kinds: few machines are identical."""
    return rounds(3_000, 0.3)


@case("flow-rounds-plain", ms=("<=", 50), solver_ms=("<=", 5))
def flow_rounds_plain() -> Figures:
    """Benchmark 500 kinds without preferences."""
    return rounds(500, 0.0)
