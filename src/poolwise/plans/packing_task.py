"""One packing: jobs are drawn, submitted at once and placed in one pass; the free capacity is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poolwise.arrays import BoolArray, IntArray
from poolwise.errors import InputError, PolicyError
from poolwise.files.factory import scheduler_of
from poolwise.hashing import Json
from poolwise.loop import Loop
from poolwise.model import Kind, Machine, Snapshot, Start, Workload
from poolwise.model.exclusive import EXCLUSIVE, exclusive_nodes
from poolwise.model.task_graph import PREDECESSORS
from poolwise.performance.ideal import Ideal
from poolwise.platforms.simulated import Simulation
from poolwise.quantities import SECOND
from poolwise.random import uniform
from poolwise.runner.task_type import Record
from poolwise.studies.cell_simulation import CellMeasurement
from poolwise.studies.cells import Cell, workload_of

POINTS = 40
"""Number of points of the curve."""
SPEC = "gpu_spec"
"""Attribute that names the device types a job accepts, joined by "|"."""


@dataclass(frozen=True)
class Packings(CellMeasurement):
    """Task type that packs cells; the drawn jobs request `load` times the capacity in a resource of devices."""

    min_tasks_per_process = 2

    resource: str
    load: float

    def prepare(self, tasks: Sequence[Cell]) -> None:
        """Do nothing: a packing is one pass of the reference simulator."""

    def run(self, task: Cell) -> Record:
        """Pack one cell."""
        return Record(pack(task, self.resource, self.load))


def pack(cell: Cell, resource: str, load: float) -> Json:
    """Draw jobs, place them in one pass, and count.

    Raises InputError for exclusive jobs and for jobs that wait for others.

    Returns
    -------
    jobs, fit : drawn jobs, and placed jobs; device_jobs, device_fit : those of them that request devices
    away : placed jobs that use devices of another node
    asked, granted : requested and granted amounts of the resource, in whole devices
    nodes : resource of nodes -> share in use
    types : device type -> installed, idle, whole (completely idle devices), stranded (idle while a waiting job accepts the
        type), each in whole devices
    curve : requested and granted amount after growing numbers of jobs, both divided by the installed amount
    """
    machine = cell.machine
    devices = machine.of_kind(Kind.DEVICE)
    column = machine.resource(resource)
    devices = devices[machine.capacity[devices, column] > 0]
    source = workload_of(cell)
    for field, feature in ((EXCLUSIVE, exclusive_nodes(source, machine)), (PREDECESSORS, source.task_graph)):
        if feature is not None:
            problem = f"a packing plan does not support the attribute {field} of jobs"
            raise InputError(problem, field=field, remedy=f"remove the column or setting {field}")
    workload = draw_jobs(source, resource, int(load * machine.capacity[devices, column].sum()), cell.seed)
    simulation = Simulation(workload, machine, Ideal())
    scheduler = scheduler_of(cell.scheduler)
    scheduler.check(machine, workload.table)
    outcome = Loop(simulation, scheduler, cell.seed).step(next(iter(simulation.events())))
    if outcome.rejected:
        raise PolicyError(f"the scheduler started a job that does not fit: {outcome.rejected[0][1]}")
    starts = [decision for decision in outcome.committed if isinstance(decision, Start)]
    placed = np.zeros(len(workload), dtype=np.bool_)
    placed[[start.job for start in starts]] = True
    requested = workload.request(resource) * workload.tasks
    unit = int(machine.capacity[devices, column].max())
    return {
        "jobs": len(workload),
        "fit": int(placed.sum()),
        "device_jobs": int((requested > 0).sum()),
        "device_fit": int((placed & (requested > 0)).sum()),
        "away": sum(_uses_other_node(start, machine) for start in starts),
        "asked": float(requested.sum() / unit),
        "granted": float(requested[placed].sum() / unit),
        "nodes": _in_use(simulation.snapshot()),
        "types": _idle(simulation.snapshot(), devices, column, unit, _accepted(workload, ~placed & (requested > 0))),
        "curve": _curve(requested, placed, int(machine.capacity[devices, column].sum())),
        "excluded": dict(sorted(workload.excluded.items())),
    }


def draw_jobs(workload: Workload, resource: str, amount: int, seed: int) -> Workload:
    """Draw jobs with replacement until they request `amount` of a resource; all are submitted at once.

    Raises InputError if no job requests it.
    """
    requested = workload.request(resource) * workload.tasks
    if not requested.any():
        raise InputError(
            f"no job of '{workload.name}' requests {resource}",
            field="plan.resource",
            remedy="name a device resource that jobs request",
        )
    rows = np.zeros(0, dtype=np.int64)
    while int(requested[rows].sum()) < amount:
        more = np.arange(len(rows), len(rows) + len(workload))
        rows = np.concatenate([rows, (uniform(seed, "packing", more) * len(workload)).astype(np.int64)])
    rows = rows[: int(np.searchsorted(np.cumsum(requested[rows]), amount)) + 1]
    return Workload.of(
        np.zeros(len(rows), dtype=np.int64),
        np.full(len(rows), SECOND, dtype=np.int64),
        tasks=workload.tasks[rows],
        requests={name: column[rows] for name, column in workload.requests.items()},
        attributes={name: column[rows] for name, column in workload.attributes.items()},
        excluded=workload.excluded,
        name=workload.name,
    )


def _uses_other_node(start: Start, machine: Machine) -> bool:
    """Return whether a start uses a device inside a node but no other resource of that node."""
    owners = np.array(start.placement.owners())
    devices = owners[machine.kind[owners] == Kind.DEVICE]
    return not bool(np.isin(machine.home[devices], owners).all())


def _in_use(snapshot: Snapshot) -> dict[str, float]:
    nodes = snapshot.machine.of_kind(Kind.NODE)
    total = snapshot.capacity[nodes].sum(axis=0)
    free = snapshot.free[nodes].sum(axis=0)
    return {name: float(1 - free[k] / total[k]) for k, name in enumerate(snapshot.machine.resources) if total[k]}


def _accepted(workload: Workload, waiting: BoolArray) -> set[str] | None:
    """Return the device types that the waiting jobs accept; None means all types."""
    specs: NDArray[np.generic] | None = workload.attributes.get(SPEC)
    if not waiting.any():
        return set()
    texts = {""} if specs is None else {str(text) for text in specs[waiting].tolist()}
    return None if "" in texts else {name.strip() for text in texts for name in text.split("|")}


def _idle(snapshot: Snapshot, devices: IntArray, column: int, unit: int, accepted: set[str] | None) -> dict[str, Json]:
    free, installed = snapshot.free[devices, column], snapshot.capacity[devices, column]
    kind = np.array([snapshot.machine.type[device] for device in devices.tolist()])
    counts: dict[str, Json] = {}
    for name in sorted(set(kind.tolist())):
        of_type = kind == name
        idle = float(free[of_type].sum() / unit)
        counts[name] = {
            "installed": float(installed[of_type].sum() / unit),
            "idle": idle,
            "whole": int((free[of_type] == installed[of_type]).sum()),
            "stranded": idle if accepted is None or name in accepted else 0.0,
        }
    return counts


def _curve(requested: IntArray, placed: BoolArray, total: int) -> list[list[float]]:
    """Return the requested and granted amounts, both divided by `total`, after growing numbers of jobs, (POINTS, 2)."""
    at = np.linspace(0, len(requested), POINTS + 1).astype(np.int64)[1:] - 1
    demanded, granted = np.cumsum(requested) / total, np.cumsum(requested * placed) / total
    return [[float(demanded[k]), float(granted[k])] for k in at.tolist()]
