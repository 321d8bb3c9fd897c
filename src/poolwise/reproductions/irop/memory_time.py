"""CFM as the IRoP paper describes it: each workload gets the share that minimizes local memory times time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poolwise.batch.methods.cfm import Cfm
from poolwise.batch.methods.method import Limit
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.check import check_assignment
from poolwise.errors import PolicyError
from poolwise.hashing import Json
from poolwise.performance.profiles import Profile
from poolwise.reproductions import cached_measurements
from poolwise.reproductions.irop.runs import IropCase
from poolwise.runner import Executor, Progress

STEPS = 301
"""Number of candidate local shares, from the smallest allowed share to 1."""


@dataclass(frozen=True)
class MemoryTimeCase:
    """Placement at the paper's size on the modules that CFM chooses; independent of Delta and eta."""

    seed: int

    def run(self) -> Json:
        """Return the mean completion ratio and local share; raise PolicyError if a constraint other than Delta is broken."""
        problem = IropCase("cfm", "relative", 0.0, None, self.seed).problem()
        found = Cfm().solve(problem, Limit(1.0))
        least = [max(problem.least_local, 1 - profile.remote[-1]) for profile in problem.batch.profile]
        local = np.array([least_product(p, x) for p, x in zip(problem.batch.profile, least, strict=True)])
        solution = Solution(problem, replace(found.assignment, local=local))
        broken = set(check_assignment(problem, solution.assignment).count()) - {"4j"}
        if broken:
            raise PolicyError(f"{self}: constraints {sorted(broken)} are broken")
        return {"completion": float(np.nanmean(solution.completion)), "local": float(local.mean())}


def least_product(profile: Profile, least: float) -> float:
    """Return the share from `least` to 1 that minimizes x T(x), T = 1 + P^m(1 - x); the largest of several minima."""
    shares = np.linspace(1.0, least, STEPS)
    products = [x * (1 + float(profile.at(1 - x))) for x in shares.tolist()]
    return float(shares[int(np.argmin(products))])


def measure_memory_time(
    cases: Iterable[MemoryTimeCase], folder: Path, executor: Executor, progress: Progress | None = None
) -> dict[MemoryTimeCase, Json]:
    """Measure each case once, reusing the measurements in the folder."""
    return cached_measurements.measure_all(cases, MemoryTimeCase.run, folder, executor, progress=progress)
