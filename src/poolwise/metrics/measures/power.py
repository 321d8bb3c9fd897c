"""Measures of energy and purchase price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poolwise.metrics.measure import Measure, MeasuredRun, Metric
from poolwise.metrics.power import load_of, mean_watts, price
from poolwise.metrics.unit_use import energy_j, units_of
from poolwise.model import Kind
from poolwise.registry import register


@register("metrics", "energy")
@dataclass(frozen=True)
class Energy(Measure):
    """Energy of nodes, pools, devices and processing units, including idle ones, for machines with known watts."""

    metrics: ClassVar[Mapping[str, Metric]] = {"energy_j": Metric("energy of the machine", "J", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether all watts are known, or the machine has a power table of unit and task types."""
        machine = run.machine
        idle, busy = machine.attributes.get("idle_watts"), machine.attributes.get("busy_watts")
        if idle is None or len(units_of(machine)):
            return idle is not None
        return busy is not None and not bool(np.isnan(idle + busy)[machine.kind != Kind.LINK].any())

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the energy; NaN for an empty window. Raises InputError if a task ran on a unit of unknown power."""
        schedule, window = run.schedule, run.window
        if len(units_of(run.machine)):
            return {"energy_j": energy_j(schedule, window)}
        return {"energy_j": mean_watts(run.machine, load_of(schedule, window)) * window.length_s}


@register("metrics", "purchase")
@dataclass(frozen=True)
class Purchase(Measure):
    """Price of all nodes, pools, devices and processing units, for machines with known prices."""

    metrics: ClassVar[Mapping[str, Metric]] = {"purchase_cost": Metric("purchase price of the machine", "$", "lower")}

    def applies(self, run: MeasuredRun) -> bool:
        """Return whether every unit has a price."""
        return not np.isnan(price(run.machine))

    def of(self, run: MeasuredRun) -> Mapping[str, float]:
        """Compute the price."""
        return {"purchase_cost": price(run.machine)}
