"""Reproduction of Fair Memory: Figures 5 to 12 on generated traces of both machines, under two readings of the paper.

Source: Li et al., "Job Scheduling in High Performance Computing Systems with Disaggregated Memory Resources". The paper's
traces are not openly licensed, so the traces here are generated from the published marginals (`poolwise.traces.generators`).
Values that depend on the exact trace are judged with a tolerance; orders and shapes are judged by their own rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from poolwise import catalog
from poolwise.comparison.published import read_claims
from poolwise.engines.list_scheduling.loading import load_all
from poolwise.registry import register
from poolwise.reproductions.cached_measurements import measure_all
from poolwise.reproductions.fair_memory import causes, claims, figures
from poolwise.reproductions.fair_memory.extensions import measure_extensions
from poolwise.reproductions.fair_memory.plan import FULL, QUICK
from poolwise.reproductions.fair_memory.readings import AS_RUN
from poolwise.reproductions.fair_memory.runs import MACHINES, FairMemoryResults, GroupResult, simulate_group
from poolwise.reproductions.fair_memory.traces import TRACES
from poolwise.reproductions.reproduction import Reproduction, ReproductionResult
from poolwise.runner import Executor, Progress


@register("reproductions", "fair-memory")
@dataclass(frozen=True)
class FairMemory(Reproduction):
    """Reproduction of Figures 5 to 12 and Tables I and II of Li et al., Fair Memory."""

    drawn: ClassVar[tuple[str, ...]] = ("Figure 6",)
    title: ClassVar[str] = "Fair Memory (memory pools)"
    paper: ClassVar[str] = (
        "J. Li, G. Michelogiannakis, S. Maloney, B. Cook, E. Suarez, J. Shalf, Y. Chen: Job Scheduling in High Performance "
        "Computing Systems with Disaggregated Memory Resources"
    )

    def run(
        self, out: Path, *, quick: bool, executor: Executor, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Simulate both machines over all seeds (`quick`: one seed, every third pool size) and measure the claims."""
        plan = QUICK if quick else FULL
        groups = plan.groups(figure)
        done = measure_all(groups, simulate_group, out, executor, load_all, progress)
        results = FairMemoryResults.of([GroupResult.of(done[group]) for group in groups])
        results.frame.write_parquet(out / "runs.parquet")
        wanted = read_claims(catalog.find("reproductions", "fair-memory.csv"))
        return ReproductionResult(
            measured=claims.measure_claims(results) | measure_extensions(results),
            readings={"as run": claims.measure_claims(results, AS_RUN)},
            figures=[*figures.draw(results), *causes.draw_causes(results, wanted)],
            notes=notes(results, plan.seeds, quick),
            explanation=claims.explain(results),
        )


def notes(results: FairMemoryResults, seeds: int, quick: bool) -> list[str]:
    """Return the assumptions and restrictions that a reader must know before the numbers."""
    sentences = [
        f"Generated traces, {seeds} seed{'s' if seeds > 1 else ''}; intervals are 95 % over seeds (Student's t). Times are "
        "not divided by 10, unlike in the paper's runs.",
        "Two readings: the specification's, and as run. As run, backfilling considers nodes only and protects the head's whole "
        "reservation (no extra nodes), F1 has the sign as printed, and fairness is measured against 512 GB in every node.",
        "Values cover the paper's population (jobs after the 3000th that end inside the measurement window) unless marked all "
        "jobs.",
    ]
    if not quick:
        sentences.append(
            f"The {len(TRACES)} other traces of the sensitivity analysis were chosen from about 26 in an exploratory search "
            "by their effect on the lead of FM: they show the range of possible results and confirm nothing."
        )
    else:
        sentences.append("A quick run: one seed and every third pool size, so intervals and some rows are missing.")
    for name in MACHINES:
        counts = results.rejected(name)
        shown = ", ".join(f"{size} TB: {count:.0f}" for size, count in counts.items() if count)
        sentences.append(f"{name}: jobs rejected because they never fit, by pool size per rack: {shown or 'none'}.")
    return sentences
