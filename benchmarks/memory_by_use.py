"""Memory allocation by use compared with allocation by request: throughput and throughput per dollar, over seeds.

Run: python -m benchmarks.memory_by_use [SEEDS]. The rows of each seed are cached in results/memory-by-use until the code
changes. The last step writes docs/explanation/memory-by-use.csv, the data of the page of that name. Ten seeds take half an hour
on one core.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from poolwise import catalog, studies
from poolwise.engines import simulate
from poolwise.files.cost_items import cost_items, dollars_to_buy
from poolwise.metrics.memory_use import lost_node_hours, pool_memory, ran_out_of_memory, stalled_node_hours
from poolwise.metrics.window import Window
from poolwise.model import Schedule, Workload
from poolwise.quantities import HOUR
from poolwise.studies.cells import Cell, cell_sources, workload_of
from poolwise.studies.description import ConfiguredRun

GENERATORS: Mapping[str, Mapping[str, Any]] = {
    "perlmutter_like": {},
    "juwels_like": {"workload.generator": "juwels_like"},
}
RULES: Mapping[str, Mapping[str, Any]] = {
    "no patience": {"patience_s": 0.0},
    "an hour's patience": {"patience_s": 3600.0},
    "no margin": {"margin": 0.0},
    "margin of a half": {"margin": 0.5},
    "measured each hour": {"interval_s": 3600.0},
    "lost": {"when_short": "lose"},
}
"""Variants of the policy, evaluated at `SIZE`."""
SIZE = "3 TiB"
CACHE, WRITTEN = Path("results/memory-by-use"), Path("docs/explanation/memory-by-use.csv")


def cells(generator: str, seed: int) -> tuple[list[Cell], int]:
    """Return the cells of the study for a seed, without jobs that any run must reject, and the number of these jobs."""
    study = studies.load(catalog.find("studies", "memory-by-use"), {**GENERATORS[generator], "seeds": {"values": [seed]}})
    hardest = min(study.cells, key=lambda cell: (cell.machine.capacity.sum(), -float(str(cell.parameters[OVER]))))
    workload = workload_of(hardest)
    refused = tuple(workload.id[sorted(run(hardest, workload).rejected)].tolist())
    return [cell.without(refused) for cell in study.cells], len(refused)


def variants(cells: list[Cell]) -> Iterator[tuple[str, Cell]]:
    """Yield the policy as shipped, and its variants."""
    for cell in cells:
        yield "as shipped", cell
    for cell in cells:
        if cell.parameters[KIND] == "by_use" and cell.parameters[POOL] == SIZE:
            for rule, settings in RULES.items():
                yield rule, replace(cell, scheduler=cell.scheduler.model_copy(update={"settings": dict(settings)}))


def rows(generator: str, seed: int) -> Iterator[dict[str, Any]]:
    """Yield every run of a seed; variants run on the first generator only."""
    shipped_cells, left_out = cells(generator, seed)
    for rule, cell in variants(shipped_cells):
        if rule == "as shipped" or generator == next(iter(GENERATORS)):
            yield {**labels(generator, cell, rule, left_out), **numbers(run(cell, workload_of(cell)), cell)}


KIND, OVER, POOL = "scheduler.kind", "workload.memory_use.overestimate", "machine.pool.memory.memory"


def labels(generator: str, cell: Cell, rule: str, refused: int) -> dict[str, Any]:
    """Return the label columns of a row."""
    return {
        "generator": generator,
        "seed": cell.seed,
        "allocation": {"list": "by request", "by_use": "by use"}[str(cell.parameters[KIND])],
        "overestimate": float(str(cell.parameters[OVER])),
        "pool_per_rack": cell.parameters[POOL],
        "rule": rule,
        "left_out": refused,
    }


def run(cell: Cell, workload: Workload) -> Schedule:
    """Simulate a cell."""
    configured = ConfiguredRun.of(cell)
    model, estimate = configured.model, configured.estimate
    return simulate(workload, cell.machine, configured.scheduler, model=model, estimate=estimate, seed=cell.seed).schedule


def numbers(schedule: Schedule, cell: Cell) -> dict[str, float]:
    """Return jobs per hour from the first submission to the last end, the same per million dollars, and memory metrics."""
    hours = (int(schedule.end.max()) - int(schedule.workload.submit[0])) / HOUR
    held, needed = pool_memory(schedule, Window(int(schedule.workload.submit[0]), int(schedule.end.max())))
    assert cell.costs.prices is not None
    throughput = int(schedule.done.sum()) / hours
    return {
        "jobs": len(schedule.workload),
        "done": int(schedule.done.sum()),
        "jobs_per_hour": throughput,
        "jobs_per_hour_per_million": 1e6 * throughput / dollars_to_buy(cost_items(cell.costs.prices, cell.machine)),
        "pool_held": held,
        "pool_needed": needed,
        "out_of_memory": int(ran_out_of_memory(schedule).sum()),
        "lost_node_hours": lost_node_hours(schedule),
        "stalled_node_hours": stalled_node_hours(schedule),
        "work_node_hours": float(schedule.workload.node_seconds.sum() / 3600),
        "resizes": len(schedule.resizes),
    }


def main(seeds: list[int]) -> None:
    """Run the seeds that are not cached, and write all rows."""
    CACHE.mkdir(parents=True, exist_ok=True)
    frames = []
    for seed in seeds:
        for generator in GENERATORS:
            file = CACHE / f"{generator}-{seed}-{cell_sources()[:12]}.csv"
            if not file.is_file():
                pl.DataFrame(list(rows(generator, seed))).write_csv(file, float_precision=6)
            frames.append(pl.read_csv(file))
    pl.concat(frames).sort("generator", "overestimate", "allocation", "rule", "pool_per_rack", "seed").write_csv(WRITTEN)


if __name__ == "__main__":
    main(list(range(int(sys.argv[1]) if len(sys.argv) > 1 else 10)))
