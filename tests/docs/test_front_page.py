"""The figures of the page on trade-offs between queue orders equal those of the recorded search."""

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
from poolwise.policies.order.capped import Capped
from poolwise.schedulers.list import ListScheduler
from poolwise.search.objectives import JobObjectives
from poolwise.search.significance import ratios

FOLDER = Path(__file__).parents[2] / "docs" / "explanation"
FARES = ("bounded_slowdown", "d10", "p99_wait", "longest_wait")


def test_each_figure_is_one_of_the_search() -> None:
    page = (FOLDER / "queue-order-front.md").read_text(encoding="utf-8")
    printed = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page, re.MULTILINE)
    with (FOLDER / "search-orders.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    assert len(printed) == len(rows) == 7
    for (name, cells), row in zip(printed, rows, strict=True):
        assert name == ("backlog-easy" if row["role"] == "found" else row["order"])
        wanted = [f"{float(row[f]):.3f} ({float(row[f + '_low']):.3f} to {float(row[f + '_high']):.3f})" for f in FARES]
        assert cells.split(" | ") == wanted


UNSEEN = ("UniLu-Gaia 2014", "HPC2N 2002", "NASA iPSC 1993")
"""Logs that no search had seen, in which jobs wait where submissions are moved together."""


def fares(order: str, form: str, *logs: str) -> FloatArray:
    """(n_window, 4) logarithms of how jobs fare."""
    with (FOLDER / "orders-on-logs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["order"], row["form"]) == (order, form) and row["log"] in logs]
    return np.array([JobObjectives(*(float(row[name]) for name in FARES)).logs() for row in rows])


def printed(order: str, form: str, *logs: str) -> str:
    """Windows, and ratios to Fair Memory with their intervals."""
    found = fares(order, form, *logs)
    return " | ".join([str(len(found)), *map(str, ratios(found, fares("fm-easy", form, *logs)).values())])


def log_rows() -> list[str]:
    """The shipped order on each log."""
    logged = [*UNSEEN, "LCG 2005", "CERIT-SC 2013"]
    rows = [f"| {log}, {form} | {printed('backlog-easy', form, log)} |" for form, of in FORMS.items() for log in of or logged]
    return [*rows, f"| the first three, moved together | {printed('backlog-easy', 'moved together', *UNSEEN)} |"]


FORMS = {"as logged": (), "moved together": UNSEEN}


def order_rows() -> list[str]:
    """Each order on the three logs together."""
    orders = ("backlog-easy", "fcfs-easy", "sjf-easy", "wfp3-easy", "f1-easy", "fair-easy", "area-easy")
    return [f"| {order} | {printed(order, 'moved together', *UNSEEN)} |" for order in orders]


def search_rows() -> list[str]:
    """Return the ratios, on each split, of the order that the search on real logs chose."""
    with (FOLDER / "search-orders-on-logs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["order"] == "candidate 124"]
    cells = [
        [f"{float(row[f]):.3f} ({float(row[f + '_low']):.3f} to {float(row[f + '_high']):.3f})" for f in FARES] for row in rows
    ]
    return [f"| {row['split']} | {' | '.join(ratios)} |" for row, ratios in zip(rows, cells, strict=True)]


@pytest.mark.parametrize("rows", [log_rows, order_rows, search_rows])
def test_each_figure_on_real_logs_follows_from_the_windows(rows: Callable[[], list[str]]) -> None:
    lines = (FOLDER / "queue-order-front.md").read_text(encoding="utf-8").splitlines()
    wanted = rows()
    first = lines.index(wanted[0])
    assert lines[first : first + len(wanted)] == wanted


def test_the_shipped_order_is_of_the_family_that_the_page_describes() -> None:
    found = scheduler_of(load_scheduler(catalog.find("schedulers", "backlog-easy")))
    assert isinstance(found, ListScheduler) and isinstance(found.order, Capped) and isinstance(found.backfill, Easy)
    assert found.order.backlogs > 1 and found.backfill.order is not None
