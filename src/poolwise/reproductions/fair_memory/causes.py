"""Figures of the causes that decide claims: each difference of the authors' runs alone, all but one, and other traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from poolwise.comparison.published import Claim
from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.figure import Axis, Bars, Curves, Figure
from poolwise.reproductions.fair_memory.claims import SLOWDOWN, FairMemoryCells, measure_claims
from poolwise.reproductions.fair_memory.extensions import BY_NODES
from poolwise.reproductions.fair_memory.readings import BACKFILLS, FairMemoryReading, ablations
from poolwise.reproductions.fair_memory.runs import FairMemoryResults
from poolwise.reproductions.fair_memory.traces import TRACES


def draw_causes(results: FairMemoryResults, claims: Sequence[Claim]) -> list[Figure]:
    """Draw the ablation, the parts of the backfilling, and the lead of FM on other traces."""
    return [_ablation(results, claims), *_backfills(results), *_sensitivity(results)]


def _ablation(results: FairMemoryResults, claims: Sequence[Claim]) -> Figure:
    published = [claim for claim in claims if claim.kind == "paper"]
    figures = dict.fromkeys(claim.artifact for claim in published)
    counts = {}
    for label, reading in ablations().items():
        found = measure_claims(results, reading)
        counts[label] = Counter(c.artifact for c in published if c.criterion.verdict(found.get(c.key)) == "holds")
    judged = Counter(claim.artifact for claim in published if claim.rule != "shown")
    series = {f"{name} (of {judged[name]})": [float(counts[label][name]) for label in counts] for name in figures}
    return Bars(
        "ablation",
        "Claims that hold under each difference of the authors' runs",
        "Number of the paper's claims that hold, by figure: in the specification's reading, with each difference alone, with "
        "all but one, and with all three.",
        groups=list(counts),
        series=series,
        y_axis=Axis("claims that hold"),
    )


def _backfills(results: FairMemoryResults) -> Iterator[Figure]:
    sizes = results.sizes("perlmutter")
    series: dict[str, list[float]] = {}
    bands: dict[str, tuple[list[float], list[float]]] = {}
    for backfill in BACKFILLS:
        cells = FairMemoryCells(results, "perlmutter", FairMemoryReading(backfill))
        found = [mean_interval(100 * (cells(SLOWDOWN, "sjf", s) / cells(SLOWDOWN, "fm", s) - 1)) for s in sizes]
        series[backfill] = [i.mean for i in found]
        bands[backfill] = ([i.low for i in found], [i.high for i in found])
    if not np.isnan(list(series.values())).any() and len(sizes) > 1:
        yield Curves(
            "backfilling",
            "Lead of FM over SJF under each backfilling, Perlmutter-like",
            "By how much the mean bounded slowdown of SJF exceeds that of FM, with 95 % intervals.",
            artifact="Backfilling",
            x=[float(s) for s in sizes],
            series=series,
            interval=bands,
            x_axis=Axis("memory pool per rack (TB)", ticks={float(s): str(s) for s in sizes}),
            y_axis=Axis("lead of FM (%)", limits=(-60, None)),
        )


def _sensitivity(results: FairMemoryResults) -> Iterator[Figure]:
    shown = {"as generated": "", **{name: name for name in TRACES}}
    sizes = [float(s) for s in results.sizes("perlmutter", next(iter(TRACES)))]
    if not sizes:
        return
    series = {}
    for label, trace in shown.items():
        cells = FairMemoryCells(results, "perlmutter", BY_NODES, trace)
        series[label] = [float(100 * cells.lead(int(size)).mean()) for size in sizes]
    yield Curves(
        "sensitivity",
        "Lead of FM over the best other order on other traces, backfilling on nodes alone, no extra nodes",
        "Perlmutter-like, means over seeds. All traces but the last two keep the published marginals and weighted mean memory; "
        "on the last two the pool binds at sizes where it does not bind on the others.",
        artifact="Sensitivity",
        x=sizes,
        series=series,
        x_axis=Axis("memory pool per rack (TB)", ticks={s: f"{s:g}" for s in sizes}),
        y_axis=Axis("lead of FM (%)", limits=(-60, None)),
    )
