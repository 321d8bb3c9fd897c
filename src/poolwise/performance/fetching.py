"""Data that are fetched over shared links before a task computes.

A flow that ends must leave its bandwidth to the others, so it has to be a run of its own: beside the task, which holds its
unit from the beginning, its fetching runs on the links (`network_sharing` gives it its share of them). This model ties the
two together. Source: specs of the accelerators, "max-min fair sharing of links".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.errors import InputError
from poolwise.interfaces import PerformanceModel
from poolwise.model import Kind, Machine, Placement, Run, Snapshot
from poolwise.performance.affinity import slowdown
from poolwise.registry import register

WHOLE, COMPUTE, FETCH = range(3)
"""Values of the workload's column "stage": a task that fetches nothing, one whose data are fetched, and the fetching of
the data of the row before."""

_STANDSTILL = 2.0**55  # ns that the work of a task seems to take while it waits for its data


@register("models", "fetching")
@dataclass(frozen=True)
class Fetching(PerformanceModel):
    """A task stands still on its unit until its data are there.

    Task k of a row of stage `COMPUTE` waits for task k of the next row, of stage `FETCH`, if that runs: on the same unit and
    the place of the data, with amounts 0. A fetching takes the latency of its path before it flows, and no more than 1 ns
    where data and unit stand at one place. Without the column "stage" there is nothing to wait for.

    Parameters
    ----------
    switch_ns
        Latency of each switch on the way.
    """

    switch_ns: int = 200

    def setup(self, run: Run, view: Snapshot) -> int:
        """Ns of latency of a fetching."""
        fabric = view.machine.fabric
        links = way(run, view) if stage(run.job, view) == FETCH else ()
        if fabric is None or not links:
            return 0
        return fabric.path_latency(links) + self.switch_ns * (len(links) - 1)

    def slowdown(self, run: Run, view: Snapshot) -> float:
        """Nearly a standstill while the data are on their way; 0 from then on."""
        now = stage(run.job, view)
        if now == FETCH:
            return 0.0 if way(run, view) else slowdown(1, view.table.job(run.job).duration)
        if now != COMPUTE:
            return 0.0
        others = (view.run(n) for owner in self.touches(run.placement, view) for n in view.occupants(owner))
        if any(other.job == run.job + 1 and other.tasks == run.tasks and way(other, view) for other in others):
            return _STANDSTILL / view.table.job(run.job).duration
        return 0.0

    def touches(self, placement: Placement, view: Snapshot) -> tuple[int, ...]:
        """The units."""
        return tuple(owner for owner in placement.owners() if view.machine.kind[owner] == int(Kind.NODE))


def way(run: Run, view: Snapshot) -> tuple[int, ...]:
    """Links between the unit and the data of a fetching, none where both are at one place."""
    assert view.machine.fabric is not None
    unit, store = run.placement.owner.tolist()
    return view.machine.fabric.path(unit, store)


def stage(job: int, view: Snapshot) -> int:
    """Stage of a row of the workload."""
    column = view.table.attributes.get("stage")
    return WHOLE if column is None else int(column[job])


def fetching(job: int, task: int, unit: int, view: Snapshot) -> Placement:
    """Placement of the fetching of a task's data to a unit; `job` is the row of the task."""
    place = tuple(int(view.table.job(job).attribute(name)) for name in ("data_x", "data_y"))
    owner = _stores(view.machine).get(place)
    if owner is None:
        raise InputError(
            f"data lie at x = {place[0]}, y = {place[1]}, where the machine keeps none",
            field="data_x",
            remedy="build the machine with the places of the trace's data",
        )
    slots = view.machine.resource("slots")
    return Placement.of([(task, unit, slots, 0), (task, owner, slots, 0)])


@lru_cache(maxsize=8)  # a machine is compared by identity
def _stores(machine: Machine) -> dict[tuple[int, ...], int]:
    """Pool at each place."""
    pools = np.flatnonzero(machine.kind == Kind.POOL).tolist()
    return {tuple(machine.position[pool].tolist()): pool for pool in reversed(pools)}
