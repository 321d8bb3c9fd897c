"""Reproduction of VineSim: Figures 4 to 8, 11 to 14, 16 and 18, Tables 2 to 4, and questions that the report leaves open.

Source: E. Kanellou et al., VineSim (deliverable of the Vineyard project). The report prints its formats and set-ups, but not
its code and traces; `VineSimPlan.notes` lists the assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from poolwise.registry import register
from poolwise.reproductions.cached_measurements import measure_all
from poolwise.reproductions.reproduction import Reproduction, ReproductionResult
from poolwise.reproductions.vinesim import causes, claims, extensions, figures
from poolwise.reproductions.vinesim.plan import VineSimPlan
from poolwise.reproductions.vinesim.results import VineSimResults
from poolwise.reproductions.vinesim.setups import jobs_of, prepare, run_setup
from poolwise.runner import Executor, Progress


@register("reproductions", "vinesim")
@dataclass(frozen=True)
class VineSimReproduction(Reproduction):
    """Reproduction of Figures 4 to 8, 11 to 14, 16 and 18 of Kanellou et al., VineSim."""

    title: ClassVar[str] = "VineSim (heterogeneous accelerators)"
    paper: ClassVar[str] = (
        "E. Kanellou, N. Chrysos, S. Mavridis, Y. Sfakianakis, A. Bilas: VineSim, a simulator of heterogeneous datacenters "
        "(FORTH, report of the Vineyard project)"
    )

    def run(
        self, out: Path, *, quick: bool, executor: Executor, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Simulate every set-up at every time between arrivals (fewer times and seeds with `quick`)."""
        plan, jobs = VineSimPlan(quick), jobs_of(figure) if figure else None
        setups = [setup for setup in plan.setups() if jobs in (None, setup.jobs)]
        results = VineSimResults(plan, measure_all(setups, run_setup, out, executor, prepare, progress))
        if jobs is not None:
            return ReproductionResult(claims.measure(results, jobs), figures.draw(results, jobs), plan.notes())
        further = extensions.draw(results)
        return ReproductionResult(
            measured=claims.measure(results),
            figures=[*figures.draw(results), *further],
            beyond=frozenset(figure.name for figure in further),
            tables=extensions.tables(results),
            notes=plan.notes(),
            explanation=[*claims.explain(results), *extensions.explain(results)],
            switches=causes.switches(results),
        )
