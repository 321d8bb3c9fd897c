"""Figures 5 to 12 of the Fair Memory paper from our runs under both readings, and figures of the causes that decide claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import pairwise, product

import numpy as np

from poolwise.performance.remote_memory import FAR, NEAR
from poolwise.presentation.figure import Axis, Bars, Curves, Distribution, Figure, Panels
from poolwise.traces.generators import generate
from poolwise_reproductions.criteria import Measured
from poolwise_reproductions.fair_memory.additions import BY_NODES
from poolwise_reproductions.fair_memory.claims import PER_DOLLAR
from poolwise_reproductions.fair_memory.readings import ALL_SWITCHES, COMBINED, COMPARED, SPEC, FairMemoryReading
from poolwise_reproductions.fair_memory.results import SLOWDOWN, FairMemoryResults
from poolwise_reproductions.fair_memory.runs import FAIRNESS, MACHINES, ORDERS
from poolwise_reproductions.fair_memory.traces import TRACES
from poolwise_reproductions.published import Claim, Key
from poolwise_reproductions.results import bands

NAMES = {"perlmutter": "Perlmutter-like", "juwels": "JUWELS-like"}
READINGS: Mapping[str, FairMemoryReading] = {"spec": SPEC, ALL_SWITCHES: COMBINED}
_METRICS = (
    ("mean_bounded_slowdown", "bounded slowdown", 1.0, True),
    ("throughput_per_100s", "throughput (jobs per 100 s)", 1.0, False),
    ("utilization", "node utilization (%)", 100.0, False),
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
LEAD_AXIS = Axis("lead of FM (%)", limits=(-60, None))
UNDER_5 = {"perlmutter": 88.0, "juwels": 89.0}


def of_each_machine(draw: Callable[[FairMemoryResults], Iterable[Figure]]) -> Callable[[FairMemoryResults], list[Figure]]:
    """Return a function that draws a figure for each machine that was run."""

    @wraps(draw)
    def drawn(results: FairMemoryResults) -> list[Figure]:
        return [figure for machine in MACHINES if results.on(machine).sizes for figure in draw(results.on(machine))]

    return drawn


def figure_5(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the slowdown of single programs, an input."""
    yield Bars(
        "figure5",
        "Figure 5: slowdown of the 11 PARSEC kernels by remote memory",
        "An input: the paper's fitted values at both latencies, in ascending order.",
        artifact="Figure 5",
        groups=[str(k + 1) for k in range(len(NEAR))],
        series={"180 ns, in the rack": list(NEAR), "280 ns, across racks": list(FAR)},
        y_axis=Axis("slowdown (%)"),
    )


def figure_6(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the memory per node of the jobs, an input."""
    edges = [0, 32, 64, 128, 256, 512]
    series = {}
    for machine, paper in MACHINES.items():
        memory = generate(paper.generator, seed=0).request("memory") / 1024
        series[NAMES[machine]] = (100 * np.histogram(memory, edges)[0] / len(memory)).tolist()
    yield Bars(
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


@of_each_machine
def figure_7(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw every order at every pool size."""
    panels = [
        _curves(results.under(READINGS[reading]), reading, metric, label, scale, log)
        for metric, label, scale, log in _METRICS
        for reading in READINGS
    ]
    if len(results.sizes) > 1:
        yield Panels(
            f"figure7-{results.machine}",
            f"Figure 7, {NAMES[results.machine]}: the orders at every pool size",
            "Left: the specification's reading; right: with all three switches. Means over seeds with 95 % intervals; hollow "
            "markers are values printed in the paper.",
            artifact="Figure 7",
            panels=panels,
        )


def _curves(cells: FairMemoryResults, reading: str, metric: str, label: str, scale: float, log: bool) -> Curves:
    lines = {o.upper(): [Measured.over_seeds(scale * cells(metric, o, size)) for size in cells.sizes] for o in ORDERS}
    least = 1.0 if log else 0.0  # no bounded slowdown lies below 1
    interval = {
        name: ([max(each.low, least) for each in line], [each.high for each in line])
        for name, line in lines.items()
        if all(np.isfinite(each.low) for each in line)
    }
    printed = {name: [PUBLISHED.get((cells.machine, metric, name, size), np.nan) for size in cells.sizes] for name in lines}
    return Curves(
        f"{metric}-{reading.replace(' ', '-')}",
        f"{label.partition(' (')[0]}, {reading}",
        x=[float(size) for size in cells.sizes],
        series=bands(lines)["series"],
        interval=interval,
        published={name: values for name, values in printed.items() if not np.isnan(values).all()},
        x_axis=_pool_axis(cells.sizes),
        y_axis=Axis(label, log=log),
    )


@of_each_machine
def figure_8(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw fairness."""
    paper, panels = results.paper, []
    for size, (name, reading) in product((paper.limited, paper.sufficient), READINGS.items()):
        cells = results.under(reading)
        hours = 3600 * cells("compared_jobs", "fm", size)
        series = {o.upper(): [float((cells(m, o, size) / hours).mean()) for m in FAIRNESS.values()] for o in ORDERS}
        title, axis = f"{size} TB per rack, {name}", Axis("discrimination (h per job)")
        panels.append(Bars(f"{size}-{name.replace(' ', '-')}", title, groups=list(FAIRNESS), series=series, y_axis=axis))
    if not all(np.isnan(list(panel.series.values())).any() for panel in panels):
        yield Panels(
            f"figure8-{results.machine}",
            f"Figure 8, {NAMES[results.machine]}: fairness",
            "Waiting time added relative to first come, first served without backfilling, in hours per compared job; lower is "
            "fairer. The specification compares with the same machine, one of the switches with 512 GB in every node. The "
            "paper prints no values.",
            artifact="Figure 8",
            panels=panels,
        )


@of_each_machine
def figure_9(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the bounded slowdown by the scope of the pools."""
    paper, panels = results.paper, []
    sizes = ((paper.sufficient, "sufficient"), (paper.limited, "limited"))
    for (size, word), (name, reading) in product(sizes, READINGS.items()):
        cells = results.under(reading)
        samples = {"512 GB per node": cells.sample(0, "slowdown"), "rack": cells.sample(size, "slowdown")}
        samples["system"] = cells.sample(size, "slowdown", "system")
        series = {label: np.array(values) for label, values in samples.items() if values is not None}
        title, axis = f"{word} pool of {size} TB, {name}", Axis("bounded slowdown", log=True)
        label = f"{size}-{name.replace(' ', '-')}"
        panels.append(Distribution(label, title, series=series, x_axis=axis, y_label="share of jobs above", tail=True))
    if all(panel.series for panel in panels):
        yield Panels(
            f"figure9-{results.machine}",
            f"Figure 9, {NAMES[results.machine]}: bounded slowdown under FM by the scope of the pools",
            "Share of jobs with a greater bounded slowdown; first seed, all jobs after the warm-up.",
            artifact="Figure 9",
            panels=panels,
        )


def figure_10(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw throughput per memory dollar."""
    panels = []
    for machine, (name, reading) in product([m for m in MACHINES if results.on(m).sizes], READINGS.items()):
        cells = results.on(machine, reading)
        lines = {"FM": [Measured.over_seeds(cells(PER_DOLLAR, "fm", s) / cells(PER_DOLLAR, "fm", 0)) for s in cells.sizes]}
        drawn = bands(lines)
        panels.append(
            Curves(
                f"{machine}-{name.replace(' ', '-')}",
                f"{NAMES[machine]}, {name}",
                x=[float(s) for s in cells.sizes],
                series={**drawn["series"], "512 GB in every node": [1.0] * len(cells.sizes)},
                interval=drawn["interval"],
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


@of_each_machine
def figure_11(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the memory utilization."""
    size = results.paper.optimum
    without, pooled = (results.sample(pool, "memory") for pool in (0, size))
    if without is not None and pooled is not None:
        yield Bars(
            f"figure11-{results.machine}",
            f"Figure 11, {NAMES[results.machine]}: memory utilization",
            "Share of the time in each 10 % bin; FM, rack scope, first seed. The paper's most frequent bins: 20 to 30 % with "
            f"512 GB, {'70 to 80' if results.machine == 'perlmutter' else '50 to 60'} % with pools.",
            artifact="Figure 11",
            groups=[f"{10 * k} to {10 * (k + 1)}" for k in range(10)],
            series={
                "512 GB per node": (100 * np.array(without)).tolist(),
                f"64 GB per node and {size} TB per rack": (100 * np.array(pooled)).tolist(),
            },
            y_axis=Axis("share of the time (%)"),
        )


@of_each_machine
def figure_12(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the degradation by remote memory."""
    degraded = results.sample(results.paper.optimum, "degradation")
    if degraded is not None:
        edges = [0.0, 5.0, 25.0, 50.0, 75.0, 100.0, 150.0, np.inf]
        counts = np.histogram(100 * np.array(degraded), edges)[0] / max(1, len(degraded))
        yield Bars(
            f"figure12-{results.machine}",
            f"Figure 12, {NAMES[results.machine]}: degradation by remote memory",
            "Share of jobs by how much longer they run than with local memory only; FM, rack scope, first seed. The mark is "
            "the published share.",
            artifact="Figure 12",
            groups=["under 5", "5 to 25", "25 to 50", "50 to 75", "75 to 100", "100 to 150", "150 and more"],
            series={"jobs": (100 * counts).tolist()},
            published={"jobs": [UNDER_5[results.machine], *[np.nan] * 6]},
            y_axis=Axis("share of the jobs (%)", log=True, limits=(0.005, 150.0)),
        )


def ablation(claims: Sequence[Claim], measured: Mapping[str, Mapping[Key, Measured]]) -> Figure:
    """Draw how many claims hold under each switch; `measured` maps a label to the rows under it."""
    published = [claim for claim in claims if claim.kind == "paper"]
    counts = {}
    for label, rows in measured.items():
        counts[label] = Counter(c.artifact for c in published if c.criterion.verdict(rows.get(c.key)) == "holds")
    judged = Counter(claim.artifact for claim in published if claim.rule != "shown")
    names = dict.fromkeys(claim.artifact for claim in published)
    return Bars(
        "ablation",
        "Claims that hold under each switch",
        "Number of the paper's claims that hold, by figure: in the specification's reading, with each switch alone, with all "
        "but one, and with all three.",
        groups=list(counts),
        series={f"{name} (of {judged[name]})": [float(count[name]) for count in counts.values()] for name in names},
        y_axis=Axis("claims that hold"),
    )


def backfills(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the lead of FM over SJF under each backfilling."""
    sizes = results.on("perlmutter").sizes
    lines: dict[str, list[Measured]] = {}
    for backfill in COMPARED:
        cells = results.on("perlmutter", FairMemoryReading(backfill))
        leads = [100 * (cells(SLOWDOWN, "sjf", s) / cells(SLOWDOWN, "fm", s) - 1) for s in sizes]
        lines[backfill] = [Measured.over_seeds(lead) for lead in leads]
    if len(sizes) > 1 and not any(np.isnan(each.value) for line in lines.values() for each in line):
        yield Curves(
            "backfilling",
            "Lead of FM over SJF under each backfilling, Perlmutter-like",
            "By how much the mean bounded slowdown of SJF exceeds that of FM, with 95 % intervals.",
            artifact="Backfilling",
            x=[float(s) for s in sizes],
            x_axis=_pool_axis(sizes),
            y_axis=LEAD_AXIS,
            **bands(lines),
        )


def sensitivity(results: FairMemoryResults) -> Iterator[Figure]:
    """Draw the lead of FM on other traces."""
    shown = {"as generated": "", **{name: name for name in TRACES}}
    sizes = results.on("perlmutter", trace=next(iter(TRACES))).sizes
    cells = {label: results.on("perlmutter", BY_NODES, trace) for label, trace in shown.items()}
    if sizes:
        yield Curves(
            "sensitivity",
            "Lead of FM over the best other order on other traces, backfilling on nodes alone, no extra nodes",
            "Perlmutter-like, means over seeds. All traces but the last two keep the published marginals and weighted mean "
            "memory; on the last two, the pool binds at sizes at which it does not bind on the others.",
            artifact="Sensitivity",
            x=[float(size) for size in sizes],
            series={label: [float(100 * each.lead(size).mean()) for size in sizes] for label, each in cells.items()},
            x_axis=_pool_axis(sizes),
            y_axis=LEAD_AXIS,
        )
