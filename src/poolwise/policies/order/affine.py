"""Parametric queue orders: priorities that are affine in the waiting time, with power-law slopes and offsets.

The family contains first come first served, shortest job first, smallest area first and w / r, and nearly contains Fair
Memory. `poolwise search` optimizes its parameters.
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
from poolwise.short_repr import short_repr

GIB = 1024
"""MiB per GiB."""


class LogDemand(NamedTuple):
    """Base-10 logarithms of the jobs' requests, (k,) each.

    Attributes
    ----------
    runtime : requested run time in seconds
    nodes : nodes per task
    memory : 1 + GiB of memory per node
    pool : 1 + total GiB beyond the nodes' local memory
    """

    runtime: FloatArray
    nodes: FloatArray
    memory: FloatArray
    pool: FloatArray

    @classmethod
    def of(cls, jobs: IntArray, table: JobTable, machine: Machine) -> LogDemand:
        """Look up the requests of jobs (k,); each row of the table is evaluated only once."""
        local = machine.local_memory
        memory = _log10_gib(table, "memory", lambda table, rows: table.memory[rows])
        pool = _log10_gib(table, local, lambda table, rows: np.maximum(table.memory[rows] - local, 0) * table.nodes[rows])
        return cls(table.log10_requested[jobs], table.log10_nodes[jobs], memory[jobs], pool[jobs])


@dataclass(frozen=True)
class PowerTerm:
    """Product of powers, scale * runtime^a * nodes^b * memory^c * pool^d, whose exponents are the fields; see `LogDemand`."""

    scale: float = 0.0
    runtime: float = 0.0
    nodes: float = 0.0
    memory: float = 0.0
    pool: float = 0.0

    def evaluate(self, demand: LogDemand) -> FloatArray:
        """Return the products, (k,). Overflows give infinity or NaN, which `AffineOrder.lines` rejects."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.scale * np.power(10.0, _weighted_sum(self, demand))


@dataclass(frozen=True)
class LogTerm:
    """Weighted sum of logarithms, a * runtime + b * nodes + c * memory + d * pool, whose weights are the fields.

    The logarithms have base 10; see `LogDemand`.
    """

    runtime: float = 0.0
    nodes: float = 0.0
    memory: float = 0.0
    pool: float = 0.0

    def evaluate(self, demand: LogDemand) -> FloatArray:
        """Return the weighted sums, (k,)."""
        return _weighted_sum(self, demand)


@register("orders", "affine")
@dataclass(frozen=True)
class Affine(AffineOrder):
    """Highest value first of an affine function of the waiting time: w * slope + offset, with w in seconds.

    `rise` gives the slope; `start` and `logs` add up to the offset. All three depend on the job's requested run time, nodes
    and memory.

    Parameters
    ----------
    rise
        Priority gained per second of waiting. The default is 1 for every job, which is first come, first served.
    start
        Power-law part of the priority at submission.
    logs
        Logarithmic part of the priority at submission. With a rise of 1 / T for all jobs and a weight of -1 on the run time, a
        job that is ten times shorter than another ranks as though it had waited T seconds longer.
    """

    __repr__ = short_repr

    rise: PowerTerm = field(default_factory=lambda: PowerTerm(scale=1.0))
    start: PowerTerm = field(default_factory=PowerTerm)
    logs: LogTerm = field(default_factory=LogTerm)

    def slope(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return the priority gained per second, (k,)."""
        return self.rise.evaluate(LogDemand.of(jobs, table, machine))

    def offset(self, jobs: IntArray, table: JobTable, machine: Machine) -> FloatArray:
        """Return the priorities at submission, (k,)."""
        demand = LogDemand.of(jobs, table, machine)
        return self.start.evaluate(demand) + self.logs.evaluate(demand)


def _weighted_sum(weights: PowerTerm | LogTerm, demand: LogDemand) -> FloatArray:
    """Return the sums of weights times logarithms, (k,), added in the order of the fields of `LogDemand`."""
    total = np.zeros(len(demand.runtime))
    for name in LogDemand._fields:
        total = total + getattr(weights, name) * getattr(demand, name)
    return total


def _log10_gib(table: JobTable, key: Hashable, mib: Callable[[JobTable, slice], IntArray]) -> FloatArray:
    """Return log10(1 + GiB) of a column in MiB, (n_job,)."""
    return table.derived(("affine", key), lambda table, rows: log10(1.0 + mib(table, rows) / GIB))
