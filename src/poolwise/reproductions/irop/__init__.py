"""Reproduction of IRoP (bounded slowdown at minimum energy): Figures 4 to 7 and all claims, under both readings of theta."""

from __future__ import annotations

from typing import ClassVar

from poolwise.registry import register
from poolwise.reproductions.cases import Measurer
from poolwise.reproductions.irop import claims, figures
from poolwise.reproductions.irop.plan import QUICK, THETAS, Grid
from poolwise.reproductions.irop.runs import MemoryTimeCase
from poolwise.reproductions.reproduction import ALL, Part, Reproduction, ReproductionResult, Wanted, rows_of

AT_SIZE = Part(
    ("Figure 4", "Figure 5", "Figure 6", "Section V-B", "Ours"),
    Grid.at_size,
    (
        claims.figure_4, claims.figure_5, claims.figure_6, claims.longest, claims.ours, claims.witnesses,
        claims.against_memory_time,
    ),
    conditions={"Ours": ("theta", "eta", "Delta")},
)  # fmt: skip
SMALLER = Part(
    ("Figure 7", "Ours"),
    Grid.smaller,
    (claims.figure_7, claims.optimum_witnesses, claims.growth),
    conditions={"Ours": ("30 x 30",)},
)
"""Figures at the paper's size and at smaller sizes, the cases that they need, and their claims under each reading of theta."""


@register("reproductions", "irop")
class IropReproduction(Reproduction):
    """Reproduction of Sefati et al.: workload placement with bounded slowdown."""

    title: ClassVar[str] = "Workload placement with bounded slowdown (IRoP)"
    paper: ClassVar[str] = "Sefati, Dolati, Ghaderi: Workload Placement with Bounded Slowdown in Disaggregated Datacenters"

    def run(self, measure: Measurer, *, quick: bool, wanted: Wanted = ALL) -> ReproductionResult:
        """Measure the placements of the grid; see `Reproduction.run`."""
        grid, parts = QUICK if quick else Grid(), wanted.parts((AT_SIZE, SMALLER))
        runs = measure(case for part in parts for case in part.cases(grid))
        by_memory_time = [MemoryTimeCase(seed) for seed in range(grid.seeds if AT_SIZE in parts else 0)]
        memory_time = measure(by_memory_time)
        views = [claims.View(grid, runs, theta, memory_time) for theta in THETAS]
        measured = {key: value for view in views for key, value in rows_of(parts, view).items()}
        drawn = list(figures.at_size(grid, runs)) if AT_SIZE in parts else []
        drawn += figures.times(grid, runs) if SMALLER in parts else []
        switches = claims.switches(grid, runs) if AT_SIZE in parts else {}
        return ReproductionResult(measured, drawn, _notes(grid), EXPLANATION, switches=switches)


def _notes(grid: Grid) -> list[str]:
    """Return the assumptions and restrictions that a reader must know before the numbers."""
    return [
        f"{grid.seeds} seeds (the paper: 100), {grid.small_seeds} for the comparison with OPT; intervals are 95 % by Student's "
        "t. Maxima and minima are taken over these seeds.",
        f"Delta {grid.tolerances}, eta {grid.etas}; the time limit of OPT is {grid.opt_seconds:g} s, and {grid.patience_s:g} s "
        "at sizes that it can solve.",
        "Profiles are read off Figure 2 at their end points and assumed convex in between; a third of the modules is of each "
        "type.",
        "Table III, the errors of the fitted profiles, cannot be tested: the measured points are not published.",
        "CFM runs as its own authors ran it, with all memory local where it fits. As this paper describes it (local shares "
        "that minimize memory times time), workloads take about twice as long, and IRoP's reduction is 36 to 48 % instead of "
        "the published 5 % (rows Ours).",
        "The mean completion ratio (1 + P^m) phi / F compares all methods, whichever theta a problem minimizes.",
        "The switches were chosen after the first runs had been inspected: a switch shows that a cause is sufficient.",
    ]


EXPLANATION = (
    "At the paper's size neither local nor remote memory binds: all memory fits locally on about a hundred modules. With theta "
    "as printed, CFM and first fit therefore have a sum of exactly 0 at any eta, and no method can have less.",
    "Read as a bound on completion time, theta also penalizes slow modules; CFM and first fit then exceed the accepted "
    "slowdown of about a third of the workloads, because they ignore frequency.",
    "Fixing the shares of local memory in advance (equation 6) costs more than rounding: the bound of F-DWLP is well above "
    "what `place` reaches on DWLP, where a module's remaining memory goes to the workload that gains most.",
)
