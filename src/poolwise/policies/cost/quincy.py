"""Quincy's cost model: tasks run near their data, or wait a little for such a place.

Source: Isard et al., Quincy, section 4; flow-placement spec, "Baselines".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.policies.cost.model import CostModel, Places, TaskClasses, Waiting
from poolwise.registry import register

GB = 1e9


@register("costs", "quincy")
@dataclass(frozen=True)
class Quincy(CostModel):
    """Quincy: reading data from the rack or from beyond costs per gigabyte, waiting costs per second.

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
