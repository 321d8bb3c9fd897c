"""Interface of sources of memory use, and memory requests of users who overestimate."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from poolwise.arrays import IntArray
from poolwise.errors import InputError
from poolwise.model import Workload
from poolwise.random import uniform


class MemoryUseSource(Protocol):
    """Settings that determine the memory use of a workload's jobs, a frozen dataclass; registered in "memory_uses"."""

    def applied(self, workload: Workload) -> Workload:
        """Return the workload with `memory_use` and memory requests; raise InputError for invalid settings and files."""
        ...


def with_overestimates(workload: Workload, seed: int, overestimate: float, overestimating: float) -> IntArray:
    """Return the requested MiB per node, (n_job,): for a share of the jobs, drawn by id, the workload's memory plus an excess.

    Rounded up. Raises InputError for an overestimate below 0 or a share outside [0, 1].
    """
    for name, value, most in (("overestimate", overestimate, 1000.0), ("overestimating", overestimating, 1.0)):
        if not 0 <= value <= most:
            problem = f"{name} must be between 0 and {most:g}, not {value:g}"
            raise InputError(
                problem, field=name, remedy="overestimate = 0.6 requests 60 % more; overestimating = 1.0 applies to all users"
            )
    overestimates = uniform(seed, "memory_use.overestimating", workload.id) < overestimating
    more = np.ceil(workload.memory * (1.0 + overestimate) * (1.0 - 1e-12)).astype(np.int64)
    return np.where(overestimates, more, workload.memory)
