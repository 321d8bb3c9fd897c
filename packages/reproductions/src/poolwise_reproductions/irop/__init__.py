"""Reproduction of IRoP (bounded slowdown at minimum energy): Figures 4 to 7 and all claims, under both readings of theta."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from poolwise_reproductions import catalog
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.irop import claims, figures, variants
from poolwise_reproductions.irop.plan import PRIMARY, QUICK, THETAS, Grid
from poolwise_reproductions.irop.runs import MemoryTimeCase
from poolwise_reproductions.published import Key
from poolwise_reproductions.reproduction import ALL, Part, Reproduction, ReproductionResult, Wanted, rows_of

AT_SIZE = Part(
    ("Figure 4", "Figure 5", "Figure 6", "Section V-B", "Ours"),
    Grid.at_size,
    (
        claims.figure_4, claims.figure_5, claims.figure_6, claims.heep_by_cores, claims.longest, claims.ours, claims.witnesses,
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
"""Figures at the paper's size and smaller ones, with the cases that they need, and their claims under each theta."""
LATENCY = Part(("Figure 1",), partial(Grid.varying, artifact="Figure 1"), (partial(variants.effects, artifact="Figure 1"),))
UNKNOWN = Part(
    ("Section II-B",), partial(Grid.varying, artifact="Section II-B"), (partial(variants.effects, artifact="Section II-B"),)
)
INTERIOR = Part(("Section IV-B",), Grid.interior, (partial(variants.effects, artifact="Section IV-B"), variants.solver))
BOUND = Part(("Theorem 1",), Grid.bounded, (variants.theorem_1,))
PARTS = (AT_SIZE, SMALLER, LATENCY, UNKNOWN, INTERIOR, BOUND)
"""All parts; the parts after the first two change one assumption, or compute the paper's bound."""


@dataclass(frozen=True)
class IropReproduction(Reproduction):
    """Reproduction of Sefati et al.: workload placement with bounded slowdown.

    Parameters
    ----------
    seeds
        Number of seeds of a full run.
    draws
        Number of seeds at the paper's size under the reading of theta by which the claims are judged; the paper uses 100.
    """

    seeds: int = 10
    draws: int = 100
    title: ClassVar[str] = "Workload placement with bounded slowdown (IRoP)"
    paper: ClassVar[str] = "Sefati, Dolati, Ghaderi: Workload Placement with Bounded Slowdown in Disaggregated Datacenters"

    def run(self, measure: Measurer, *, quick: bool, wanted: Wanted = ALL) -> ReproductionResult:
        """Measure the placements of the grid; see `Reproduction.run`."""
        grid, parts = QUICK if quick else Grid(seeds=self.seeds, draws=self.draws), wanted.parts(PARTS)
        runs = measure(case for part in parts for case in part.cases(grid))
        by_memory_time = [MemoryTimeCase(seed) for seed in (grid.seeds_of(PRIMARY) if AT_SIZE in parts else ())]
        memory_time = measure(by_memory_time)
        views = [claims.View(grid, runs, theta, memory_time, claims.substitutes(theta)) for theta in THETAS]
        measured = {key: value for view in views for key, value in rows_of(parts, view).items()}
        drawn = list(figures.at_size(grid, runs)) if AT_SIZE in parts else []
        drawn += figures.times(grid, runs) if SMALLER in parts else []
        switches = claims.switches(grid, runs) if AT_SIZE in parts else {}
        explanation = [] if wanted.figure else claims.explain(measured)
        rows = read_claims(catalog.find("claims", "irop.csv"))
        notes = [*_notes(grid, measured), *variants.describe(rows, measured)]
        return ReproductionResult(measured, drawn, notes, explanation, variants.table(rows, measured), switches=switches)


def _notes(grid: Grid, measured: Mapping[Key, Measured]) -> list[str]:
    """Return the assumptions and restrictions that a reader must know before the numbers."""
    return [
        f"{grid.draws} seeds (the paper: 100) at the paper's size with theta relative; {grid.seeds} with theta as printed and "
        f"for the runs with local memory filled up, {grid.small_seeds} for the comparison with OPT. Intervals are 95 % by "
        "Student's t. Maxima and minima are taken over these seeds.",
        f"Delta {grid.tolerances}, eta {grid.etas}. Methods are limited by work; only the run times of OPT have a time limit, "
        f"{grid.opt_seconds:g} s, and {grid.patience_s:g} s at sizes that it can solve.",
        "The claims are judged with slowdown relative to the requested completion time (theta relative), under which HEEP has "
        "the published slowdown of 0.25 if it sorts modules by the energy of the whole module, and not by the energy per core "
        "and frequency. Rows with theta as printed (the reading of the specification) and with the other key of HEEP are shown "
        "in addition and do not count as claims of the paper.",
        "HEEP runs once, at Delta 0.25, because the paper runs the baselines once (section V-B, Objective).",
        "Profiles are read off Figure 2 at their end points and assumed convex in between; a third of the modules is of each "
        "type.",
        "Table III, the errors of the fitted profiles, cannot be tested: the measured points are not published.",
        "CFM runs as its own authors ran it, with all memory local where it fits. As this paper describes it (local shares "
        f"that minimize memory times time), workloads take longer{claims.by_memory_time(measured)} (rows Ours).",
        "The mean completion ratio (1 + P^m) phi / F compares all methods, whichever theta a problem minimizes.",
        "The switches were chosen after the first runs had been inspected: a switch shows that a cause is sufficient.",
    ]
