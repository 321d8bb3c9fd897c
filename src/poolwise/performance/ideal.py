"""Ideal model, without any effect of the placement, and the base class of simple models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.interfaces import PerformanceModel
from poolwise.model import JobTable, Machine, Placement, Run, Snapshot
from poolwise.model.rules import FixedSlowdown
from poolwise.registry import register


class SimpleModel(PerformanceModel):
    """Base class of models without setup time whose slowdown, by default, does not depend on neighbors."""

    def setup(self, run: Run, snapshot: Snapshot) -> int:
        """Return 0."""
        return 0

    def touches(self, placement: Placement, snapshot: Snapshot) -> tuple[int, ...]:
        """Return no owners."""
        return ()


@register("models", "ideal")
@dataclass(frozen=True)
class Ideal(SimpleModel):
    """Performance model under which every run takes exactly its duration, wherever it is placed.

    Examples
    --------
    >>> import poolwise
    >>> machine = poolwise.Machine.of_racks(1, 1, local="8 GiB", pool="8 GiB")
    >>> workload = poolwise.Workload.of("0 s", "1 h", requests={"memory": "12 GiB"})
    >>> run = poolwise.simulate(workload, machine, model=poolwise.Ideal(), engine="reference")
    >>> run.metrics["makespan_s"]
    3600.0
    """

    @property
    def parts(self) -> tuple[PerformanceModel, ...]:
        """An empty tuple: under this model, runs take only their base times."""
        return ()

    def slowdown(self, run: Run, snapshot: Snapshot) -> float:
        """Return 0."""
        return 0.0

    def fixed(self, table: JobTable, rows: slice, machine: Machine) -> FixedSlowdown:
        """Return zero slowdowns."""
        none = np.zeros(len(table.requested[rows]))
        return FixedSlowdown(none, none, none)
