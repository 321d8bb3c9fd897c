"""Cases of the IRoP reproduction: one placement by one method, or by CFM as the IRoP paper describes it, and its check."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from poolwise import catalog
from poolwise.batch.methods.cfm import Cfm
from poolwise.batch.methods.heep import Heep
from poolwise.batch.methods.irop import Irop, approximation_ratio
from poolwise.batch.methods.method import Limit, Method, find_method
from poolwise.batch.methods.place import Place
from poolwise.batch.problem.assignment import Solution
from poolwise.batch.problem.check import check_assignment
from poolwise.batch.problem.definition import Batch, Problem, Theta
from poolwise.batch.search.costs import costs_of
from poolwise.batch.search.packing import BinPacking, assignment_of
from poolwise.errors import PolicyError, PoolwiseError
from poolwise.files.batch import read_batch
from poolwise.hashing import Json, digest
from poolwise.performance.profiles import Profile
from poolwise.random import uniform
from poolwise_reproductions.cases import MeasuredCase

FILE = catalog.find("batches", "batch-150x1200")
"""Problems of the paper's distribution."""
HEEP_BY_MODULE, HEEP_ASCENDING = "heep, by module", "heep, by module, ascending"
"""Names of HEEP with modules sorted by their whole energy, and of this variant with the smallest workloads first."""
LARGEST_FIRST, FILLED_UP = "irop, largest first", "irop, filled up"
"""Names of IRoP that rounds large workloads first, and of IRoP that then assigns the remaining local memory of its modules."""
IGNORE_TOLERANCE = ("cfm", "first-fit")
"""Methods without an accepted slowdown: they may exceed it, and the violations are counted."""


PUBLISHED_US = 5.0
"""Latency of remote memory (us) at which the profiles of Figure 2 were measured."""


@dataclass(frozen=True)
class ProblemVariant:
    """Assumptions of a placement that may differ from those of the paper's figures; each is changed alone.

    Attributes
    ----------
    latency_us : latency of remote memory, us; P^m is proportional to it (assumed: the number of remote accesses is constant)
    unknown : fraction of the workloads, drawn by the seed, that have no profile and are placed with zero tolerance
    interior_point : IRoP solves its linear programs by an interior point method
    """

    latency_us: float = PUBLISHED_US
    unknown: float = 0.0
    interior_point: bool = False


AS_PUBLISHED = ProblemVariant()


@dataclass(frozen=True)
class IropCase(MeasuredCase):
    """Placement by one method of one problem of the paper's distribution.

    Attributes
    ----------
    tolerance : Delta of all workloads; None for 5 to 25 %
    workloads, modules : size; each type has a third of the modules
    work : limit of work; the placement depends on it alone, not on the speed of the computer
    seconds : time limit of OPT where its run time is measured; it replaces the limit of work
    variant : changed assumptions
    """

    method: str
    theta: Theta
    eta: float
    tolerance: float | None
    seed: int
    workloads: int = 150
    modules: int = 1200
    work: float = 0.05
    seconds: float | None = None
    variant: ProblemVariant = AS_PUBLISHED

    def inputs(self) -> Json:
        """Return the hash of the batch file."""
        return {"batch": digest(FILE.read_bytes())}

    def problem(self) -> Problem:
        """Draw the problem; smaller sizes take the first workloads, and the first modules of each type."""
        whole = read_batch(FILE, seed=self.seed, eta=self.eta, theta=self.theta, tolerance=self.tolerance)
        whole = replace(whole, batch=self._changed(whole.batch))
        if (self.workloads, self.modules) == (len(whole.batch), len(whole.modules)):
            return whole
        rows = [members[: self.modules // len(whole.groups)] for _, members in whole.groups.ids()]
        modules = whole.modules.select_rows(np.sort(np.concatenate(rows)))
        return replace(whole, batch=whole.batch.select_rows(np.arange(self.workloads)), modules=modules)

    def _changed(self, batch: Batch) -> Batch:
        """Return the workloads under the variant."""
        factor, n = self.variant.latency_us / PUBLISHED_US, len(batch)
        profiles = {each: replace(each, slowdown=tuple(s * factor for s in each.slowdown)) for each in set(batch.profile)}
        batch = replace(batch, profile=tuple(profiles[each] for each in batch.profile))
        order = np.argsort(uniform(self.seed, "unknown workloads", np.arange(n)))
        return batch.without_profile(order[: round(self.variant.unknown * n)])

    @staticmethod
    def prepare(cases: Sequence[IropCase]) -> None:
        """Compile the kernels of local search."""
        Place().prepare()

    def measure(self) -> Json:
        """Place the workloads and check the result; raise PolicyError if it breaks a constraint that the method observes."""
        problem = self.problem()
        begin = time.process_time()
        try:
            solution = self._method().solve(problem, Limit.by_work(self.work) if self.seconds is None else Limit(self.seconds))
        except PoolwiseError as error:
            return {"failed": str(error), "cpu_s": time.process_time() - begin}
        cpu_s = time.process_time() - begin
        verdict = check_assignment(problem, solution.assignment, partial=bool(solution.dropped))
        allowed = {"4j"} if self.method in IGNORE_TOLERANCE else set()
        if set(verdict.count()) - allowed:
            raise PolicyError(f"{self}: {verdict.violations[0]}")
        return {
            **_used(problem, solution),
            "theta": float(np.nansum(solution.theta)),
            "completion": float(np.nanmean(solution.completion)),
            "energy": solution.energy,
            "objective": solution.objective,
            "bound": solution.bound if np.isfinite(solution.bound) else None,
            "violations": verdict.count().get("4j", 0),
            "dropped": len(solution.dropped),
            "status": solution.status,
            "cpu_s": cpu_s,
            "psi": approximation_ratio(problem),
        }

    def _method(self) -> Method:
        variants: dict[str, Method] = {
            HEEP_BY_MODULE: _HeepByModule(),
            HEEP_ASCENDING: _HeepByModule(ascending=True),
            "irop": Irop(interior_point=self.variant.interior_point),
            LARGEST_FIRST: Irop(largest_first=True),
            FILLED_UP: _FilledUp(),
        }
        return variants[self.method] if self.method in variants else find_method(self.method)


@dataclass(frozen=True)
class _HeepByModule(Method):
    """HEEP with modules sorted by the energy of the whole module.

    The paper says "their demand and energy efficiency" without defining either.
    """

    ascending: bool = False

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place as HEEP does, but sort by the energy of the whole module instead of that per core and unit of frequency."""
        modules = problem.modules
        whole = (modules.static + modules.dynamic) * modules.cores * modules.frequency
        substituted = replace(problem, modules=replace(modules, static=whole, dynamic=np.zeros(len(whole))))
        solution = Heep(self.ascending).solve(substituted, limit)
        return Solution(problem, solution.assignment, dropped=solution.dropped, unmet=solution.unmet)


@dataclass(frozen=True)
class _FilledUp(Method):
    """IRoP that afterwards gives remaining local memory to the workloads that gain most, which equation (6) forbids."""

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place as IRoP does and redistribute the memory of each module; raise PolicyError if IRoP drops a workload."""
        solution = Irop().solve(problem, limit)
        if solution.dropped:
            raise PolicyError("IRoP dropped workloads; use a smaller batch or more modules")
        modules, slot = np.unique(solution.assignment.module, return_inverse=True)
        kind = np.zeros(len(problem.batch), dtype=np.int64)
        kind[: len(modules)] = problem.groups.of_module[modules]
        packing = BinPacking(slot.astype(np.int64), kind, solution.objective, 0)
        return Solution(problem, assignment_of(problem, costs_of(problem), packing))


def _used(problem: Problem, solution: Solution) -> dict[str, float]:
    """Return the used shares of cores and local memory of the modules that hold any workload."""
    placed = solution.assignment.placed
    module = solution.assignment.module[placed]
    on = np.unique(module)
    local = float((solution.assignment.local[placed] * problem.batch.memory[placed]).sum())
    cores, memory = float(problem.modules.free_cores[on].sum()), float(problem.modules.memory[on].sum())
    return {"cores_used": float(problem.batch.cores[placed].sum()) / cores, "memory_used": local / memory}


STEPS = 301
"""Number of candidate local shares, from the smallest allowed share to 1."""


@dataclass(frozen=True)
class MemoryTimeCase(MeasuredCase):
    """Placement at the paper's size on the modules that CFM chooses, each workload with the share that `least_product` finds.

    It does not depend on Delta and eta.
    """

    seed: int

    def inputs(self) -> Json:
        """Return the hash of the batch file."""
        return {"batch": digest(FILE.read_bytes())}

    def measure(self) -> Json:
        """Return the mean completion ratio and local share; raise PolicyError if a constraint other than Delta is broken."""
        problem = IropCase("cfm", "relative", 0.0, None, self.seed).problem()
        cfm = Cfm().solve(problem, Limit.by_work(1.0))
        least = [max(problem.least_local, 1 - profile.remote[-1]) for profile in problem.batch.profile]
        local = np.array([least_product(p, x) for p, x in zip(problem.batch.profile, least, strict=True)])
        solution = Solution(problem, replace(cfm.assignment, local=local))
        broken = set(check_assignment(problem, solution.assignment).count()) - {"4j"}
        if broken:
            raise PolicyError(f"{self}: constraints {sorted(broken)} are broken")
        return {"completion": float(np.nanmean(solution.completion)), "local": float(local.mean())}


def least_product(profile: Profile, least: float) -> float:
    """Return the share from `least` to 1 that minimizes x T(x), T = 1 + P^m(1 - x); the largest of several minima."""
    shares = np.linspace(1.0, least, STEPS)
    products = [x * (1 + float(profile.at(1 - x))) for x in shares.tolist()]
    return float(shares[int(np.argmin(products))])
