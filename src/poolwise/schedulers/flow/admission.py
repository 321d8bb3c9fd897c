"""Which waiting jobs a round looks at, and which can never run.

Source: Amaral et al., DRMaestro, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolwise.arrays import BoolArray, IntArray
from poolwise.schedulers.flow.classes import merged
from poolwise.schedulers.flow.layout import FlowLayout, Shapes, room

Admission = Literal["prefix", "filter"]


def admit(demand: IntArray, free: IntArray, rule: Admission) -> BoolArray:
    """Let jobs in, longest waiting first, while they fit what is free in total.

    Parameters
    ----------
    demand
        (n_job, n_resource) of whole jobs, in the order of the queue.
    free
        (n_resource,) sums over the machine.
    rule
        "prefix" stops at the first job that does not fit, so that nothing passes it; "filter" goes on with those behind it.

    Returns
    -------
    (n_job,) jobs let in.
    """
    fits: BoolArray = np.all(np.cumsum(demand, axis=0) <= free, axis=1)
    if rule == "prefix" or bool(fits.all()):
        return np.logical_and.accumulate(fits)
    admitted = np.zeros(len(demand), dtype=np.bool_)
    left = free.copy()
    for k in np.flatnonzero((demand <= free).all(axis=1)).tolist():
        if (demand[k] <= left).all():
            admitted[k] = True
            left -= demand[k]
    return admitted


@dataclass(frozen=True, eq=False)
class Idle:
    """What the idle machine has room for.

    Attributes
    ----------
    local : (n_class,) whether all tasks of a job would find their devices on their own nodes
    why_not : (n_class,) why a job of a class can never start, "" if it can
    """

    local: BoolArray
    why_not: tuple[str, ...]

    @classmethod
    def of(cls, layout: FlowLayout, shapes: Shapes, pooled: bool) -> Idle:
        """Count how many tasks of each class the idle machine holds; tasks of a job are alike, so counting is exact."""
        amounts = layout.amounts(layout.machine.capacity)
        nodes, n = amounts[: len(layout.nodes)], len(layout.columns)
        of, first = merged(*nodes.T)
        count, most = np.bincount(of), int(shapes.tasks.max(initial=1))
        demand = shapes.demand[shapes.first]
        bare = demand.copy()
        bare[:, n:] = 0
        holds, bare_holds = (np.minimum(room(nodes[first], d, most) @ count, most) for d in (demand, bare))
        for k in np.flatnonzero(shapes.pinned >= 0).tolist():
            here = nodes[shapes.pinned[k]][None]
            holds[k], bare_holds[k] = (int(room(here, d[k][None], most)[0, 0]) for d in (demand, bare))
        devices = amounts[:, n:].sum(axis=0)
        why = []
        for k, tasks in enumerate(shapes.tasks.tolist()):
            short = np.flatnonzero(demand[k, n:] * tasks > devices)
            if len(short):
                kind = layout.kinds[int(short[0])]
                why.append(f"asks for {int(demand[k, n + short[0]]) * tasks} {kind}, the machine has {int(devices[short[0]])}")
            elif bare_holds[k] < tasks or (not pooled and holds[k] < tasks):
                what = "" if bare_holds[k] < tasks else " with their devices"
                why.append(f"its {tasks} tasks do not fit on the nodes of the idle machine{what}")
            else:
                why.append("")
        return cls(holds >= shapes.tasks, tuple(why))
