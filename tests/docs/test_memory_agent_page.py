"""Values on the page on the memory agent match the recorded runs."""

import csv
from pathlib import Path

import pytest

from benchmarks.memory_agent_table import COLUMNS, TITLES, WAYS, to_table

FOLDER = Path(__file__).parents[2] / "docs" / "explanation"
with (FOLDER / "memory-agent.csv").open(newline="") as text:
    ROWS = list(csv.DictReader(text))


def test_table_matches_runs() -> None:
    assert tuple(ROWS[0]) == COLUMNS
    assert to_table(ROWS) in (FOLDER / "memory-agent.md").read_text(encoding="utf-8")


def beyond(way: str, workload: str) -> list[float]:
    """Return slowdown minus tolerance of each run."""
    rows = [row for row in ROWS if (row["way"], row["workload"]) == (way, workload)]
    return [float(row["slowdown"]) - float(row["tolerance"]) for row in rows]


def test_statements_on_the_agent_match_runs() -> None:
    rows = {way: [row for row in ROWS if row["way"] == way] for way in WAYS}
    assert all(row["ended"] == "done" for row in rows["agent"]) and len(rows["agent"]) == 9
    for column in ("makespan_s", "energy"):
        most = {way: max(float(row[column]) for row in rows[way]) for way in WAYS}
        assert most["agent"] == min(most.values())
    assert max(beyond("agent", "kmeans_phases")) <= 0
    gradients, search = beyond("agent", "conjugate_gradient"), beyond("agent", "graph_search")
    assert (round(min(gradients), 2), round(max(gradients), 2)) == (0.03, 0.12)
    assert (round(min(search), 2), round(max(search), 2)) == (0.05, 0.15)
    assert {row["ended"] for row in rows["static"] if row["workload"] == "graph_search"} == {"killed"}
    assert (min(int(row["moves"]) for row in rows["agent"]), max(int(row["moves"]) for row in rows["agent"])) == (19, 29)


def row(run: int, way: str, workload: str, slowdown: float, ended: str = "done") -> dict[str, object]:
    numbers = {
        "tolerance": 1.0,
        "slowdown": slowdown,
        "worst_window": 10 * slowdown,
        "makespan_s": 100 + run,
        "energy": 50 + run,
    }
    return {"run": run, "way": way, "workload": workload, "ended": ended, **numbers}


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_several_runs_show_median_and_range(order: tuple[int, ...]) -> None:
    rows = [row(run, way, name, run / 10) for run in order for way in WAYS for name in TITLES]
    lines = to_table(rows).splitlines()
    assert lines[0] == "| | tolerance | equal | static | agent |"
    assert lines[3] == "| graph search | 1 | " + " | ".join(["0.20 (0.10 to 0.30)"] * 3) + " |"
    assert lines[5].startswith("| worst window | | 2.0 (1.0 to 3.0) |")
    assert lines[6].startswith("| makespan (s) | | 102 (101 to 103) |")


def test_killed_runs_show_no_slowdown_and_stopped_runs_are_counted() -> None:
    rows = [row(run, way, name, run / 10) for run in (1, 2) for way in WAYS for name in TITLES]
    rows[0] |= {"ended": "took too long"}
    rows[1] |= {"ended": "killed"}
    rows[10] |= {"ended": "killed"}
    first, second = (line.split(" | ")[2] for line in to_table(rows).splitlines()[2:4])
    assert (first, second) == ("0.15 (0.10 to 0.20) (1 of 2 stopped)", "2 of 2 killed")
    assert "| above 102 (101 to 102), 2 killed |" in to_table(rows)
    assert "| killed |" in to_table([row(1, way, name, 0.1, "killed") for way in WAYS for name in TITLES])


def test_policies_without_runs_have_empty_cells() -> None:
    lines = to_table([row(1, "agent", name, 0.1) for name in TITLES]).splitlines()
    assert lines[2] == "| conjugate gradients | 1 | | | 0.10 |" and lines[-1] == "| modeled energy | | | | 51 |"
