"""Affinity model: units that run some types of tasks faster than others.

Source: VineSim, sections 4.4 and 5.3.1 (affinity mapping); accelerator spec, "Model".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.errors import InputError
from poolwise.model import Machine, Run, Snapshot
from poolwise.performance.ideal import SimpleModel
from poolwise.performance.routes import homes
from poolwise.quantities import US
from poolwise.registry import register

PREFIX = "affinity."
"""Machine attribute "affinity.K": operations per microsecond of each owner for tasks of type K, 0 if it cannot run them."""


@register("models", "affinity")
@dataclass(frozen=True)
class Affinity(SimpleModel):
    """Compute time of a task, its operations / affinity, in nanoseconds rounded up once.

    The model reads the job table's columns "task_type" and "operations" and the machine's attributes "affinity.0",
    "affinity.1", and so on. Without them, and for a type below 0, all units are equally fast. A run on several units is as slow
    as its slowest unit. Times up to 2**51 ns (26 days) are exact to the nanosecond.
    """

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return the time on the slowest unit divided by the work, minus 1. Raises InputError if a unit cannot run the task."""
        table = rates(snapshot.machine)
        if not len(table) or "operations" not in snapshot.table.attributes:
            return 0.0
        job = snapshot.table.job(run.job)
        kind = int(job.attribute("task_type"))
        if kind < 0:
            return 0.0
        units = [unit for units in homes(run.placement, snapshot.machine).values() for unit in units]
        rate = min(float(table[kind, unit]) for unit in units) if kind < len(table) else 0.0
        if rate <= 0:
            names = ", ".join(snapshot.machine.owners[unit] for unit in units)
            raise InputError(f"{names} cannot run tasks of type {kind}", field="task_type", remedy="give the unit an affinity")
        return slowdown(compute_ns(job.attribute("operations"), rate), int(snapshot.work[run.job]))


def compute_ns(operations: float, rate: float) -> int:
    """Return the time (ns) of a number of operations at `rate` per microsecond, rounded up, at least 1.

    Rounding errors of floating-point numbers do not count as excess.
    """
    exact = operations * US / rate
    nearest = round(exact)
    return max(nearest if abs(exact - nearest) <= 1e-9 * max(1.0, exact) else math.ceil(exact), 1)


def compute_times(operations: FloatArray, rate: FloatArray) -> IntArray:
    """Return `compute_ns` of every pair, in ns. The arrays are broadcast; the rates must be positive."""
    exact = operations * US / rate
    nearest = np.rint(exact)
    up = np.where(np.abs(exact - nearest) <= 1e-9 * np.maximum(1.0, exact), nearest, np.ceil(exact))
    return np.maximum(up, 1).astype(np.int64)


def slowdown(time: int, work: int) -> float:
    """Return the slowdown at which `work` ns take exactly `time` ns.

    It aims half a nanosecond lower, since run times are rounded up.
    """
    return 0.0 if time == work else (time - work - 0.5) / work


@lru_cache(maxsize=8)  # a machine is compared by identity
def rates(machine: Machine) -> FloatArray:
    """Return the operations per microsecond, (n_task_type, n_owner); (0, n_owner) for a machine without affinities."""
    columns: list[FloatArray] = []
    while (column := machine.attributes.get(f"{PREFIX}{len(columns)}")) is not None:
        columns.append(column)
    table: FloatArray = np.array(columns, dtype=np.float64).reshape(len(columns), machine.n_owner)
    table.setflags(write=False)
    return table
