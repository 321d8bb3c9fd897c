"""Reproduction of VineSim: Figures 4 to 8, 11 to 14, 16 and 18, Tables 2 to 4, and questions that the report leaves open.

Source: E. Kanellou et al., VineSim (deliverable of the Vineyard project). The report prints its formats and set-ups, but not
its code and traces; `VineSimPlan.notes` lists the assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.reproduction import (
    ALL,
    Part,
    Reproduction,
    ReproductionResult,
    Wanted,
    figures_of,
    rows_of,
    switches_of,
)
from poolwise_reproductions.vinesim import changes, claims, extensions, figures
from poolwise_reproductions.vinesim.plan import QUICK, VineSimPlan
from poolwise_reproductions.vinesim.results import VineSimResults

PARTS = (
    Part(("Table 2", "Table 4"), VineSimPlan.single, (claims.tasks, claims.table_4)),
    Part(("Abstract",), VineSimPlan.transfers, (claims.transfers,)),
    Part(("Figure 4",), VineSimPlan.mixes, (claims.figure_4,), (figures.mixes,)),
    Part(
        ("Figure 5", "Figure 6", "Figure 7", "Load axis"),
        VineSimPlan.sizes,
        (claims.figure_5, claims.figure_6, claims.figure_7),
        (figures.types, figures.strengths, figures.load_axis),
        (changes.size_switches,),
    ),
    Part(("Figure 8",), VineSimPlan.kernels, (claims.figure_8,), (figures.kernels,)),
    Part(
        ("Figure 11", "Figure 12", "Figure 13", "Figure 14", "Figure 16", "Figure 18", "Section 8.7"),
        VineSimPlan.policies,
        (claims.figure_11, claims.figure_13, claims.figure_14, claims.figure_16, claims.figure_18),
        (figures.policies, figures.samples, figures.data),
        (changes.data_switches,),
    ),
)
"""Figures and tables of the report, with the set-ups that they need, their claims, and their drawings."""


@dataclass(frozen=True)
class VineSimReproduction(Reproduction):
    """Reproduction of Figures 4 to 8, 11 to 14, 16 and 18 of Kanellou et al., VineSim."""

    title: ClassVar[str] = "VineSim (heterogeneous accelerators)"
    paper: ClassVar[str] = (
        "E. Kanellou, N. Chrysos, S. Mavridis, Y. Sfakianakis, A. Bilas: VineSim, a simulator of heterogeneous datacenters "
        "(FORTH, report of the Vineyard project)"
    )

    drawn: ClassVar[tuple[str, ...]] = (
        *(f"Figure {number}{letter}" for number, letters in figures.PANELS.items() for letter in letters),
    )

    def run(self, measure: Measurer, *, quick: bool, wanted: Wanted = ALL) -> ReproductionResult:
        """Simulate every set-up at every time between arrivals (fewer times and seeds with `quick`)."""
        plan, parts = QUICK if quick else VineSimPlan(), wanted.parts(PARTS)
        setups = [seeded for part in parts for setup in part.cases(plan) for seeded in plan.seeded(setup)]
        results = VineSimResults(measure(setups), plan)
        measured, drawn, switches = rows_of(parts, results), figures_of(parts, results), switches_of(parts, results)
        if wanted.figure:
            return ReproductionResult(measured, drawn, plan.notes(), switches=switches)
        further = list(extensions.draw(results))
        return ReproductionResult(
            measured,
            figures=[*drawn, *further],
            beyond=frozenset(figure.name for figure in further),
            tables=extensions.tables(results),
            notes=plan.notes(),
            explanation=[*claims.explain(results), *extensions.explain(results)],
            switches=switches,
        )
