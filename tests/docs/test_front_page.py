"""Values on the page on queue orders match the recorded searches."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from poolwise import catalog
from poolwise.arrays import FloatArray
from poolwise.files.factory import scheduler_of
from poolwise.files.scheduler import load_scheduler
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.priorities import Capped
from poolwise.schedulers.list import ListScheduler
from poolwise.search.objectives import JobObjectives
from poolwise.search.significance import ratios

FOLDER = Path(__file__).parents[2] / "docs" / "explanation"
OBJECTIVES = ("bounded_slowdown", "d10", "p99_wait", "longest_wait")


def test_ratios_on_generated_workloads_match_search() -> None:
    page = (FOLDER / "queue-order-front.md").read_text(encoding="utf-8")
    printed = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page, re.MULTILINE)
    with (FOLDER / "search-orders.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    assert len(printed) == len(rows) == 7
    for (name, cells), row in zip(printed, rows, strict=True):
        assert name == ("backlog-easy" if row["role"] == "found" else row["order"])
        expected = [f"{float(row[f]):.3f} ({float(row[f + '_low']):.3f} to {float(row[f + '_high']):.3f})" for f in OBJECTIVES]
        assert cells.split(" | ") == expected


UNSEEN = ("UniLu-Gaia 2014", "HPC2N 2002", "NASA iPSC 1993")
"""Logs unseen by every search, in which jobs wait once submissions are moved together."""


def log_objectives(order: str, form: str, *logs: str) -> FloatArray:
    """Return the (n_window, 4) logarithms of the objectives under an order."""
    with (FOLDER / "orders-on-logs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["order"], row["form"]) == (order, form) and row["log"] in logs]
    return np.array([JobObjectives(*(float(row[name]) for name in OBJECTIVES)).logs() for row in rows])


def expected_cells(order: str, form: str, *logs: str) -> str:
    """Return the cells of a row: number of windows, and ratios to Fair Memory with their intervals."""
    objectives = log_objectives(order, form, *logs)
    return " | ".join([str(len(objectives)), *map(str, ratios(objectives, log_objectives("fm-easy", form, *logs)).values())])


def log_rows() -> list[str]:
    """Return the rows of the shipped order, one per log."""
    logged = [*UNSEEN, "LCG 2005", "CERIT-SC 2013"]
    rows = [
        f"| {log}, {form} | {expected_cells('backlog-easy', form, log)} |" for form, of in FORMS.items() for log in of or logged
    ]
    return [*rows, f"| the first three, moved together | {expected_cells('backlog-easy', 'moved together', *UNSEEN)} |"]


FORMS = {"as logged": (), "moved together": UNSEEN}
"""Form of the submissions -> logs that the page shows in it; all logs if empty."""


def order_rows() -> list[str]:
    """Return the rows of the orders on the three unseen logs together."""
    orders = ("backlog-easy", "fcfs-easy", "sjf-easy", "wfp3-easy", "f1-easy", "fair-easy", "area-easy")
    return [f"| {order} | {expected_cells(order, 'moved together', *UNSEEN)} |" for order in orders]


def search_rows() -> list[str]:
    """Return the rows of the order selected by the search on real logs, one per split."""
    with (FOLDER / "search-orders-on-logs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["order"] == "candidate 124"]
    cells = [
        [f"{float(row[f]):.3f} ({float(row[f + '_low']):.3f} to {float(row[f + '_high']):.3f})" for f in OBJECTIVES]
        for row in rows
    ]
    return [f"| {row['split']} | {' | '.join(ratios)} |" for row, ratios in zip(rows, cells, strict=True)]


@pytest.mark.parametrize("rows", [log_rows, order_rows, search_rows])
def test_rows_on_real_logs_match_windows(rows: Callable[[], list[str]]) -> None:
    lines = (FOLDER / "queue-order-front.md").read_text(encoding="utf-8").splitlines()
    expected = rows()
    first = lines.index(expected[0])
    assert lines[first : first + len(expected)] == expected


def test_shipped_order_belongs_to_described_family() -> None:
    scheduler = scheduler_of(load_scheduler(catalog.find("schedulers", "backlog-easy")))
    assert isinstance(scheduler, ListScheduler) and isinstance(scheduler.order, Capped) and isinstance(scheduler.backfill, Easy)
    assert scheduler.order.backlogs > 1 and scheduler.backfill.order is not None
