"""Cases of the IRoP reproduction: the paper's size over tolerances and weights, small sizes compared with OPT, switches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import get_args

from poolwise.batch.problem.definition import Theta
from poolwise_reproductions.irop.runs import FILLED_UP, HEEP_ASCENDING, HEEP_BY_MODULE, LARGEST_FIRST, IropCase, ProblemVariant

THETAS: tuple[Theta, ...] = get_args(Theta)
PRIMARY: Theta = "relative"
"""Reading of theta under which the claims of the paper are judged: slowdown relative to the requested completion time."""
METHODS = ("irop", "place", "heep", "cfm", "first-fit", HEEP_BY_MODULE)
TIMED = ("irop", "opt")
SMALL = 30
FEW = 10
"""Number of workloads that OPT places on a few modules within a minute."""
STRICT, TENTH, FIFTH, LOOSE = 0.075, 0.10, 0.20, 0.25
"""Accepted slowdowns. The paper does not use `STRICT`; we check its reductions relative to CFM at this value alone, and at all
values up to `TENTH`, in the middle of its range. At `FIFTH`, IRoP is compared with HEEP in slowdown and energy. `LOOSE` is the
loosest value, at which HEEP runs once."""
VARIANTS: Mapping[str, Mapping[str, ProblemVariant]] = {
    "Figure 1": {f"latency {us:g} us": ProblemVariant(latency_us=us) for us in (1.0, 2.5, 5.0, 10.0)},
    "Section II-B": {f"{100 * part:g} % of the workloads unknown": ProblemVariant(unknown=part) for part in (0.25, 0.5)},
    "Section IV-B": {"interior point method": ProblemVariant(interior_point=True)},
}
"""Artifact -> condition -> single change under which the claims relative to CFM and HEEP are judged again.

The profiles have a latency of 5 us, so this value is the case without a change, on the same grid as the others.
"""
VARIED_ETAS = (0.0, 0.4, 0.8, 1.0)
"""Weights of energy in the runs with a variant."""


@dataclass(frozen=True)
class Grid:
    """Parameters of the runs.

    Attributes
    ----------
    tolerances, etas : accepted slowdowns and weights of energy
    seeds, small_seeds : number of seeds at the paper's size, and of the comparison with OPT
    draws : number of seeds at the paper's size under `PRIMARY`, the reading by which the claims are judged; the paper uses 100
    opt_work : limit of work of OPT in the comparison
    sizes, opt_seconds : sizes of Figure 7, and the time limit of OPT there, s
    few_workloads, few_modules : sizes that OPT can solve: workloads on 30 modules, modules for 10 workloads
    few_seeds, patience_s : number of seeds and time limit of OPT, s, at these sizes
    variant_seeds : maximum number of seeds of the variants
    """

    tolerances: tuple[float, ...] = (0.05, 0.10, 0.15, 0.20, 0.25)
    etas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    seeds: int = 10
    small_seeds: int = 10
    draws: int = 100
    opt_work: float = 0.2
    sizes: tuple[int, ...] = (15, 20, 25, 30)
    opt_seconds: float = 10.0
    few_workloads: tuple[int, ...] = (4, 6, 8, 10)
    few_modules: tuple[int, ...] = (6, 9, 12, 15)
    few_seeds: int = 10
    patience_s: float = 60.0
    variant_seeds: int = 5

    @property
    def varied(self) -> Grid:
        """Grid of the variants: fewer weights of energy and seeds."""
        seeds = min(self.seeds, self.variant_seeds)
        return replace(self, etas=tuple(eta for eta in self.etas if eta in VARIED_ETAS), seeds=seeds, draws=seeds)

    def seeds_of(self, theta: Theta) -> range:
        """Return the seeds at the paper's size under a reading of theta."""
        return range(max(self.draws, self.seeds) if theta == PRIMARY else self.seeds)

    @property
    def fifth_etas(self) -> tuple[float, ...]:
        """Weights of energy for the comparison with HEEP at `FIFTH`; empty if the grid lacks that accepted slowdown."""
        return tuple(eta for eta in self.etas if eta >= 0.2) if FIFTH in self.tolerances else ()

    def at_size(self) -> list[IropCase]:
        """Return the cases at the paper's size, and those that verify causes."""
        cases = []
        for theta in THETAS:
            points = product(self.seeds_of(theta), METHODS, self.tolerances, self.etas)
            cases += [IropCase(method, theta, eta, tolerance, seed) for seed, method, tolerance, eta in points]
            cases += [IropCase(LARGEST_FIRST, theta, 1.0, LOOSE, seed) for seed in self.seeds_of(theta)]
        filled = product(range(self.seeds), self.tolerances, self.etas)
        cases += [IropCase(FILLED_UP, PRIMARY, eta, tolerance, seed) for seed, tolerance, eta in filled]
        for seed in self.seeds_of(PRIMARY):
            cases += [IropCase(method, PRIMARY, 0.0, STRICT, seed) for method in ("irop", "cfm")]
            cases.append(IropCase(HEEP_ASCENDING, PRIMARY, 1.0, LOOSE, seed))
        return list(dict.fromkeys(cases))

    def smaller(self) -> list[IropCase]:
        """Return the smaller cases of Figure 7, seed by seed, so that an interrupted run has complete seeds."""
        points = product(THETAS, range(self.small_seeds), ("irop", "opt", "place", LARGEST_FIRST, FILLED_UP))
        cases = [self.small(method, theta, seed) for theta, seed, method in points]
        sizes = [(size, SMALL) for size in self.sizes] + [(SMALL, size) for size in self.sizes]
        cases += [self.sized(method, size) for size in sizes for method in TIMED]
        few = [*((size, SMALL) for size in self.few_workloads), *((FEW, size) for size in self.few_modules)]
        return cases + [self.few(method, size, seed) for seed in range(self.few_seeds) for size in few for method in TIMED]

    def varying(self, artifact: str) -> list[IropCase]:
        """Return the cases of the variants of an artifact, seed by seed; the interior point method affects IRoP alone."""
        grid, methods = self.varied, ("irop", "cfm", "first-fit", HEEP_BY_MODULE)
        points = product(range(grid.seeds), VARIANTS[artifact].values(), grid.tolerances, grid.etas, methods)
        return [IropCase(m, PRIMARY, eta, t, seed, variant=of_method(v, m)) for seed, v, t, eta, m in points]

    def interior(self) -> list[IropCase]:
        """Return the cases of the interior point method, with those of the simplex method and of the comparison with OPT."""
        grid, (solver,) = self.varied, VARIANTS["Section IV-B"].values()
        points = product(range(grid.seeds), grid.tolerances, grid.etas)
        plain = [IropCase("irop", PRIMARY, eta, t, seed) for seed, t, eta in points]
        small = [replace(self.small("irop", PRIMARY, seed), variant=solver) for seed in range(self.small_seeds)]
        return [*self.varying("Section IV-B"), *plain, *small, *self.optimum()]

    def bounded(self) -> list[IropCase]:
        """Return the cases of Theorem 1: IRoP at eta 1, where the objective is the energy, and the comparison with OPT."""
        seeded = [(theta, seed) for theta in THETAS for seed in self.seeds_of(theta)]
        points = product(seeded, self.tolerances)
        return [*(IropCase("irop", theta, 1.0, t, seed) for (theta, seed), t in points), *self.optimum()]

    def optimum(self) -> list[IropCase]:
        """Return the comparison of IRoP with OPT under `PRIMARY`."""
        points = product(range(self.small_seeds), ("irop", "opt", "place"))
        return [self.small(method, PRIMARY, seed) for seed, method in points]

    def small(self, method: str, theta: Theta, seed: int) -> IropCase:
        """Return a case at the size that the paper compares with OPT."""
        work = {"opt": self.opt_work, "place": 4.0}.get(method, 0.05)
        return IropCase(method, theta, 0.5, None, seed, SMALL, SMALL, work)

    def sized(self, method: str, size: tuple[int, int]) -> IropCase:
        """Return a case at a size of Figure 7; only its run time is used."""
        return IropCase(method, "printed", 0.5, None, 0, *size, seconds=self.opt_seconds if method == "opt" else None)

    def few(self, method: str, size: tuple[int, int], seed: int) -> IropCase:
        """Return a case at a size that OPT can solve."""
        return IropCase(method, "printed", 0.5, None, seed, *size, seconds=self.patience_s if method == "opt" else None)


def of_method(variant: ProblemVariant, method: str) -> ProblemVariant:
    """Return the part of the variant that affects a method: the choice of LP solver affects IRoP alone."""
    return variant if method == "irop" else replace(variant, interior_point=False)


QUICK = Grid((0.05, 0.25), (0.0, 0.8, 1.0), 2, 2, 2, 0.1, (15, 30), 5.0, (4, 10), (6, 15), 1, 20.0)
