"""Reproduction of IRoP (bounded slowdown at minimum energy): Figures 4 to 7 and all claims, under both readings of theta."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from poolwise.comparison.published import Key
from poolwise.comparison.verdicts import Measured
from poolwise.presentation.figure import Figure
from poolwise.registry import register
from poolwise.reproductions.irop import causes, claims, figures
from poolwise.reproductions.irop.memory_time import MemoryTimeCase, measure_memory_time
from poolwise.reproductions.irop.plan import AT_SIZE, SMALLER, THETAS, Grid
from poolwise.reproductions.irop.runs import measure_placement
from poolwise.reproductions.reproduction import Reproduction, ReproductionResult
from poolwise.runner import Executor, Progress

QUICK = Grid((0.05, 0.25), (0.0, 0.8, 1.0), 2, 2, (15, 30), 5.0, (4, 10), (6, 15), 1, 20.0)


@register("reproductions", "irop")
class IropReproduction(Reproduction):
    """Reproduction of Sefati et al.: workload placement with bounded slowdown."""

    title: ClassVar[str] = "Workload placement with bounded slowdown (IRoP)"
    paper: ClassVar[str] = "Sefati, Dolati, Ghaderi: Workload Placement with Bounded Slowdown in Disaggregated Datacenters"

    def run(
        self, out: Path, *, quick: bool, executor: Executor, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Measure the placements of the grid; see `Reproduction.run`."""
        grid = QUICK if quick else Grid()
        runs = measure_placement(grid.cases(figure), out, executor, progress)
        views = [claims.View(grid, runs, theta) for theta in THETAS]
        measured: dict[Key, Measured] = {}
        drawn: list[Figure] = []
        switches: dict[str, dict[Key, Measured]] = {}
        if figure not in SMALLER:
            memory_time = measure_memory_time([MemoryTimeCase(seed) for seed in range(grid.seeds)], out, executor, progress)
            for view in views:
                for part in (
                    claims.slowdown, claims.energy, claims.objective, claims.longest, claims.our_rows, causes.witness_rows,
                ):  # fmt: skip
                    measured |= part(view)
                measured |= causes.against_memory_time(view, memory_time)
            drawn += figures.at_size(grid, runs)
            switches = causes.switches(grid, runs)
        if figure not in AT_SIZE:
            for view in views:
                measured |= claims.optimum(view) | causes.optimum_witness_rows(view)
            measured |= claims.runtime(grid, runs)
            drawn += figures.times(grid, runs)
        return ReproductionResult(measured, drawn, _notes(grid), EXPLANATION, switches=switches)


def _notes(grid: Grid) -> list[str]:
    """Return the assumptions and restrictions that a reader must know before the numbers."""
    return [
        f"{grid.seeds} seeds (the paper: 100), {grid.small_seeds} for the comparison with OPT; intervals are 95 % by Student's "
        "t. Greatest and least values are taken over these seeds.",
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
