"""Large studies: plan, store, look up, measure and report many cells.

`python -m benchmarks cells-100k`. The case with a million cells (`cells-1m`) takes ten minutes and 8 GB of disk, and runs on
request only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.case import Figures, case, peak_mb, seconds
from poolwise.report import write_study_report
from poolwise.runner import Local, Record, TaskRunner
from poolwise.studies import Study, load
from poolwise.studies.cell_simulation import Cells, simulate_cell
from poolwise.studies.cell_store import CellStore
from poolwise.studies.results import measure
from tests.helpers.small_study import jobs, write

COMBINATIONS = 4
"""Cells of the study for each seed."""


@case("cells-100k", plan_us=("<=", 300.0), open_us=("<=", 100.0), plan_kb=("<=", 1.0), growth=("<=", 1.5))
def hundred_thousand() -> Figures:
    """Benchmark 100,000 cells, of which 10,000 are measured and reported."""
    return many(100_000, 10_000)


@case("cells-1m", on_request=True, plan_us=("<=", 300.0), open_us=("<=", 100.0), plan_kb=("<=", 1.0), growth=("<=", 1.5))
def million() -> Figures:
    """Benchmark a million cells, of which 20,000 are measured and reported."""
    return many(1_000_000, 20_000)


def many(cells: int, measured: int) -> Figures:
    """Return CPU microseconds and kilobytes per cell, and the seconds and megabytes of the report.

    Four cells are simulated; their records are stored under the keys of all cells. `growth` is the cost of measuring one cell
    among `measured` cells, divided by the cost among a fifth of them.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        (folder / "jobs.csv").write_text(jobs(20))
        few = study(folder, COMBINATIONS)
        records = {str(cell.parameters): simulate_cell(cell) for cell in few.runs}
        figures = plan_and_store(cells, records, folder)
        small, _ = seconds(lambda: report(folder, measured // 5))
        large, page_mb = seconds(lambda: report(folder, measured))
        each, among_fewer = large / measured, small / (measured // 5)
        return {**figures, "report_us": each * 1e6, "growth": each / among_fewer, "page_mb": page_mb}


def plan_and_store(cells: int, records: dict[str, Record], folder: Path) -> Figures:
    """Plan the cells, write a record for each, and start a run that finds all of them complete."""
    before = peak_mb()
    planned, whole = seconds(lambda: study(folder, cells))
    after = peak_mb()
    stored, _ = seconds(lambda: store_records(whole, records, folder))
    opened, _ = seconds(lambda: find_complete(whole, folder))
    each = {"plan_us": planned / cells * 1e6, "write_us": stored / cells * 1e6, "open_us": opened / cells * 1e6}
    return {**each, "plan_kb": (after - before) / cells * 1e3, "planned_and_kept_mb": peak_mb()}


def study(folder: Path, cells: int) -> Study:
    """Return a study with the given number of cells: two orders, two pools, and seeds."""
    settings = {"seeds.count": cells // COMBINATIONS, "measure.baseline": False, "measure.warm_up": 0}
    loaded = load(folder / "study.toml", settings)
    assert len(loaded.runs) == cells
    return loaded


def store_records(whole: Study, records: dict[str, Record], folder: Path) -> None:
    """Write a record for each cell."""
    with (store := CellStore(folder)).writing():
        for cell in whole.runs:
            store.write(cell.key, records[str(cell.parameters)], cell.label, 0.1)


def find_complete(whole: Study, folder: Path) -> None:
    """Start a run that finds every cell complete."""
    with (store := CellStore(folder)).writing():
        TaskRunner(store, Local(1)).run(Cells(), whole.runs)


def report(folder: Path, cells: int) -> float:
    """Measure cells, write all tables and the page, and return the size of the page, MB."""
    result = measure(study(folder, cells), CellStore(folder))
    result.write()
    write_study_report(result, folder / "report.html")
    return (folder / "report.html").stat().st_size / 1e6
