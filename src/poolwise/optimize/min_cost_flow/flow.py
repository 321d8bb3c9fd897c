"""Result of a minimum-cost flow solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolwise.arrays import IntArray

FlowStatus = Literal["optimal", "infeasible", "unbalanced"]
"""unbalanced: the supplies do not sum to zero; infeasible: the arcs cannot carry them."""


@dataclass(frozen=True, eq=False)
class Flow:
    """Result of a solver.

    Attributes
    ----------
    status : see `FlowStatus`; flow and cost are zeros without meaning unless it is "optimal"
    flow : (n_arc,) flow on each arc, lower bounds included
    cost : sum of flow x cost, exact for any size
    """

    status: FlowStatus
    flow: IntArray
    cost: int

    @classmethod
    def of(cls, flow: IntArray, cost: IntArray) -> Flow:
        """Build the result of an optimal flow on arcs with these costs."""
        most = float(np.abs(cost).max(initial=0)) * float(flow.sum(dtype=np.float64))
        fits = most < 1 << 62
        return cls("optimal", flow, int(flow @ cost) if fits else int(flow.astype(object) @ cost.astype(object)))

    @classmethod
    def none(cls, status: FlowStatus, n_arc: int) -> Flow:
        """Build a result without a flow, with the reason."""
        return cls(status, np.zeros(n_arc, dtype=np.int64), 0)

    @property
    def optimal(self) -> bool:
        """True if the flow may be used."""
        return self.status == "optimal"
