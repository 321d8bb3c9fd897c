"""Figures 7 to 12 of the Fair Memory paper, from our runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poolwise.exhibits.figure import Axis, Bars, Curves, Distribution, Figure
from poolwise.metrics.intervals import mean_interval
from poolwise.reproductions.fair_memory.claims import FAIRNESS
from poolwise.reproductions.fair_memory.runs import MACHINES, ORDERS, FairMemoryResults

_NAMES = {"perlmutter": "Perlmutter-like", "juwels": "JUWELS-like"}
_PANELS = (
    ("mean_bounded_slowdown", "bounded slowdown", 1.0, True),
    ("throughput_per_100s", "throughput (jobs per 100 s)", 1.0, False),
    ("utilization", "node utilisation (%)", 100.0, False),
)


def draw(results: FairMemoryResults) -> list[Figure]:
    """All figures, in the order of the paper, for both machines."""
    return [figure for machine in MACHINES for figure in _of_machine(results, machine)]


def _of_machine(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    yield from _figure_7(results, machine)
    yield from _figure_8(results, machine)
    yield from _figure_9(results, machine)
    yield _figure_10(results, machine)
    yield from _figures_11_12(results, machine)


def _pool_axis(results: FairMemoryResults, machine: str) -> Axis:
    return Axis("memory pool per rack (TB)", ticks={float(s): str(s) for s in results.sizes(machine)})


def _figure_7(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    sizes = results.sizes(machine)
    for scope in ("rack", "system"):
        for metric, label, scale, log in _PANELS:
            series, bands = {}, {}
            for order in ORDERS:
                where = {"machine": machine, "order": order, "variant": "ours", "scope": scope}
                found = [mean_interval(scale * results.seeds(metric, size_tb=s, **where)) for s in sizes]
                series[order.upper()] = [interval.mean for interval in found]
                if all(np.isfinite(interval.low) for interval in found):
                    bands[order.upper()] = ([i.low for i in found], [i.high for i in found])
            yield Curves(
                f"figure7-{machine}-{scope}-{metric}",
                f"Figure 7, {_NAMES[machine]}, scope {scope}: {label.partition(' (')[0]}",
                "Mean over seeds with 95 % intervals; the paper's population." if bands else "The paper's population.",
                x=[float(s) for s in sizes],
                series=series,
                interval=bands,
                x_axis=_pool_axis(results, machine),
                y_axis=Axis(label, log=log),
            )


def _figure_8(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    paper = MACHINES[machine]
    for size in (paper.limited, paper.sufficient):
        series = {}
        for order in ORDERS:
            where = {"machine": machine, "order": order, "variant": "ours", "scope": "rack", "size_tb": size}
            jobs = results.mean("compared_jobs", **where)
            series[order.upper()] = [results.mean(metric, **where) / 3600 / jobs for metric in FAIRNESS.values()]
        yield Bars(
            f"figure8-{machine}-{size}",
            f"Figure 8, {_NAMES[machine]}, {size} TB per rack: fairness",
            "Waiting time added against FCFS without backfilling, in hours per job compared; lower is fairer.",
            groups=list(FAIRNESS),
            series=series,
            y_axis=Axis("discrimination (h per job)"),
        )


def _figure_9(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    paper = MACHINES[machine]
    for size, word in ((paper.limited, "limited"), (paper.sufficient, "sufficient")):
        series = {}
        for label, key in (
            ("512 GB per node", (machine, "slowdown", "512 GB per node")),
            ("rack scope", (machine, "slowdown", "rack", str(size))),
            ("system scope", (machine, "slowdown", "system", str(size))),
        ):
            if key in results.samples:
                series[label] = results.samples[key]
        yield Distribution(
            f"figure9-{machine}-{size}",
            f"Figure 9, {_NAMES[machine]}, {word} pool of {size} TB per rack: bounded slowdown under FM",
            "Share of jobs that fare worse; first seed, all jobs after the warm-up.",
            series=series,
            x_axis=Axis("bounded slowdown", log=True),
            y_label="jobs that fare worse",
            tail=True,
        )


def _figure_10(results: FairMemoryResults, machine: str) -> Figure:
    metric, sizes = "throughput_per_100s_per_memory_dollar", results.sizes(machine)
    base = results.mean(metric, machine=machine, variant="baseline", order="fm")
    series = {
        order.upper(): [
            results.mean(metric, machine=machine, order=order, variant="ours", scope="rack", size_tb=s) / base for s in sizes
        ]
        for order in ORDERS
    }
    return Curves(
        f"figure10-{machine}",
        f"Figure 10, {_NAMES[machine]}: throughput per memory dollar over the 512 GB baseline",
        "Rack scope; 4.9 $/GB for all memory in nodes and pools. The dotted line marks the published optimum.",
        x=[float(s) for s in sizes],
        series=series,
        x_axis=_pool_axis(results, machine),
        y_axis=Axis("ratio to the baseline"),
        highlight=float(MACHINES[machine].optimum),
    )


def _figures_11_12(results: FairMemoryResults, machine: str) -> Iterator[Figure]:
    bins = {key[2]: values for key, values in results.samples.items() if key[:2] == (machine, "memory")}
    yield Bars(
        f"figure11-{machine}",
        f"Figure 11, {_NAMES[machine]}: memory utilisation",
        "Share of the time in each 10 % bin; FM, rack scope, first seed.",
        groups=[f"{10 * k} to {10 * (k + 1)}" for k in range(10)],
        series={label: (100 * values).tolist() for label, values in sorted(bins.items())},
        y_axis=Axis("share of the time (%)"),
    )
    degraded = results.samples.get((machine, "degradation"), np.zeros(0))
    edges = [0.0, 5.0, 25.0, 50.0, 75.0, 100.0, 150.0, np.inf]
    counts = np.histogram(100 * degraded, edges)[0] / max(1, len(degraded))
    yield Bars(
        f"figure12-{machine}",
        f"Figure 12, {_NAMES[machine]}: degradation by remote memory",
        "Share of jobs by how much longer they run than with local memory only; FM, rack scope, first seed.",
        groups=["under 5", "5 to 25", "25 to 50", "50 to 75", "75 to 100", "100 to 150", "150 and more"],
        series={"jobs": (100 * counts).tolist()},
        y_axis=Axis("share of the jobs (%)", log=True, limits=(0.005, 150.0)),
    )
