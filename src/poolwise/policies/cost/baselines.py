"""Cost models to compare with: the two of Firmament, that of Quincy, and best fit.

Source: flow-placement spec, "Baselines" (versions of Firmament differ; these are the versions of the spec); Isard et al.,
Quincy, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import register

OMEGA = 1000
MOST_COPIES = 50
CPU_MEM_WAIT = 2_560_000.0


@register("costs", "cpu_mem")
@dataclass(frozen=True)
class CpuMem(CostModel):
    """CPU-memory model (Firmament): placing is cheaper on emptier machines, and if cores and memory are used evenly.

    With f the used fraction after placing, the cost is (floor(W f_cpu) + floor(W f_mem)) / 2 + floor(W var(f_cpu, f_mem)), W =
    1000. Each further copy of a class on a machine is a separate arc; there are at most 50. A resource that the machine lacks
    counts as unused.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """No columns besides the free amounts."""
        return frozenset()

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost of placing the first copy, the second, and so on."""
        copy = np.arange(1, min(copies, MOST_COPIES) + 1)
        used = [self._used(tasks, places, name, copy) for name in ("cores", "memory") if name in tasks.resources]
        cores, memory = (used + [np.zeros((len(tasks), len(places), len(copy)))] * 2)[:2]
        variance = ((cores - memory) / 2) ** 2
        return (np.floor(OMEGA * cores) + np.floor(OMEGA * memory)) / 2 + np.floor(OMEGA * variance)

    @staticmethod
    def _used(tasks: TaskClasses, places: Places, name: str, copy: np.ndarray) -> FloatArray:
        """Return the used fraction of a resource with each number of copies, (n_class, n_place, n_copy)."""
        column = tasks.resources.index(name)
        demand, capacity = tasks.demand[:, column], places.capacity[:, column]
        used = (capacity - places.free[:, column])[None, :, None] + demand[:, None, None] * copy
        fraction: FloatArray = used / np.maximum(capacity, 1)[None, :, None]
        return fraction

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return a cost above the cost of any placement."""
        return np.full(len(waiting.passes), CPU_MEM_WAIT)


EACH = 100.0
OCTOPUS_WAIT = 1_000_000.0


@register("costs", "octopus")
@dataclass(frozen=True)
class Octopus(CostModel):
    """Octopus (Firmament): placing costs 100 for each task on the machine, including those placed earlier in the round."""

    @property
    def looks_at(self) -> frozenset[str]:
        """The number of running tasks."""
        return frozenset({"running"})

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost of placing the first copy, the second, and so on."""
        cost = EACH * (places.running[None, :, None] + np.arange(copies))
        return np.broadcast_to(cost, (len(tasks), len(places), copies)).astype(np.float64)

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return a cost above the cost of any placement."""
        return np.full(len(waiting.passes), OCTOPUS_WAIT)


GB = 1e9


@register("costs", "quincy")
@dataclass(frozen=True)
class Quincy(CostModel):
    """Quincy: reading data from the rack or from another rack costs per gigabyte, and waiting costs per second.

    The attributes data_x, data_y (rack and shelf) and data_size (bytes) of the jobs describe their data.

    Parameters
    ----------
    rack, remote
        Cost per gigabyte from another machine of the rack, and from another rack (assumed).
    wait
        Cost per second of waiting.
    unscheduled
        Cost of waiting from the start (assumed).
    """

    rack: float = 1.0
    remote: float = 2.0
    wait: float = 0.5
    unscheduled: float = 1000.0

    @property
    def looks_at(self) -> frozenset[str]:
        """The position of the machine."""
        return frozenset({"position"})

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost of reading the data that is not at the place."""
        same = tasks.data_at[:, None, :] == places.position[None, :, :]
        each = np.where(same.all(axis=2), 0.0, np.where(same[:, :, 0], self.rack, self.remote))
        cost: FloatArray = each * (tasks.data[:, None] / GB)
        return cost[:, :, None]

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return `unscheduled` plus `wait` times the seconds waited."""
        return self.unscheduled + self.wait * waiting.waited_s


REMOTE = 1.0
"""Exceeds every difference between best-fit costs, so that devices of the task's own node come first."""
BEST_FIT_WAIT = 1000.0


@register("costs", "best_fit")
@dataclass(frozen=True)
class BestFit(CostModel):
    """Best fit: placing is cheaper if less of the machine would remain free, which keeps room for large tasks.

    The cost is the mean, over the requested resources, of the fraction of the machine that one task leaves free; a device over
    the network costs 1 more. Waiting costs more than any placement, and more for jobs that have been skipped more often.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """No columns besides the free amounts."""
        return frozenset()

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the same cost for every copy, since flows require non-decreasing costs of copies."""
        left = places.free[None] - tasks.demand[:, None]
        demanded = tasks.demand > 0
        share = left / np.maximum(places.capacity, 1)[None] * demanded[:, None]
        mean = share.sum(axis=2) / np.maximum(demanded.sum(axis=1), 1)[:, None]
        cost: FloatArray = (mean + (REMOTE if places.remote else 0.0))[:, :, None]
        return cost

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return the cost of waiting, linear in the number of passes."""
        return BEST_FIT_WAIT + waiting.passes.astype(np.float64)
