"""What says how much memory jobs use, and what users ask for who do not know it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.random import uniform


class MemoryUseSource(Protocol):
    """Settings that say what the jobs of a workload use, a frozen dataclass; registered in "memory_uses"."""

    def applied(self, workload: Workload) -> Workload:
        """Return the jobs with `memory_use` and what their users ask for. Raises InputError for bad settings and files."""
        ...


def with_overestimates(workload: Workload, seed: int, overestimate: float, overestimating: float) -> IntArray:
    """(n_job,) MiB that users ask for on each node: of a share of them, drawn by job id, so much more than the workload says.

    Rounded up. Raises InputError for an overestimate below 0 and a share outside [0, 1].
    """
    for name, value, most in (("overestimate", overestimate, 1000.0), ("overestimating", overestimating, 1.0)):
        if not 0 <= value <= most:
            problem = f"{name} must be between 0 and {most:g}, not {value:g}"
            raise InputError(problem, field=name, remedy="0.6 asks for 60 % more; 1.0 of all users do")
    asks = uniform(seed, "memory_use.overestimating", workload.id) < overestimating
    more = np.ceil(workload.memory * (1.0 + overestimate) * (1.0 - 1e-12)).astype(np.int64)
    return np.where(asks, more, workload.memory)
