"""Makes the pictures in docs/images: the main chart of the study `cerit-pools`, the front of queue orders, memory by use.

`make pictures` runs it.
"""

import itertools
import sys
from pathlib import Path

import polars as pl

from poolwise import catalog, studies
from poolwise.atomic_write import write_whole
from poolwise.metrics.intervals import mean_interval
from poolwise.presentation.figure import Axis, Curves, Figure, Scatter
from poolwise.report.embedded_chart import chart_svg
from poolwise.report.study import study_page
from poolwise.report.theme import style_sheet

DOCS = Path(__file__).parent
RESULTS = Path("results/cerit-pools")
FOUND = "backlog-easy"


def cerit_pools() -> Figure:
    """Run the study, as far as it has not run; returns its main chart."""
    result = studies.run(studies.load(catalog.find("studies", "cerit-pools")), RESULTS)
    shown = study_page(result, ()).main
    assert shown is not None  # the study varies a size
    return shown


def queue_order_front() -> Figure:
    """Put each order at its ratios on the test workloads, of docs/explanation/search-orders.csv."""
    rows = pl.read_csv(DOCS / "explanation" / "search-orders.csv").filter(pl.col("split") == "test").to_dicts()
    series, spread = {"fm-easy": ([1.0], [1.0])}, {}
    for row in rows:
        name = FOUND if row["role"] == "found" else row["order"]
        series[name] = ([row["bounded_slowdown"]], [row["longest_wait"]])
        spread[name] = tuple([row[f"{what}_{end}"]] for what in ("bounded_slowdown", "longest_wait") for end in ("low", "high"))
    return Scatter(
        "queue-order-front",
        "Slowdown against the longest wait, on fifty workloads that the search had not seen",
        series=series,
        spread=spread,
        x_axis=Axis("bounded slowdown, times Fair Memory's"),
        y_axis=Axis("longest wait, times Fair Memory's"),
    )


def memory_by_use() -> Figure:
    """Throughput per dollar over the size of the pools, by request and by use, of docs/explanation/memory-by-use.csv."""
    rows = pl.read_csv(DOCS / "explanation" / "memory-by-use.csv").filter(
        (pl.col("generator") == "perlmutter_like") & (pl.col("rule") == "as shipped")
    )
    rows = rows.with_columns(size=pl.col("pool_per_rack").str.extract(r"(\d+)").cast(pl.Int64))
    sizes = sorted(set(rows["size"]))
    series, interval = {}, {}
    for allocation, over in itertools.product(("by request", "by use"), (0.0, 0.6)):
        mine = rows.filter((pl.col("allocation") == allocation) & (pl.col("overestimate") == over))
        found = [mean_interval(mine.filter(pl.col("size") == size)["jobs_per_hour_per_million"]) for size in sizes]
        name = f"{allocation}, + 60 %" if over else allocation
        series[name] = [one.mean for one in found]
        interval[name] = ([one.low for one in found], [one.high for one in found])
    return Curves(
        "memory-by-use",
        "Throughput per dollar, over the size of the pools",
        x=[float(size) for size in sizes],
        series=series,
        interval=interval,
        x_axis=Axis("pool memory in each of two racks (TiB)"),
        y_axis=Axis("jobs per hour and million dollars"),
    )


def main() -> None:
    """Draw them all, or those that are named."""
    drawings = {"cerit-pools": cerit_pools, "queue-order-front": queue_order_front, "memory-by-use": memory_by_use}
    for name in sys.argv[1:] or drawings:
        drawn = chart_svg(drawings[name](), wide=True)
        at = drawn.index(">") + 1
        back = "svg { background: var(--paper); }"
        content = f"{drawn[:at]}<style>{style_sheet()} {back}</style>{drawn[at:]}\n"
        write_whole(DOCS / "images" / f"{name}.svg", content.encode())


if __name__ == "__main__":
    main()
