"""Fair Memory, reproduced: Figures 5 to 12 on generated traces of both machines, all pool sizes, six orders, in two readings.

Source: Li et al., "Job Scheduling in High Performance Computing Systems with Disaggregated Memory Resources". The paper's
traces are not openly licensed: ours are drawn from what is published about them (`poolwise.traces.generators`), so values
that hang on the exact trace are judged with a tolerance, and orders and shapes by their own rules.
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
from poolwise.reproductions.fair_memory.extensions import measure_ours
from poolwise.reproductions.fair_memory.plan import FULL, QUICK
from poolwise.reproductions.fair_memory.readings import AS_RUN
from poolwise.reproductions.fair_memory.runs import MACHINES, Done, FairMemoryResults, simulate_batch
from poolwise.reproductions.fair_memory.traces import TRACES
from poolwise.reproductions.reproduction import Reproduction, ReproductionResult
from poolwise.runner import Executor, Progress


@register("reproductions", "fair-memory")
@dataclass(frozen=True)
class FairMemory(Reproduction):
    """Li et al., Fair Memory: Figures 5 to 12, Tables I and II."""

    drawn: ClassVar[tuple[str, ...]] = ("Figure 6",)
    title: ClassVar[str] = "Fair Memory (memory pools)"
    paper: ClassVar[str] = (
        "J. Li, G. Michelogiannakis, S. Maloney, B. Cook, E. Suarez, J. Shalf, Y. Chen: Job Scheduling in High Performance "
        "Computing Systems with Disaggregated Memory Resources"
    )

    def run(
        self, out: Path, *, quick: bool, executor: Executor, progress: Progress | None = None, figure: str = ""
    ) -> ReproductionResult:
        """Simulate both machines over all seeds (one with `quick`, and every third pool size) and judge the claims."""
        plan = QUICK if quick else FULL
        batches = plan.groups(figure)
        done = measure_all(batches, simulate_batch, out, executor, load_all, progress)
        results = FairMemoryResults.of([Done.of(done[batch]) for batch in batches])
        results.frame.write_parquet(out / "runs.parquet")
        wanted = read_claims(catalog.find("reproductions", "fair-memory.csv"))
        return ReproductionResult(
            measured=claims.measure_claims(results) | measure_ours(results),
            readings={"as run": claims.measure_claims(results, AS_RUN)},
            figures=[*figures.draw(results), *causes.draw_causes(results, wanted)],
            notes=notes(results, plan.seeds, quick),
            explanation=claims.explain(results),
        )


def notes(results: FairMemoryResults, seeds: int, quick: bool) -> list[str]:
    """What a reader must know before the numbers."""
    said = [
        f"Generated traces, {seeds} seed{'s' if seeds > 1 else ''}; intervals are 95 % over seeds (Student's t). Times are as "
        "they are, not divided by 10 as in the paper's runs.",
        "Two readings: the specification's, and as run: backfilling that looks at nodes only and keeps the head's whole "
        "reservation (no extra nodes), F1 with the sign as printed, fairness against 512 GB in every node.",
        "Values stand for the paper's population (jobs after the 3000th that end inside the window) unless they say all jobs.",
    ]
    if not quick:
        said.append(
            f"The {len(TRACES)} other traces of the sensitivity part were chosen in an exploratory search of about 26, after a "
            "look at what they do to the lead of FM: they show how wide the answer is, and confirm nothing."
        )
    else:
        said.append("A quick run: one seed and every third pool size, so intervals are missing and some rows are not measured.")
    for name in MACHINES:
        counts = results.rejected(name)
        shown = ", ".join(f"{size} TB: {count:.0f}" for size, count in counts.items() if count)
        said.append(f"{name}: jobs rejected because they never fit, by pool size per rack: {shown or 'none'}.")
    return said
