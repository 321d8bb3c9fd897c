"""Makes the pictures in docs/images: the main chart of the study `cerit-pools`, and the front of queue orders.

`make pictures` runs it.
"""

from pathlib import Path

import polars as pl

from poolwise import catalog, studies
from poolwise.atomic import write_whole
from poolwise.exhibits.figure import Axis, Figure, Scatter
from poolwise.report.picture import picture
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


def main() -> None:
    """Draw both."""
    for shown, name in ((cerit_pools(), "cerit-pools"), (queue_order_front(), "queue-order-front")):
        drawn = picture(shown, wide=True)
        at = drawn.index(">") + 1
        back = "svg { background: var(--paper); }"
        content = f"{drawn[:at]}<style>{style_sheet()} {back}</style>{drawn[at:]}\n"
        write_whole(DOCS / "images" / f"{name}.svg", content.encode())


if __name__ == "__main__":
    main()
