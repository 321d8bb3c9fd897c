"""Figures of the pages on performance and on shared nodes are those of the files that the benchmarks write."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import features, shared_features
from benchmarks.features import engine_of

ROOT = Path(__file__).parents[2]
ROWS = [
    (name, cells)
    for line in (ROOT / "docs/explanation/performance.md").read_text(encoding="utf-8").splitlines()
    for name, cells in re.findall(r"^\| `([\w-]+)` \| [^|]*\| (.*) \|$", line)
]
TABLES = {"performance": ("features", features), "shared-nodes": ("shared-features", shared_features)}
"""Page -> benchmark that measures the table of features on it, and its module."""
FEATURES = [(page, feature) for page, (_, module) in TABLES.items() for feature in module.FEATURES]
SCALES = (1.0, 1e3, 1e-3)
"""Figures are printed in their own unit, or seconds as milliseconds and the like."""


def _digits(number: str) -> int:
    """Digits that a printed number claims: those up to the last that is not a zero before the point."""
    whole, point, _ = number.partition(".")
    return len((number.replace(".", "") if point else whole.rstrip("0")).lstrip("0"))


def _printed_as(figure: float, number: str) -> bool:
    return any(float(f"{figure * scale:.{max(_digits(number), 1)}g}") * 1.0 == pytest.approx(float(number)) for scale in SCALES)


@pytest.mark.parametrize(("name", "cells"), ROWS, ids=[name for name, _ in ROWS])
def test_each_figure_was_measured(name: str, cells: str) -> None:
    figures = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))["figures"]
    numbers = [text.replace(",", "") for text in re.findall(r"\d[\d,]*\d(?:\.\d+)?|\d+(?:\.\d+)?", cells)]
    assert numbers
    assert [number for number in numbers if not any(_printed_as(figure, number) for figure in figures.values())] == []


def prices(page: str) -> list[tuple[str, str, str]]:
    """Return feature, engine, and cost relative to the fastest path."""
    text = (ROOT / f"docs/explanation/{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^\| (\S.*) \| (compiled|reference) \| ([\d.,]+) \|$", text, re.MULTILINE)


@pytest.mark.parametrize(("page", "feature"), FEATURES)
def test_each_feature_runs_on_the_engine_and_at_the_price_that_the_page_says(page: str, feature: str) -> None:
    case, module = TABLES[page]
    (engine, price), *others = [cells for name, *cells in prices(page) if name == feature]
    assert not others and engine == engine_of(module.FEATURES[feature](module.fastest()))
    figures = json.loads((ROOT / f"benchmarks/results/{case}.json").read_text(encoding="utf-8"))["figures"]
    assert figures.keys() - {"peak_mb"} == set(module.FEATURES) and _printed_as(figures[feature], price.replace(",", ""))


@pytest.mark.parametrize("page", TABLES)
def test_no_feature_of_a_page_is_unknown(page: str) -> None:
    assert [name for name, *_ in prices(page)] == list(TABLES[page][1].FEATURES)


def test_the_tables_are_read() -> None:
    assert len(ROWS) == 17
    assert not _printed_as(0.1374, "0.138")
    assert _printed_as(0.1374, "0.14")
    assert _printed_as(880600.0, "881000")
