"""Values on the page on measured profiles match the recorded measurements with added latency."""

import csv
from pathlib import Path

from benchmarks.added_latency.experiment import COLUMNS, to_table

FOLDER = Path(__file__).parents[2] / "docs" / "explanation"
with (FOLDER / "added-latency.csv").open(newline="") as text:
    ROWS = list(csv.DictReader(text))
MOSTLY_REMOTE = [row for row in ROWS if row["added_us"] != "0" and float(row["remote"]) >= 0.5]


def ratios(column: str, added: str) -> list[float]:
    """Return predicted over measured slowdowns for programs that lack half of their memory or more."""
    return [float(row[column]) / float(row["slowdown"]) for row in MOSTLY_REMOTE if row["added_us"] == added]


def test_table_matches_measurements() -> None:
    assert tuple(ROWS[0]) == COLUMNS
    assert to_table(ROWS) in (FOLDER / "measured-profiles.md").read_text(encoding="utf-8")


def test_latency_model_overestimates_and_fault_model_is_within_15_percent() -> None:
    assert min(ratios("by_model", "5")) >= 1.5 and max(ratios("by_model", "5")) < 2.15
    assert min(ratios("by_model", "20")) >= 2.3 and max(ratios("by_model", "20")) < 3.4
    assert all(abs(ratio - 1) <= 0.15 for added in ("5", "20") for ratio in ratios("by_faults", added))


def test_whole_cost_of_a_page_in_is_17_to_25_us() -> None:
    costs = [
        1e6 * float(row["slowdown"]) * float(row["local_s"]) / float(row["major_faults"])
        for row in ROWS
        if row["added_us"] == "0" and float(row["remote"]) >= 0.5
    ]
    assert round(min(costs)) == 17 and round(max(costs)) == 25


def test_5_us_raise_slowdown_at_75_percent_remote_by_a_third() -> None:
    high = {(row["program"], row["added_us"]): float(row["slowdown"]) for row in ROWS if row["remote"] == "0.75"}
    assert all(1.3 < high[program, "5"] / high[program, "0"] < 1.4 for program, _ in high)
