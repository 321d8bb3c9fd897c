"""Report of a search: the chosen order, the Pareto front, and all orders that were evaluated."""

from __future__ import annotations

from pathlib import Path

from poolwise.presentation.figure import Axis, Scatter
from poolwise.report.page import Page, PageTable, TableRow
from poolwise.report.page import write_page as write_page
from poolwise.search.answer import SearchResult
from poolwise.search.objectives import OBJECTIVE_LABELS, OBJECTIVES, ObjectiveName
from poolwise.search.significance import Ratios


def write_search(result: SearchResult, path: Path) -> None:
    """Write the report of a search atomically."""
    write_page(search_page(result), path)


def search_page(result: SearchResult) -> Page:
    """Assemble the report of a search."""
    return Page(
        title=result.search.title,
        lead=result.headline(),
        because=[
            f"{len(result.candidates)} candidates were evaluated on {len(result.search.splits['train'])} training workloads."
        ],
        notes=result.notes,
        main=front_figure(result),
        tables=[_orders(result)],
        provenance={name: str(value) for name, value in result.provenance().items()},
    )


def front_figure(result: SearchResult) -> Scatter:
    """Draw every candidate on the training workloads, and the known orders and the choice on the validation workloads."""
    x: ObjectiveName = "bounded_slowdown"
    y: ObjectiveName = "longest_wait"
    trained = result.trained
    series = {"candidates, training": (trained[:, OBJECTIVES.index(x)].tolist(), trained[:, OBJECTIVES.index(y)].tolist())}
    for judged in result.judged:
        if judged.role == "known" or judged is result.chosen:
            found = judged.on["validation"]
            series[f"{judged.candidate.name}, validation"] = ([found[x].mean], [found[y].mean])
    baseline = result.search.baseline.name
    return Scatter(
        "front",
        "Gains and losses of each order",
        f"Ratios to {baseline}, geometric means over the workloads; a ratio of 1 equals {baseline}.",
        series=series,
        x_axis=Axis(f"{OBJECTIVE_LABELS[x]}, relative to {baseline}"),
        y_axis=Axis(f"{OBJECTIVE_LABELS[y]}, relative to {baseline}", log=True),
    )


def _cells(found: Ratios) -> list[str]:
    return [f"{found[name]}, {found[name].word}" for name in OBJECTIVES]


def _orders(result: SearchResult) -> PageTable:
    rows = []
    for judged in result.judged:
        for split, found in judged.on.items():
            values = [judged.candidate.name, judged.role, split, *_cells(found)]
            rows.append(TableRow(values, "chosen" if judged is result.chosen else ""))
    caption = (
        f'Ratios to {result.search.baseline.name} with 95 % intervals over paired workloads. The table states "less" or '
        '"more" only if the interval excludes 1.'
    )
    return PageTable("Orders", ["order", "role", "workloads", *(OBJECTIVE_LABELS[name] for name in OBJECTIVES)], rows, caption)
