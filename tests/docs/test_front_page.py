"""The figures of the page on the front of queue orders are those of the search that is kept beside it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from poolwise import catalog
from poolwise.files.configured import scheduler_of
from poolwise.files.scheduler import load_scheduler
from poolwise.policies.backfill.easy import Easy
from poolwise.policies.order.capped import Capped
from poolwise.schedulers.list import ListScheduler

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


def test_the_shipped_order_is_of_the_family_that_the_page_describes() -> None:
    found = scheduler_of(load_scheduler(catalog.find("schedulers", "backlog-easy")))
    assert isinstance(found, ListScheduler) and isinstance(found.order, Capped) and isinstance(found.backfill, Easy)
    assert found.order.backlogs > 1 and found.backfill.order is not None
