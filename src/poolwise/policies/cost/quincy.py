"""Quincy's model: a task should run near its data, or wait a little for it.

Source: Isard et al., Quincy, section 4; specs of the flow placement, "Baselines".
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
    """Data read from the rack or from beyond costs by the gigabyte, waiting by the second (Quincy).

    Jobs say where their data is by the attributes data_x and data_y (rack and shelf) and data_size (bytes).

    Parameters
    ----------
    rack, remote
        Cost of a gigabyte from another machine of the rack, and from another rack (assumed).
    wait
        Cost of a second waited.
    unscheduled
        Cost of waiting from the start (assumed).
    """

    rack: float = 1.0
    remote: float = 2.0
    wait: float = 0.5
    unscheduled: float = 1000.0

    @property
    def looks_at(self) -> frozenset[str]:
        """Where the machine stands."""
        return frozenset({"position"})

    def placing(self, tasks: TaskClasses, places: Places, copies: int) -> FloatArray:
        """Cost of the data that is not at the place."""
        same = tasks.data_at[:, None, :] == places.position[None, :, :]
        each = np.where(same.all(axis=2), 0.0, np.where(same[:, :, 0], self.rack, self.remote))
        cost: FloatArray = each * (tasks.data[:, None] / GB)
        return cost[:, :, None]

    def waiting(self, waiting: Waiting) -> FloatArray:
        """Half the seconds waited and a constant."""
        return self.unscheduled + self.wait * waiting.waited_s
