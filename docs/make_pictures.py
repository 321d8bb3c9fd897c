"""Draw the pictures in docs/images from shipped studies, plans and recorded results: `python docs/make_pictures.py [NAME ...]`.

`make pictures` draws all of them, in about a minute on two cores. Runs are stored in results/ and reused.
"""

import itertools
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl

import poolwise
from poolwise.atomic_write import write_whole
from poolwise.explain import explain_wait
from poolwise.files.machine import load_machine
from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.figure import Axis, Bars, Curves, Figure, Scatter
from poolwise.report.chart_parts import style_sheet
from poolwise.report.figures import chart_svg
from poolwise.report.gantt import gantt
from poolwise.report.study import study_answer

DOCS = Path(__file__).parent
OWN_LOG = DOCS / "how-to" / "own-log.md"
RESULTS = Path("results")
FOUND = "backlog-easy"
EXPLAINED_JOB = 48225
OPENB_SEED = {"seeds.values": [0]}
"""One of the three seeds of the plan `openb-gpus`, which takes half a minute."""


def cerit_pools() -> Figure:
    """Draw the main chart of the study `cerit-pools`."""
    result = poolwise.run(poolwise.load("cerit-pools"), RESULTS / "cerit-pools")
    chart = study_answer(result, ()).main
    assert chart is not None  # the study varies a size
    return chart


def explained_wait() -> Figure:
    """Draw the nodes and pools while a job waited, and the rules that held it back; the machine is that of the page own-log."""
    (file,) = re.findall(r'^```toml title="my-machine.toml"\n(.*?)^```', OWN_LOG.read_text(encoding="utf-8"), re.M | re.S)
    write_whole(RESULTS / "my-machine.toml", file.encode())
    machine = load_machine(RESULTS / "my-machine.toml")
    workload, model = poolwise.read("catalog:example-sacct.txt", machine), poolwise.RemoteMemory(seed=0)
    schedule = poolwise.simulate(workload, machine, order="fm", backfill="easy", model=model).schedule
    found = explain_wait(workload, machine, poolwise.list_scheduler("fm", "easy"), job=EXPLAINED_JOB, model=model)
    return replace(gantt(found, schedule), name="explained-wait")


def queue_order_front() -> Figure:
    """Draw the ratios of each order on the test workloads, from docs/explanation/search-orders.csv."""
    rows = pl.read_csv(DOCS / "explanation" / "search-orders.csv").filter(pl.col("split") == "test").to_dicts()
    series, spread = {"fm-easy": ([1.0], [1.0])}, {}
    for row in rows:
        name = FOUND if row["role"] == "found" else row["order"]
        series[name] = ([row["bounded_slowdown"]], [row["longest_wait"]])
        spread[name] = tuple(
            [row[f"{ratio}_{end}"]] for ratio in ("bounded_slowdown", "longest_wait") for end in ("low", "high")
        )
    return Scatter(
        "queue-order-front",
        "Slowdown and longest wait of eight orders, on fifty test workloads",
        series=series,
        spread=spread,
        x_axis=Axis("bounded slowdown, relative to FM", limits=(0.6, 1.6)),
        y_axis=Axis("longest wait, relative to FM"),
    )


def memory_by_use() -> Figure:
    """Draw throughput per dollar against the pool size, by request and by use, from docs/explanation/memory-by-use.csv."""
    rows = pl.read_csv(DOCS / "explanation" / "memory-by-use.csv").filter(
        (pl.col("generator") == "perlmutter_like") & (pl.col("rule") == "as shipped")
    )
    rows = rows.with_columns(size=pl.col("pool_per_rack").str.extract(r"(\d+)").cast(pl.Int64))
    sizes = sorted(set(rows["size"]))
    series, interval = {}, {}
    for allocation, overestimate in itertools.product(("by request", "by use"), (0.0, 0.6)):
        chosen = rows.filter((pl.col("allocation") == allocation) & (pl.col("overestimate") == overestimate))
        found = [mean_interval(chosen.filter(pl.col("size") == size)["jobs_per_hour_per_million"]) for size in sizes]
        name = f"{allocation}, + 60 %" if overestimate else allocation
        series[name] = [one.mean for one in found]
        interval[name] = ([one.low for one in found], [one.high for one in found])
    return Curves(
        "memory-by-use",
        "Throughput per dollar against the size of the pools",
        x=[float(size) for size in sizes],
        series=series,
        interval=interval,
        x_axis=Axis("pool memory in each of two racks (TiB)"),
        y_axis=Axis("jobs per hour and M$"),
    )


def openb_stranded() -> Figure:
    """Draw the GPUs that openb's servers strand, by type, with and without pooling."""
    chart = plan_figure("openb-gpus", "stranded", OPENB_SEED)
    assert isinstance(chart, Bars)
    names = {"shared, not pooled": "GPUs of the own node", "shared, pooled": "GPUs of any node"}
    return replace(chart, series={names[name]: values for name, values in chart.series.items() if name in names})


def gpu_share() -> Figure:
    """Draw the gain in latency against the share of GPUs among 40 units."""
    chart = plan_figure("gpu-share", "few_units")
    assert isinstance(chart, Curves)
    return chart


def critical_jobs() -> Figure:
    """Draw the latency of critical jobs by placement and order."""
    return plan_figure("critical-beside-batch", "latency")


def plan_figure(plan: str, figure: str, changes: Mapping[str, object] | None = None) -> Figure:
    """Run a shipped plan and return one of its figures."""
    result = poolwise.plan(poolwise.load_plan(plan, changes or {}), RESULTS / plan)
    return next(shown for shown in poolwise.figures(result) if shown.name == figure)


DRAWINGS: Mapping[str, Callable[[], Figure]] = {
    "cerit-pools": cerit_pools,
    "explained-wait": explained_wait,
    "queue-order-front": queue_order_front,
    "memory-by-use": memory_by_use,
    "openb-stranded": openb_stranded,
    "gpu-share": gpu_share,
    "critical-jobs": critical_jobs,
}


def svg(figure: Figure) -> str:
    """Draw a figure as an SVG file of its own, with the colors of the reports and a background."""
    drawn = chart_svg(figure, wide=True)
    start = drawn.index(">") + 1
    return f"{drawn[:start]}<style>{style_sheet()} svg {{ background: var(--paper); }}</style>{drawn[start:]}\n"


def main() -> None:
    """Draw all pictures, or those that are named."""
    for name in sys.argv[1:] or DRAWINGS:
        write_whole(DOCS / "images" / f"{name}.svg", svg(DRAWINGS[name]()).encode())


if __name__ == "__main__":
    main()
