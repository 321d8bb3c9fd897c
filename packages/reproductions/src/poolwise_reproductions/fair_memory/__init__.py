"""Reproduction of Fair Memory: Figures 5 to 12 on generated traces of both machines, with three switches for open choices.

Source: Li et al., "Job Scheduling in High Performance Computing Systems with Disaggregated Memory Resources". The paper's
traces are not openly licensed, so the traces here are generated from the published marginals (`poolwise.traces.generators`).
Values that depend on the exact trace are judged with a tolerance; orders and shapes are judged by their own rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import polars as pl

from poolwise_reproductions import catalog
from poolwise_reproductions.cases import Measurer
from poolwise_reproductions.claims_file import read_claims
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.fair_memory import additions, changes, claims, figures
from poolwise_reproductions.fair_memory.plan import FULL, QUICK, FairMemoryPlan
from poolwise_reproductions.fair_memory.readings import SPEC, FairMemoryReading, ablations
from poolwise_reproductions.fair_memory.results import FairMemoryResults
from poolwise_reproductions.fair_memory.runs import CDF, LATENCIES, MACHINES, SAMPLES
from poolwise_reproductions.fair_memory.traces import TRACES
from poolwise_reproductions.published import Claim, Key
from poolwise_reproductions.reproduction import ALL, Part, Reproduction, ReproductionResult, Wanted, figures_of, rows_of

SCOPE = "Latency of the system scope"
PAPER = (
    Part(("Figure 5", "Section III-A"), rows=(claims.kernels,), draw=(figures.figure_5,)),
    Part(("Figure 6",), draw=(figures.figure_6,)),
    Part(("Section III-B",), rows=(claims.marginals,)),
    Part(("Section IV-C",), rows=(claims.memory_saved,)),
    Part(("Figure 7",), FairMemoryPlan.figure_7, (claims.figure_7,), (figures.figure_7,)),
    Part(("Figure 8",), FairMemoryPlan.two_sizes, (claims.figure_8,), (figures.figure_8,)),
    Part(("Figure 9",), FairMemoryPlan.scopes, (claims.figure_9,), (figures.figure_9,)),
    Part(("Figure 10",), FairMemoryPlan.costs, (claims.figure_10,), (figures.figure_10,)),
    Part(("Figure 11",), FairMemoryPlan.optimum, (claims.figure_11,), (figures.figure_11,)),
    Part(("Figure 12",), FairMemoryPlan.optimum, (claims.figure_12,), (figures.figure_12,)),
)
"""Figures of the paper, with the runs that they need, their claims on each machine, and their drawings."""
OURS = (
    Part(("Parity", "Discrimination"), FairMemoryPlan.two_sizes, (additions.parity, additions.discrimination)),
    Part(("Section II-C",), FairMemoryPlan.two_sizes, (additions.extremes,)),
    Part((SCOPE,), FairMemoryPlan.latencies, (additions.latencies,)),
    Part(("Backfilling",), FairMemoryPlan.pools, (additions.backfills,), (figures.backfills,)),
    Part(("Sensitivity",), FairMemoryPlan.other_traces, (additions.sensitivity,), (figures.sensitivity,)),
)
"""Additions to the paper: assumptions that it leaves open, and other traces."""


def measured(parts: Sequence[Part], results: FairMemoryResults, reading: FairMemoryReading = SPEC) -> dict[Key, Measured]:
    """Return the measured rows of some parts under a reading, on both machines."""
    views = [results.on(machine, reading) for machine in MACHINES]
    return {key: value for each in views for key, value in rows_of(parts, each).items()}


@dataclass(frozen=True)
class FairMemory(Reproduction):
    """Reproduction of Figures 5 to 12 and Tables I and II of Li et al., Fair Memory."""

    drawn: ClassVar[tuple[str, ...]] = ("Figure 6",)
    title: ClassVar[str] = "Fair Memory (memory pools)"
    paper: ClassVar[str] = (
        "J. Li, G. Michelogiannakis, S. Maloney, B. Cook, E. Suarez, J. Shalf, Y. Chen: Job Scheduling in High Performance "
        "Computing Systems with Disaggregated Memory Resources"
    )

    def run(self, measure: Measurer, *, quick: bool, wanted: Wanted = ALL) -> ReproductionResult:
        """Simulate both machines over all seeds (`quick`: one seed, every third pool size) and measure the claims."""
        plan = QUICK if quick else FULL
        paper, ours = wanted.parts(PAPER), wanted.parts(OURS)
        needed = {case for part in (*paper, *ours) for case in part.cases(plan)}
        all_claims = read_claims(catalog.find("claims", "fair-memory.csv"))
        alone = [] if quick else changes.needed(all_claims, paper, plan.seeds)
        planned = [*plan.cases(), *plan.repeated()]
        runs = measure([*(case for case in planned if case in needed), *alone])
        results = FairMemoryResults(runs, plan.seeds, "perlmutter", repeats=plan.repeats)
        rows = [{**asdict(case), **{k: v for k, v in run.items() if k not in (*SAMPLES, CDF)}} for case, run in runs.items()]
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(measure.folder / "runs.parquet")
        ablated = {label: measured(paper, results, reading) for label, reading in ablations().items()}
        measurements = measured([*paper, *ours], results)
        return ReproductionResult(
            measured=measurements,
            switches={label: measurements for label, measurements in ablated.items() if label != "spec"}
            | changes.verifying(all_claims, results)
            | changes.near_in_rack(results),
            texts=changes.TEXTS,
            figures=[*figures_of(paper, results), figures.ablation(all_claims, ablated), *figures_of(ours, results)],
            notes=[
                *notes(results, plan.seeds, quick),
                *of_the_scope(all_claims, measurements, plan.seeds),
                *missing(all_claims, measurements),
            ],
            explanation=[] if wanted.figure else claims.explain(results),
        )


def notes(results: FairMemoryResults, seeds: int, quick: bool) -> list[str]:
    """Return the assumptions and restrictions that a reader must know before the numbers."""
    sentences = [
        f"Generated traces, {seeds} seed{'s' if seeds > 1 else ''}; intervals are 95 % over seeds (Student's t). Times are "
        "not divided by 10, unlike in the paper's runs.",
        "Three switches are open questions to the authors: backfilling that considers nodes only and protects the head's whole "
        "reservation (no extra nodes), F1 with the sign as printed, and fairness against 512 GB in every node. Under their "
        "combination the paper's order appears. No source shows that the authors ran it, so no claim is counted as reproduced "
        "by it; the figure of the switches shows each alone and in pairs.",
        "Values cover the paper's population (jobs after the 3000th that end inside the measurement window) unless marked all "
        "jobs.",
    ]
    if not quick:
        sentences += [
            f"All orders at 44 TB and at the largest pools, as well as Figures 9 and 11, have {FULL.repeats} seeds.",
            changes.NOTE,
        ]
        sentences.append(
            f"The {len(TRACES)} other traces of the sensitivity analysis were chosen from about 26 in an exploratory search "
            "by their effect on the lead of FM: they show the range of possible results and confirm nothing."
        )
    else:
        sentences.append("A quick run: one seed and every third pool size, so intervals and some rows are missing.")
    for name in MACHINES:
        view = results.on(name)
        if not view.sizes:
            continue
        counts = {size: float(view("rejected", "fm", size).mean()) for size in view.sizes}
        shown = ", ".join(f"{size} TB: {count:.0f}" for size, count in counts.items() if count)
        sentences.append(f"{name}: jobs rejected because they never fit, by pool size per rack: {shown or 'none'}.")
    return sentences


def missing(all_claims: Sequence[Claim], measurements: Mapping[Key, Measured]) -> list[str]:
    """Return notes on numbers that the paper does not print: curves of its traces, and values of D20 and MD20."""
    judged = {c: c.criterion.verdict(measurements.get(c.key)) for c in all_claims if c.artifact == "Section III-B"}
    judged = {claim: verdict for claim, verdict in judged.items() if verdict != "not measured"}
    not_met = [f"{c.condition}: {c.metric}" for c, verdict in judged.items() if verdict != "holds"]
    if not judged:
        return []
    met = len(judged) - len(not_met)
    return [
        f"The generated traces meet {met} of {len(judged)} properties of the traces that section III-B prints"
        f"{f' (not met: {chr(59).join(not_met)})' if not_met else ''}. The paper prints no numbers of the curves of Figure 6, "
        "of the nodes per job and of the arrivals, so these are assumed; Figures 11 and 12, which depend on them, are judged.",
        "Section II-C defines D20 and MD20, but the paper prints neither values nor an order of them: Figure 8 shows D, MD, "
        "D10 and MD10. Our values are additions.",
    ]


def of_the_scope(all_claims: Sequence[Claim], measurements: Mapping[Key, Measured], seeds: int) -> list[str]:
    """Return the outcome of the comparisons of Figure 9 with each latency of the scope system; nothing without runs."""
    judged = [(c, c.criterion.verdict(measurements.get(c.key))) for c in all_claims if c.artifact == SCOPE]
    if any(verdict == "not measured" for _, verdict in judged):
        return []
    by_label = {
        label: Counter(verdict for claim, verdict in judged if claim.condition.endswith(label))
        for label, _ in LATENCIES.values()
    }
    counts = "; ".join(f"{label}: {of['holds']} of {of.total()} hold, {of['fails']} fail" for label, of in by_label.items())
    return [
        "Figure 9 uses 280 ns for all remote memory of the scope system, as section III-A.3 states; our specification "
        f"counts 280 ns outside the rack only. Two comparisons on each machine with each latency, number of seeds {seeds}: "
        f"{counts}."
    ]
