"""Values on the page on memory by request and by use match the recorded runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from poolwise import catalog, studies
from poolwise.metrics.intervals import mean_interval

FOLDER = Path(__file__).parents[2] / "docs" / "explanation"
PAGE = (FOLDER / "memory-by-use.md").read_text(encoding="utf-8")
RUNS = pl.read_csv(FOLDER / "memory-by-use.csv")
GENERATORS = {"Perlmutter-like": "perlmutter_like", "JUWELS-like": "juwels_like"}
SHIPPED, SIZE = "as shipped", "3 TiB"
SEEDS = {("perlmutter_like", SHIPPED): 10, ("juwels_like", SHIPPED): 5}
"""Number of seeds per generator and rule; variants of the policy have four."""


def values(column: str, **chosen: object) -> Mapping[int, float]:
    """Return a column of one kind of run, by seed."""
    rows = RUNS.filter(**{"rule": SHIPPED, **chosen}).sort("seed")
    assert rows["seed"].n_unique() == len(rows) >= SEEDS.get((chosen["generator"], chosen.get("rule", SHIPPED)), 4)
    return dict(zip(rows["seed"].to_list(), rows[column].to_list(), strict=True))


def ratio(one: Mapping[int, float], other: Mapping[int, float]) -> str:
    """Return the mean ratio per seed and its interval, over all seeds of `one`."""
    interval = mean_interval([one[seed] / other[seed] for seed in sorted(one)])
    return f"{interval.mean:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def throughput(generator: str, allocation: str, overestimate: float, size: str, rule: str = SHIPPED) -> Mapping[int, float]:
    chosen = {"generator": generator, "allocation": allocation, "overestimate": overestimate, "pool_per_rack": size}
    return values("jobs_per_hour", **chosen, rule=rule)


@pytest.mark.parametrize("title", GENERATORS)
def test_throughput_by_pool_size_matches_runs(title: str) -> None:
    section = PAGE.split(f"**{title} jobs")[1].split("\n**")[0]
    printed = re.findall(r"^\| (\d TiB) \| (.*) \|$", section, re.M)
    sizes = sorted(RUNS["pool_per_rack"].unique())
    assert [size for size, _ in printed] == sizes and len(sizes) == 5
    for size, cells in printed:
        still, more, lent, both = (
            throughput(GENERATORS[title], allocation, over, size)
            for allocation in ("by request", "by use")
            for over in (0.0, 0.6)
        )
        assert cells.split(" | ") == [ratio(more, still), ratio(lent, still), ratio(both, more), ratio(both, still)]


def test_out_of_memory_table_matches_runs() -> None:
    printed = re.findall(r"^\| ([a-z' ]+) \| (\d+ %) \| (.*) \|$", PAGE, re.M)
    assert len(printed) == 2 * RUNS["rule"].n_unique()
    for rule, percent, cells in printed:
        over = float(percent.removesuffix(" %")) / 100
        chosen = {"generator": "perlmutter_like", "allocation": "by use", "overestimate": over, "pool_per_rack": SIZE}
        stopped, lost, stalled, work = (
            values(column, **chosen, rule=rule)
            for column in ("out_of_memory", "lost_node_hours", "stalled_node_hours", "work_node_hours")
        )
        share = [100 * sum(part[seed] / work[seed] for seed in work) / len(work) for part in (lost, stalled)]
        gain = ratio(
            throughput("perlmutter_like", "by use", over, SIZE, rule), throughput("perlmutter_like", "by request", over, SIZE)
        )
        mean = sum(stopped.values()) / len(stopped)
        assert cells.split(" | ") == [gain, f"{mean:.1f}", f"{share[0]:.2f} %", f"{share[1]:.2f} %"]


def test_shipped_study_matches_runs() -> None:
    study = studies.load(catalog.find("studies", "memory-by-use"))
    sizes, over = (set(study.vary[path]) for path in ("machine.pool.memory.memory", "workload.memory_use.overestimate"))
    assert sizes == set(RUNS["pool_per_rack"]) and over == set(RUNS["overestimate"])
    assert (RUNS["done"] == RUNS["jobs"]).filter(RUNS["rule"] != "lost").all()


def best(generator: str, allocation: str) -> Mapping[int, float]:
    """Return the most jobs per hour and million dollars over all sizes, by seed, if users request 60 % too much."""
    chosen = {"generator": generator, "allocation": allocation, "overestimate": 0.6, "rule": SHIPPED}
    rows = RUNS.filter(**chosen).group_by("seed").agg(pl.col("jobs_per_hour_per_million").max())
    return dict(zip(rows["seed"].to_list(), rows["jobs_per_hour_per_million"].to_list(), strict=True))


@pytest.mark.parametrize(("title", "generator"), GENERATORS.items())
def test_throughput_per_dollar_at_best_size_matches_runs(title: str, generator: str) -> None:
    assert f"{ratio(best(generator, 'by use'), best(generator, 'by request'))} times as many {title} jobs" in PAGE.replace(
        "\n", " "
    )
