"""Flow network of one phase: groups of tasks, classes, places and unscheduled nodes, as arrays.

Source: Amaral et al., DRMaestro, Figure 2; specs of the flow placement, "Graph per phase".
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import PolicyError
from poolwise.optimize.min_cost_flow import Flow, FlowSolver, min_cost_flow, scaled

if TYPE_CHECKING:
    from poolwise.optimize.min_cost_flow.named import NamedFlow

LINE = "{tail} -> {head}: at most {capacity}, cost {cost:g}"
MERMAID = "{tail} -->|{capacity} at {cost:.3g}| {head}"


@dataclass(frozen=True, eq=False)
class Arcs:
    """Arcs from groups or classes to places.

    Attributes
    ----------
    tail, place : (n_arc,) start (group or class) and end of each arc
    capacity : (n_arc,) tasks
    cost : (n_arc,) cost per task
    """

    tail: IntArray
    place: IntArray
    capacity: IntArray
    cost: FloatArray

    def __len__(self) -> int:
        return len(self.tail)

    @classmethod
    def joined(cls, parts: Sequence[Arcs]) -> Arcs:
        """Concatenate arcs, in order."""
        if not parts:
            return cls.none()
        tail, place, capacity = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("tail", "place", "capacity")
        )
        return cls(tail, place, capacity, np.concatenate([part.cost for part in parts]))

    @classmethod
    def none(cls) -> Arcs:
        """Return an empty set of arcs."""
        empty = np.zeros(0, dtype=np.int64)
        return cls(empty, empty, empty, np.zeros(0))


@dataclass(frozen=True, eq=False)
class Graph:
    """Flow network in which tasks flow from their group to a place, directly or through the group's class, or stay unscheduled.

    Tasks that the cost model does not distinguish and that wait at the same cost form one group, whose supply is their number.
    A gang has its own group, which shows whether all of it was placed.

    Attributes
    ----------
    supply : (n_group,) number of tasks of each group
    group_class : (n_group,) equivalence class of a group's tasks
    wait : (n_group,) cost of leaving one of the group's tasks unscheduled
    n_class : number of classes
    capacity : (n_place,) maximum number of tasks of each place
    drain : (n_place,) place that contains this one, -1 if it drains into the sink
    preference : arcs from groups to places
    through : arcs from classes to places
    names : (n_node,) numbers that identify groups, classes and places across rounds
    """

    supply: IntArray
    group_class: IntArray
    wait: FloatArray
    n_class: int
    capacity: IntArray
    drain: IntArray
    preference: Arcs
    through: Arcs
    names: IntArray

    def solve(self, solver: FlowSolver = "ortools", clock: Clock | None = None, previous: NamedFlow | None = None) -> ArcFlows:
        """Find the assignment of least cost; with `kept`, start from the residual graph of the previous round.

        Raises PolicyError if the solver's answer is not optimal.
        """
        begun = time.process_time()
        flow = self._flow(solver, previous)
        if clock is not None:
            clock.solver_s += time.process_time() - begun
            clock.solved += 1
        if not flow.optimal:
            raise PolicyError(f"the flow network of a phase was not solved: {flow.status} ({solver})")
        n, direct = len(self.supply), len(self.preference)
        _, waiting, preference, through, _ = np.split(flow.flow, np.cumsum([n, n, direct, len(self.through)]))
        return ArcFlows(waiting, preference, through)

    def _flow(self, solver: FlowSolver, previous: NamedFlow | None) -> Flow:
        tail, head, capacity, cost, supply = self.arrays()
        if previous is not None and len(np.unique(tail * len(supply) + head)) == len(tail):
            return previous.solve(self.names, tail, head, capacity, scaled(cost), supply)
        return min_cost_flow(tail, head, 0, capacity, scaled(cost), supply, solver=solver)  # one price per copy: parallel arcs

    def arrays(self) -> tuple[IntArray, IntArray, IntArray, FloatArray, IntArray]:
        """Return tail, head, capacity, cost (n_arc,) and supply (n_node,).

        Nodes: groups, classes, places, the unscheduled nodes of the groups, the sink. Arcs: group to class, group to
        unscheduled, preferences, class to place, place to its drain, unscheduled to sink.
        """
        n, m = len(self.supply), len(self.capacity)
        places, unscheduled, sink = n + self.n_class, n + self.n_class + m, 2 * n + self.n_class + m
        group = np.arange(n)
        tail = [group, group, self.preference.tail, n + self.through.tail, places + np.arange(m), unscheduled + group]
        head = [
            n + self.group_class,
            unscheduled + group,
            places + self.preference.place,
            places + self.through.place,
            np.where(self.drain < 0, sink, places + self.drain),
            np.full(n, sink),
        ]
        capacity = [self.supply, self.supply, self.preference.capacity, self.through.capacity, self.capacity, self.supply]
        cost = [np.zeros(n), self.wait, self.preference.cost, self.through.cost, np.zeros(m), np.zeros(n)]
        supply = np.zeros(sink + 1, dtype=np.int64)
        supply[:n], supply[sink] = self.supply, -int(self.supply.sum())
        return np.concatenate(tail), np.concatenate(head), np.concatenate(capacity), np.concatenate(cost), supply

    def lines(self, groups: Sequence[str], classes: Sequence[str], places: Sequence[str], form: str = LINE) -> list[str]:
        """Format one line per arc with the given names; `form` is a format of tail, head, capacity and cost."""
        names = [*groups, *classes, *places, *(f"U_{name}" for name in groups), "sink"]
        tail, head, capacity, cost, _ = self.arrays()
        rows = zip(tail.tolist(), head.tolist(), capacity.tolist(), cost.tolist(), strict=True)
        return [form.format(tail=names[a], head=names[b], capacity=most, cost=price) for a, b, most, price in rows]


@dataclass(frozen=True, eq=False)
class ArcFlows:
    """Number of tasks on each arc of a solved graph.

    Attributes
    ----------
    waiting : (n_group,) unscheduled tasks
    preference, through : (n_arc,) tasks, in the order of the graph's arcs
    """

    waiting: IntArray
    preference: IntArray
    through: IntArray


@dataclass
class Clock:
    """CPU time of scheduling, outside simulated time; no decision depends on it.

    Attributes
    ----------
    solver_s : seconds spent in the solver, over all rounds
    solved : number of solved flow problems
    rounds : (total, solver) seconds of each round
    """

    solver_s: float = 0.0
    solved: int = 0
    rounds: list[tuple[float, float]] = field(default_factory=list)
