"""Values on the pages on performance and on shared nodes match the results of the benchmarks."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import combinations, features, shared_features
from benchmarks.features import engine_of
from poolwise import registry

ROOT = Path(__file__).parents[2]
ROWS = [
    (name, cells)
    for line in (ROOT / "docs/explanation/performance.md").read_text(encoding="utf-8").splitlines()
    for name, cells in re.findall(r"^\| `([\w-]+)` \| [^|]*\| (.*) \|$", line)
]
TABLES = {"performance": ("features", features), "shared-nodes": ("shared-features", shared_features)}
"""Page -> benchmark case of its table of features, and the module of the case."""
FEATURES = [(page, feature) for page, (_, module) in TABLES.items() for feature in module.FEATURES]
SCALES = (1.0, 1e3, 1e-3)
"""Factors between a figure and its printed value, such as seconds printed as milliseconds."""


def _digits(number: str) -> int:
    """Return the number of significant digits of a printed number; trailing zeros of an integer do not count."""
    whole, point, _ = number.partition(".")
    return len((number.replace(".", "") if point else whole.rstrip("0")).lstrip("0"))


def _printed_as(figure: float, number: str) -> bool:
    """Return whether a figure, rounded to the printed digits, is the printed number in some unit."""
    return any(float(f"{figure * scale:.{max(_digits(number), 1)}g}") * 1.0 == pytest.approx(float(number)) for scale in SCALES)


@pytest.mark.parametrize(("name", "cells"), ROWS, ids=[name for name, _ in ROWS])
def test_printed_values_match_results(name: str, cells: str) -> None:
    figures = json.loads((ROOT / f"benchmarks/results/{name}.json").read_text(encoding="utf-8"))["figures"]
    numbers = [text.replace(",", "") for text in re.findall(r"\d[\d,]*\d(?:\.\d+)?|\d+(?:\.\d+)?", cells)]
    assert numbers
    assert [number for number in numbers if not any(_printed_as(figure, number) for figure in figures.values())] == []


def feature_costs(page: str) -> list[tuple[str, str, str]]:
    """Return (feature, engine, cost relative to the fastest path) of each row of a page."""
    text = (ROOT / f"docs/explanation/{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^\| (\S.*) \| (compiled|reference) \| ([\d.,]+) \|$", text, re.MULTILINE)


@pytest.mark.parametrize(("page", "feature"), FEATURES)
def test_engine_and_cost_of_each_feature_match_page(page: str, feature: str) -> None:
    case, module = TABLES[page]
    (engine, cost), *others = [cells for name, *cells in feature_costs(page) if name == feature]
    assert not others and engine == engine_of(module.FEATURES[feature](module.fastest()))
    figures = json.loads((ROOT / f"benchmarks/results/{case}.json").read_text(encoding="utf-8"))["figures"]
    assert figures.keys() - {"peak_mb"} == set(module.FEATURES) and _printed_as(figures[feature], cost.replace(",", ""))


def test_stated_slowdown_of_opaque_orders_matches_the_table() -> None:
    """The page on own orders and the summary of the page on performance state the row of opaque orders in two digits."""
    (cost,) = [float(cost) for name, _, cost in feature_costs("performance") if name == "custom opaque order"]
    order, summary = (
        " ".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8").split())
        for page in ("how-to/own-queue-order", "explanation/performance")
    )
    stated = re.findall(r'`"opaque"` .{,80}?\[about (\d+) times slower\]', order)
    stated += re.findall(r"opaque queue order costs about (\d+) times the fastest path", summary)
    assert stated == [f"{float(f'{cost:.2g}'):.0f}"] * 2


@pytest.mark.parametrize("page", TABLES)
def test_page_lists_all_features_in_order(page: str) -> None:
    assert [name for name, *_ in feature_costs(page)] == list(TABLES[page][1].FEATURES)


def test_all_rows_are_parsed_and_rounding_is_checked() -> None:
    assert len(ROWS) == 21
    assert not _printed_as(0.1374, "0.138")
    assert _printed_as(0.1374, "0.14")
    assert _printed_as(880600.0, "881000")


def test_table_of_combinations_omits_only_orders_that_run_on_the_same_engines_and_placements_of_other_schedulers() -> None:
    page = combinations.PAGE.read_text(encoding="utf-8")
    for name in combinations.WITH_COLUMN:
        order = registry.make("orders", name)
        assert f"`{name}`" in page and order.kind == registry.make("orders", "sjf").kind
    others = {"delay", "earliest_finish", "flat", "high", "pref", "closer_to_data", "device_shares"}
    names = {name for name in combinations.shipped("placements") if not name.startswith("nvme_")}
    assert names - others == {*combinations.ON_NODES, "racks"}


def test_table_of_combinations_is_generated_from_results_and_engines() -> None:
    """The engine in each cell is the one that would run it now."""
    figures = json.loads(combinations.RESULTS.read_text(encoding="utf-8"))["figures"]
    page = combinations.PAGE.read_text(encoding="utf-8")
    assert combinations.table(figures) in page
    names = {combinations.key(placed, order, backfill) for placed, order, backfill, _ in combinations.combinations()}
    assert names == figures.keys() - {"peak_mb"}
