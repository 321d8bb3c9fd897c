"""Tables of the pages that list registered names or declared kinds are complete."""

import re
from pathlib import Path
from typing import get_args

from poolwise import registry
from poolwise.interfaces.order import OrderKind

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, heading: str) -> list[str]:
    """Return the first cells of the table with a heading."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith(heading)) + 2
    table = lines[at : next(k for k in range(at, len(lines) + 1) if k == len(lines) or not lines[k].startswith("|"))]
    return [line.split("|")[1].strip() for line in table]


def test_every_kind_of_order_is_on_its_page() -> None:
    listed = {kind for cell in rows("how-to/own-queue-order.md", "| `kind`") for kind in re.findall(r'`"(\w+)"`', cell)}
    assert listed == set(get_args(OrderKind))


def test_every_backfill_is_on_the_page_of_files() -> None:
    listed = {name for cell in rows("reference/files.md", "| backfill") for name in re.findall(r'`(?:\{ name = ")?(\w+)', cell)}
    assert listed == set(registry.names("backfills"))


def test_every_part_of_a_policy_has_a_page() -> None:
    pages = "".join(rows("how-to/python.md", "| to decide")) + (DOCS / "how-to" / "python.md").read_text(encoding="utf-8")
    for part in ("queue-order", "backfill", "placement", "scheduler", "performance-model", "metric"):
        assert f"own-{part}.md" in pages and (DOCS / "how-to" / f"own-{part}.md").is_file()
