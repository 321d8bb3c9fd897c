"""Figures 5 to 12 of the Fair Memory paper drawn from our runs, in both readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from poolwise.metrics.intervals import mean_interval
from poolwise.performance.remote_memory import FAR, NEAR
from poolwise.presentation.figure import Axis, Bars, Curves, Distribution, Figure, Panels
from poolwise.reproductions.fair_memory.claims import FairMemoryCells
from poolwise.reproductions.fair_memory.readings import AS_RUN, SPEC, FairMemoryReading
from poolwise.reproductions.fair_memory.runs import FAIRNESS, MACHINES, ORDERS, FairMemoryResults
from poolwise.traces.generators import generate

NAMES = {"perlmutter": "Perlmutter-like", "juwels": "JUWELS-like"}
READINGS: Mapping[str, FairMemoryReading] = {"spec": SPEC, "as run": AS_RUN}
_METRICS = (
    ("mean_bounded_slowdown", "bounded slowdown", 1.0, True),
    ("throughput_per_100s", "throughput (jobs per 100 s)", 1.0, False),
    ("utilization", "node utilisation (%)", 100.0, False),
)
PUBLISHED = {
    ("perlmutter", "throughput_per_100s", "FAIR", 48): 5.5,
    ("perlmutter", "throughput_per_100s", "FCFS", 48): 4.8,
    ("perlmutter", "utilization", "FAIR", 44): 95.0,
    ("perlmutter", "utilization", "SJF", 44): 91.0,
    ("juwels", "utilization", "FCFS", 24): 98.0,
    ("juwels", "utilization", "F1", 24): 96.0,
}
"""Values that the text states about Figure 7: (machine, metric, order, TB) -> value."""
GAINS = {("perlmutter", 28): 2.1, ("juwels", 6): 2.3}
UNDER_5 = {"perlmutter": 88.0, "juwels": 89.0}


def draw(results: FairMemoryResults) -> list[Figure]:
    """Draw all figures that the runs cover, in the order of the paper."""
    machines = [machine for machine in MACHINES if results.sizes(machine)]
    figures = [_figure_5(), _figure_6()]
    for machine in machines:
        figures += [*_figure_7(results, machine), *_figure_8(results, machine), *_figure_9(results, machine)]
    figures += [*_figure_10(results, machines)]
    for machine in machines:
        figures += [*_figure_11(results, machine), *_figure_12(results, machine)]
    return sorted(figures, key=lambda figure: int(figure.artifact.split()[1]))


def _figure_5() -> Figure:
    return Bars(
        "figure5",
        "Figure 5: slowdown of the 11 PARSEC kernels by remote memory",
        "An input: the paper's fitted values at both latencies, in ascending order.",
        artifact="Figure 5",
        groups=[str(k + 1) for k in range(len(NEAR))],
        series={"180 ns, in the rack": list(NEAR), "280 ns, across racks": list(FAR)},
        y_axis=Axis("slowdown (%)"),
    )


def _figure_6() -> Figure:
    edges = [0, 32, 64, 128, 256, 512]
    series = {}
    for machine, paper in MACHINES.items():
        memory = generate(paper.generator, seed=0).request("memory") / 1024
        series[NAMES[machine]] = (100 * np.histogram(memory, edges)[0] / len(memory)).tolist()
    return Bars(
        "figure6",
        "Figure 6: memory per node of the jobs",
        "An input: the generated workloads, first seed. The paper states only the most frequent bin: 32 to 64 GB on "
        "Perlmutter, below 32 GB on JUWELS.",
        artifact="Figure 6",
        groups=[f"{a} to {b} GB" for a, b in pairwise(edges)],
        series=series,
        y_axis=Axis("share of the jobs (%)"),
    )


def _pool_axis(sizes: Sequence[int]) -> Axis:
    return Axis("memory pool per rack (TB)", ticks={float(s): str(s) for s in sizes})


def _figure_7(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    panels = [
        _curves(results, machine, metric, label, scale, log, reading)
        for metric, label, scale, log in _METRICS
        for reading in READINGS
    ]
    if len(results.sizes(machine)) > 1:
        yield Panels(
            f"figure7-{machine}",
            f"Figure 7, {NAMES[machine]}: the orders at every pool size",
            "Left: the specification's reading; right: as the authors ran it. Means over seeds with 95 % intervals; hollow "
            "markers are values printed in the paper.",
            artifact="Figure 7",
            panels=panels,
        )


def _curves(results: FairMemoryResults, machine: str, metric: str, label: str, scale: float, log: bool, reading: str) -> Curves:
    cells = FairMemoryCells(results, machine, READINGS[reading])
    series, bands, published = {}, {}, {}
    for order in ORDERS:
        found = [mean_interval(scale * cells(metric, order, size)) for size in cells.sizes]
        series[order.upper()] = [interval.mean for interval in found]
        if all(np.isfinite(interval.low) for interval in found):
            least = 1.0 if log else 0.0  # no bounded slowdown lies below 1
            bands[order.upper()] = ([max(i.low, least) for i in found], [i.high for i in found])
        printed = [PUBLISHED.get((machine, metric, order.upper(), size), np.nan) for size in cells.sizes]
        if not np.isnan(printed).all():
            published[order.upper()] = printed
    return Curves(
        f"{metric}-{reading.replace(' ', '-')}",
        f"{label.partition(' (')[0]}, {reading}",
        x=[float(size) for size in cells.sizes],
        series=series,
        interval=bands,
        published=published,
        x_axis=_pool_axis(cells.sizes),
        y_axis=Axis(label, log=log),
    )


def _figure_8(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    paper, panels = MACHINES[machine], []
    for size in (paper.limited, paper.sufficient):
        for name, reading in READINGS.items():
            cells = FairMemoryCells(results, machine, reading)
            hours = 3600 * cells("compared_jobs", "fm", size)
            series = {o.upper(): [float((cells(m, o, size) / hours).mean()) for m in FAIRNESS.values()] for o in ORDERS}
            panels.append(
                Bars(
                    f"{size}-{name.replace(' ', '-')}",
                    f"{size} TB per rack, {name}",
                    groups=list(FAIRNESS),
                    series=series,
                    y_axis=Axis("discrimination (h per job)"),
                )
            )
    if not all(np.isnan(list(panel.series.values())).any() for panel in panels):
        yield Panels(
            f"figure8-{machine}",
            f"Figure 8, {NAMES[machine]}: fairness",
            "Waiting time added relative to first come, first served without backfilling, in hours per compared job; lower is "
            "fairer. The specification compares with the same machine, the authors (as run) with 512 GB in every node. The "
            "paper prints no values.",
            artifact="Figure 8",
            panels=panels,
        )


def _figure_9(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    paper, panels = MACHINES[machine], []
    for size, word in ((paper.sufficient, "sufficient"), (paper.limited, "limited")):
        for name, reading in READINGS.items():
            where = (machine, reading.backfill, "slowdown")
            shown = {"512 GB per node": ("rack", "0"), "rack": ("rack", str(size)), "system": ("system", str(size))}
            series = {label: results.samples[*where, *key] for label, key in shown.items() if (*where, *key) in results.samples}
            panels.append(
                Distribution(
                    f"{size}-{name.replace(' ', '-')}",
                    f"{word} pool of {size} TB, {name}",
                    series=series,
                    x_axis=Axis("bounded slowdown", log=True),
                    y_label="share of jobs above",
                    tail=True,
                )
            )
    if all(panel.series for panel in panels):
        yield Panels(
            f"figure9-{machine}",
            f"Figure 9, {NAMES[machine]}: bounded slowdown under FM by the scope of the pools",
            "Share of jobs with a greater bounded slowdown; first seed, all jobs after the warm-up.",
            artifact="Figure 9",
            panels=panels,
        )


def _figure_10(results: FairMemoryResults, machines: Sequence[str]) -> Iterator[Figure]:
    metric, panels = "throughput_per_100s_per_memory_dollar", []
    for machine in machines:
        for name, reading in READINGS.items():
            cells = FairMemoryCells(results, machine, reading)
            found = [mean_interval(cells(metric, "fm", s) / cells(metric, "fm", 0)) for s in cells.sizes]
            panels.append(
                Curves(
                    f"{machine}-{name.replace(' ', '-')}",
                    f"{NAMES[machine]}, {name}",
                    x=[float(s) for s in cells.sizes],
                    series={"FM": [i.mean for i in found], "512 GB in every node": [1.0] * len(found)},
                    interval={"FM": ([i.low for i in found], [i.high for i in found])},
                    published={"FM": [GAINS.get((machine, s), np.nan) for s in cells.sizes]},
                    x_axis=_pool_axis(cells.sizes),
                    y_axis=Axis("ratio to 512 GB per node"),
                    highlight=float(MACHINES[machine].optimum),
                )
            )
    if panels and not any(np.isnan(list(panel.series["FM"])).any() for panel in panels) and len(panels[0].x) > 1:
        yield Panels(
            "figure10",
            "Figure 10: throughput per memory dollar",
            "Rack scope; 4.9 $/GB for all memory in nodes and pools. The dotted line marks the published optimum, the hollow "
            "marker its published gain.",
            artifact="Figure 10",
            panels=panels,
        )


def _figure_11(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    size = MACHINES[machine].optimum
    where = (machine, SPEC.backfill, "memory")
    if (*where, "0") in results.samples and (*where, str(size)) in results.samples:
        yield Bars(
            f"figure11-{machine}",
            f"Figure 11, {NAMES[machine]}: memory utilization",
            "Share of the time in each 10 % bin; FM, rack scope, first seed. The paper's most frequent bins: 20 to 30 % with "
            f"512 GB, {'70 to 80' if machine == 'perlmutter' else '50 to 60'} % with pools.",
            artifact="Figure 11",
            groups=[f"{10 * k} to {10 * (k + 1)}" for k in range(10)],
            series={
                "512 GB per node": (100 * results.samples[*where, "0"]).tolist(),
                f"64 GB per node and {size} TB per rack": (100 * results.samples[*where, str(size)]).tolist(),
            },
            y_axis=Axis("share of the time (%)"),
        )


def _figure_12(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    degraded = results.samples.get((machine, SPEC.backfill, "degradation", str(MACHINES[machine].optimum)))
    if degraded is not None:
        edges = [0.0, 5.0, 25.0, 50.0, 75.0, 100.0, 150.0, np.inf]
        counts = np.histogram(100 * degraded, edges)[0] / max(1, len(degraded))
        yield Bars(
            f"figure12-{machine}",
            f"Figure 12, {NAMES[machine]}: degradation by remote memory",
            "Share of jobs by how much longer they run than with local memory only; FM, rack scope, first seed. The mark is "
            "the published share.",
            artifact="Figure 12",
            groups=["under 5", "5 to 25", "25 to 50", "50 to 75", "75 to 100", "100 to 150", "150 and more"],
            series={"jobs": (100 * counts).tolist()},
            published={"jobs": [UNDER_5[machine], *[np.nan] * 6]},
            y_axis=Axis("share of the jobs (%)", log=True, limits=(0.005, 150.0)),
        )
