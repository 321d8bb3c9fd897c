"""Table of docs/explanation/memory-agent.md from the rows of the memory agent experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

WAYS = ("equal", "static", "agent")
COLUMNS = (
    "run", "way", "workload", "tolerance", "cpu_s", "alone_cpu_s", "slowdown", "worst_window",
    "ended", "major_faults", "moves", "makespan_s", "energy",
)  # fmt: skip
TITLES = {"conjugate_gradient": "conjugate gradients", "graph_search": "graph search", "kmeans_phases": "K-means, two phases"}


def to_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the table of the page: medians over the runs of each policy, with ranges if there are several."""
    lines = ["| | tolerance | " + " | ".join(WAYS) + " |", "|---" * (2 + len(WAYS)) + "|"]
    by_way = {way: [row for row in rows if row["way"] == way] for way in WAYS}
    for name, title in TITLES.items():
        here = [[row for row in by_way[way] if row["workload"] == name] for way in WAYS]
        tolerance = next(f"{float(str(row['tolerance'])):g}" for row in rows if row["workload"] == name)
        lines.append(_line(title, tolerance, [_slowdowns(some) for some in here]))
    worst = {way: _of_runs(by_way[way], "worst_window") for way in WAYS}
    lines.append(_line("worst window", "", [_median_range(worst[way], "worst_window", 1) for way in WAYS]))
    killed = {way: sum(row["ended"] == "killed" for row in by_way[way]) for way in WAYS}
    stopped = {way: any(row["ended"] == "took too long" for row in by_way[way]) for way in WAYS}
    for title, column in (("makespan (s)", "makespan_s"), ("modeled energy", "energy")):
        medians = {way: _median_range(_of_runs(by_way[way], column), column, 0) for way in WAYS}
        cells = [
            ("above " if stopped[way] else "") + medians[way] + (f", {killed[way]} killed" if killed[way] else "")
            for way in WAYS
        ]
        lines.append(_line(title, "", cells))
    return "\n".join(lines)


def _line(title: str, tolerance: str, cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in (title, tolerance, *cells)) + "|"


def _of_runs(some: Sequence[Mapping[str, object]], column: str) -> list[dict[str, float]]:
    """Return the largest value of the three programs in each run."""
    numbers = sorted({int(str(row["run"])) for row in some})
    return [{column: max(float(str(row[column])) for row in some if int(str(row["run"])) == number)} for number in numbers]


def _median_range(some: Sequence[Mapping[str, object]], column: str, digits: int) -> str:
    """Return the median of the programs that were not killed, with the range if there are several."""
    values = [float(str(row[column])) for row in some if row.get("ended") != "killed"]
    if not values:
        return ""
    middle = f"{median(values):.{digits}f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _slowdowns(some: Sequence[Mapping[str, object]]) -> str:
    """Return the slowdowns of a program over the runs of one policy, and the number of runs that did not finish."""
    ends = []
    for ended, word in (("killed", "killed"), ("took too long", "stopped")):
        if count := sum(row["ended"] == ended for row in some):
            ends.append(word if len(some) == 1 else f"{count} of {len(some)} {word}")
    value = _median_range(some, "slowdown", 2)
    return f"{value} ({', '.join(ends)})" if value and ends else value or ", ".join(ends)
