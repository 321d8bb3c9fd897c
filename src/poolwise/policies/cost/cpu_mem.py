"""Firmament's CPU and memory cost model: placing is cheaper on emptier and more evenly used machines.

Source: flow-placement spec, "Baselines" (versions of Firmament differ; this is the one given there).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import register

OMEGA = 1000
MOST_COPIES = 50
UNSCHEDULED = 2_560_000.0


@register("costs", "cpu_mem")
@dataclass(frozen=True)
class CpuMem(CostModel):
    """CPU-memory model (Firmament): placing is cheaper the emptier a machine is, and the more evenly cores and memory are used.

    With f the used fraction after placing: (floor(W f_cpu) + floor(W f_mem)) / 2 + floor(W var(f_cpu, f_mem)), W = 1000. Each
    further copy of a class on a machine is an arc of its own, at most 50. A resource that the machine lacks counts as
    unused.
    """

    @property
    def looks_at(self) -> frozenset[str]:
        """No columns besides the free amounts."""
        return frozenset()

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Return the cost of the first, second, ... copy."""
        copy = np.arange(1, min(copies, MOST_COPIES) + 1)
        used = [self._used(tasks, places, name, copy) for name in ("cores", "memory") if name in tasks.resources]
        cores, memory = (used + [np.zeros((len(tasks), len(places), len(copy)))] * 2)[:2]
        variance = ((cores - memory) / 2) ** 2
        cost: FloatArray = (np.floor(OMEGA * cores) + np.floor(OMEGA * memory)) / 2 + np.floor(OMEGA * variance)
        return cost

    @staticmethod
    def _used(tasks: TaskClasses, places: Places, name: str, copy: np.ndarray) -> FloatArray:
        """Return the used fraction of a resource with each number of copies, (n_class, n_place, n_copy)."""
        column = tasks.resources.index(name)
        demand, capacity = tasks.demand[:, column], places.capacity[:, column]
        used = (capacity - places.free[:, column])[None, :, None] + demand[:, None, None] * copy
        fraction: FloatArray = used / np.maximum(capacity, 1)[None, :, None]
        return fraction

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Return a cost above that of any placement."""
        return np.full(len(waiting.passes), UNSCHEDULED)
