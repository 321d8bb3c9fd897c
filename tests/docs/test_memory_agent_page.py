"""The table of the page on the memory agent is that of the runs that are kept beside it."""

import csv
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "explanation"
PAGE = (FOLDER / "memory-agent.md").read_text(encoding="utf-8")
with (FOLDER / "memory-agent.csv").open(newline="") as text:
    ROWS = {(row["way"], row["workload"]): row for row in csv.DictReader(text)}
NAMES = {"conjugate_gradient": "conjugate gradients", "graph_search": "graph search", "kmeans_phases": "K-means, two phases"}
WAYS = ("equal", "static", "agent")


def cells(name: str) -> list[str]:
    """Cells of the row of that name."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {name} ")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def slowdown(row: dict[str, str]) -> str:
    value = float(row["slowdown"])
    if row["ended"] == "killed":
        return "killed"
    return f"{value:.1f} (stopped)" if row["ended"] == "took too long" else f"{value:.2f}"


def test_slowdowns_and_tolerances() -> None:
    for workload, name in NAMES.items():
        rows = [ROWS[way, workload] for way in WAYS]
        assert cells(name) == [rows[0]["tolerance"], *map(slowdown, rows)]


def test_worst_windows_times_and_energy() -> None:
    worst = [max(float(ROWS[way, workload]["worst_window"]) for workload in NAMES) for way in WAYS]
    assert cells("worst window of the three")[1:] == [f"{value:.1f}" for value in worst]
    for column, name in {"makespan_s": "seconds until all had ended", "energy": "energy by the model"}.items():
        found = [float(next(row for (which, _), row in ROWS.items() if which == way)[column]) for way in WAYS]
        assert [cell.removeprefix("above ").split(",")[0] for cell in cells(name)[1:]] == [f"{value:.0f}" for value in found]


def test_the_agent_alone_kept_all_tolerances() -> None:
    def kept(way: str) -> bool:
        rows = [ROWS[way, workload] for workload in NAMES]
        return all(row["ended"] == "done" and float(row["slowdown"]) <= float(row["tolerance"]) for row in rows)

    assert [kept(way) for way in WAYS] == [False, False, True]
