"""A family of queue orders with numbers to choose: lines over the time waited, whose slopes and offsets are powers of demands.

First come, first served, shortest job first, smallest area first and w / r are in it, and Fair Memory nearly. What is worth
choosing among them is what `poolwise search` looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from poolwise.arrays import FloatArray, IntArray
from poolwise.interfaces import AffineOrder
from poolwise.model import JobTable, Machine
from poolwise.model.table_columns import log10
from poolwise.registry import register

GIB = 1024
"""MiB in a GiB."""


class AskedFor(NamedTuple):
    """log10 of what jobs ask for, (k,) each.

    Attributes
    ----------
    runtime : requested seconds
    nodes : nodes of a task
    memory : 1 + GiB of memory per node
    pool : 1 + GiB in all that do not fit into the nodes' own memory
    """

    runtime: FloatArray
    nodes: FloatArray
    memory: FloatArray
    pool: FloatArray

    @classmethod
    def of(cls, jobs: IntArray, table: JobTable, machine: Machine) -> AskedFor:
        """Look up what jobs (k,) ask for; worked out once for each row of the table."""
        local = machine.local_memory
        memory = _gib(table, "memory", lambda table, rows: table.memory[rows])
        pool = _gib(table, local, lambda table, rows: np.maximum(table.memory[rows] - local, 0) * table.nodes[rows])
        return cls(table.log10_requested[jobs], table.log10_nodes[jobs], memory[jobs], pool[jobs])


@dataclass(frozen=True)
class Powers:
    """scale * runtime^a * nodes^b * memory^c * pool^d; see `AskedFor`. The exponents are the fields."""

    scale: float = 0.0
    runtime: float = 0.0
    nodes: float = 0.0
    memory: float = 0.0
    pool: float = 0.0

    def of(self, demand: AskedFor) -> FloatArray:
        """(k,) products; infinite or NaN beyond what float64 holds, which `AffineOrder.lines` refuses."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.scale * np.power(10.0, _weighted(self, demand))


@dataclass(frozen=True)
class Logarithms:
    """a * log10 runtime + b * log10 nodes + c * log10 memory + d * log10 pool; see `AskedFor`. The factors are the fields."""

    runtime: float = 0.0
    nodes: float = 0.0
    memory: float = 0.0
    pool: float = 0.0

    def of(self, demand: AskedFor) -> FloatArray:
        """(k,) sums."""
        return _weighted(self, demand)


@register("orders", "affine")
@dataclass(frozen=True)
class Affine(AffineOrder):
    """A line over the seconds waited: w * slope + offset + logs, each of the job's requested runtime, nodes and memory.

    Parameters
    ----------
    rise
        What a job gains a second; by default 1 for every job: first come, first served.
    start
        What it has when it is submitted.
    logs
        What it has when it is submitted, in logarithms: with a rise of 1 / T for all, ten times as short is worth T seconds.
    """

    rise: Powers = field(default_factory=lambda: Powers(scale=1.0))
    start: Powers = field(default_factory=Powers)
    logs: Logarithms = field(default_factory=Logarithms)

    def slope(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) gains a second."""
        return self.rise.of(AskedFor.of(jobs, table, machine))

    def offset(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """(k,) priorities at submission."""
        demand = AskedFor.of(jobs, table, machine)
        return self.start.of(demand) + self.logs.of(demand)


def _weighted(factors: Powers | Logarithms, demand: AskedFor) -> FloatArray:
    """(k,) sums of the logarithms times the factors of the same name, in the order of `AskedFor`."""
    total = np.zeros(len(demand.runtime))
    for name in AskedFor._fields:
        total = total + getattr(factors, name) * getattr(demand, name)
    return total


def _gib(table: JobTable, key: Hashable, mib: Callable[[JobTable, slice], IntArray]) -> FloatArray:
    """(n_job,) log10 of 1 + GiB, of a column of MiB."""
    return table.derived(("affine", key), lambda table, rows: log10(1.0 + mib(table, rows) / GIB))
