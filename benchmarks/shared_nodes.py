"""Compiled engine on shared nodes, compared with the reference engine, and its growth with nodes and waiting jobs."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np

from benchmarks.case import Figures, case, seconds
from benchmarks.pools import mean_waiting
from poolwise.engines import Result, simulate
from poolwise.engines.shared_nodes.replay import load, load_kind
from poolwise.model import Kind, Machine, ReservedWindow, Workload
from poolwise.quantities import DAY, HOUR, SECOND
from poolwise.random import uniform
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler

CORES, GIB = 64, 1024
MEMORY = 256 * GIB


def shared(nodes: int) -> Machine:
    """Return a machine of nodes with 64 cores and 256 GiB, 50 per rack."""
    rack = np.arange(nodes) // 50
    return Machine(
        name=f"{nodes} shared nodes",
        owners=tuple(f"n{k}" for k in range(nodes)),
        kind=np.full(nodes, Kind.NODE, dtype=np.int64),
        type=("node",) * nodes,
        rack=rack,
        position=np.stack([rack, np.arange(nodes) % 50], axis=1),
        home=np.full(nodes, -1),
        resources=("memory", "cores"),
        capacity=np.tile(np.array([MEMORY, CORES]), (nodes, 1)),
    )


def shared_jobs(jobs: int, nodes: int, load: float, *, seed: int = 0, burst: float = 1.0) -> Workload:
    """Return jobs that use one core to all cores of a node (one in ten: two to eight nodes), with 1 to 8 GiB per core.

    Runtimes are log-uniform from a minute to a day; users request one to five times as much. Submissions are a Poisson process
    that demands the share `load` of the machine's cores, accelerated by `burst`.
    """
    job = np.arange(1, jobs + 1)
    size, wide, runtime, guess, memory, gap = (
        uniform(seed, f"shared.{what}", job) for what in ("size", "wide", "runtime", "guess", "memory", "gap")
    )
    cores = np.floor(2 ** (size * 6)).astype(np.int64)
    parts = np.where(wide < 0.1, 2 ** (1 + np.floor(wide * 30).astype(np.int64)), 1)
    cores = np.where(parts > 1, np.maximum(cores, CORES // 2), cores)
    duration = np.ceil(60 * 1440**runtime).astype(np.int64)
    rate = load * nodes * CORES / float((cores * parts * duration).mean()) * burst
    submit = np.floor(np.cumsum(-np.log1p(-gap)) / rate).astype(np.int64)
    each = np.ceil(cores * 8**memory * 0.5).astype(np.int64) * GIB
    return Workload.of(
        submit * SECOND,
        duration * SECOND,
        id=job,
        requested=np.ceil(duration * 5**guess / 60).astype(np.int64) * 60 * SECOND,
        requests={"nodes": parts, "cores": cores, "memory": np.minimum(each, MEMORY)},
        name="shared",
    )


def run(
    workload: Workload, machine: Machine, placement: str = "first_fit", order: str = "fcfs", engine: str = "compiled"
) -> Result:
    """Simulate a run under EASY."""
    how = ListScheduler(make("orders", order), make("backfills", "easy"), make("placements", placement))
    return simulate(workload, machine, how, engine=engine)


def throughput(placement: str, jobs: int, windows: tuple[ReservedWindow, ...] = ()) -> Figures:
    """Return the jobs replayed per CPU second at load 0.9 on 1,500 nodes under FCFS and EASY."""
    load()
    machine, workload = replace(shared(1500), windows=windows), shared_jobs(jobs, 1500, 0.9)
    spent, result = seconds(lambda: run(workload, machine, placement))
    waited = result.schedule.start - workload.submit[result.schedule.job]
    return {
        "seconds": spent,
        "jobs_per_second": jobs / spent,
        "mean_waiting": mean_waiting(result.schedule),
        "share_that_waited": float((waited > 0).mean()),
    }


@case("shared-million", jobs_per_second=(">=", 100_000), peak_mb=("<=", 1000))
def shared_million() -> Figures:
    """Benchmark a million jobs placed by first fit."""
    return throughput("first_fit", 1_000_000)


@case("shared-best-fit", jobs_per_second=(">=", 100_000))
def shared_best_fit() -> Figures:
    """Benchmark 200,000 jobs placed by best fit, which keeps whole nodes free for wide jobs, so that few jobs wait."""
    return throughput("best_fit", 200_000)


@case("shared-worst-fit", jobs_per_second=(">=", 100_000))
def shared_worst_fit() -> Figures:
    """Benchmark the same jobs placed by worst fit, which fragments all nodes, so that half of the jobs wait."""
    return throughput("worst_fit", 200_000)


@case("shared-packed", jobs_per_second=(">=", 100_000))
def shared_packed() -> Figures:
    """Benchmark the same jobs packed by rack."""
    return throughput("packed", 200_000)


@case("shared-windows-night", jobs_per_second=(">=", 50_000))
def shared_windows_night() -> Figures:
    """Benchmark 60,000 jobs of three days under first fit, with half of the nodes closed each night, so that hundreds wait."""
    load_kind("windows")
    half = np.arange(1500) < 750
    nights = (ReservedWindow(f"night {day}", day * DAY + 2 * HOUR, day * DAY + 4 * HOUR, half) for day in range(14))
    return throughput("first_fit", 60_000, tuple(nights))


@case("shared-windows-all", jobs_per_second=(">=", 50_000))
def shared_windows_all() -> Figures:
    """Benchmark the same jobs with a window of six hours on all nodes; more than a thousand jobs wait for its end."""
    load_kind("windows")
    upkeep = ReservedWindow("upkeep", 3 * DAY + 2 * HOUR, 3 * DAY + 8 * HOUR, np.ones(1500, dtype=np.bool_))
    return throughput("first_fit", 60_000, (upkeep,))


def against_reference(backfill: str) -> Figures:
    """Return the ratio of the reference engine's CPU time to the compiled engine's, with arrivals at 3x capacity."""
    load()
    machine, workload = shared(1500), shared_jobs(5_000, 1500, 3.0)
    how = ListScheduler(make("orders", "fcfs"), make("backfills", backfill), make("placements", "first_fit"))
    quick, fast = seconds(lambda: simulate(workload, machine, how, engine="compiled"), repeat=5)
    slow, plain = seconds(lambda: simulate(workload, machine, how, engine="reference"))
    same = all(
        np.array_equal(getattr(fast.schedule, name), getattr(plain.schedule, name))
        for name in ("job", "start", "end", "offset", "owner", "amount")
    )
    if not same:
        raise AssertionError("the schedules of the engines differ")
    return {"ratio": slow / quick, "seconds": quick, "reference_seconds": slow}


@case("shared-reference", ratio=(">=", 200))
def shared_reference() -> Figures:
    """Benchmark EASY on 1,500 nodes."""
    return against_reference("easy")


def deep_queue(backfill: str, jobs: int, demand: float) -> float:
    """Return the CPU time of a deep queue on 217 nodes under FCFS."""
    how = ListScheduler(make("orders", "fcfs"), make("backfills", backfill), make("placements", "first_fit"))
    machine, workload = shared(217), shared_jobs(jobs, 217, demand)
    return seconds(lambda: simulate(workload, machine, how, engine="compiled"), repeat=3)[0]


NODES = """\
version = 1
[[node]]
name = "node"
allocation = "shared"
cores = 64
memory = "256 GiB"
[[rack]]
count = 7
nodes = { node = 31 }
"""
COLUMNS = "submit:s, duration:s, requested:s, memory:MiB"


def stated(jobs: int, demand: float) -> dict[str, float]:
    """Return, for each backfill, the wall-clock seconds that `poolwise simulate` reports for a deep queue, with all arrays."""
    workload, least = shared_jobs(jobs, 217, demand), dict[str, float]()
    with tempfile.TemporaryDirectory() as folder:
        machine, table = Path(folder) / "nodes.toml", Path(folder) / "jobs.csv"
        machine.write_text(NODES, encoding="utf-8")
        nodes, cores, memory = (workload.requests[name] for name in ("nodes", "cores", "memory"))
        times = (workload.submit // SECOND, workload.duration // SECOND, workload.requested // SECOND)
        rows = zip(*(column.tolist() for column in (workload.id, *times, nodes, nodes * cores, memory)), strict=True)
        lines = ("id,submit,duration,requested,nodes,cores,memory", *(",".join(map(str, row)) for row in rows))
        table.write_text("\n".join(lines), encoding="utf-8")
        for backfill in ("easy", "conservative") * 3:
            words = ("simulate", table, "--map", COLUMNS, "--machine", machine, "--backfill", backfill)
            command = [sys.executable, "-m", "poolwise", *map(str, words), "--placement", "first_fit"]
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            spent = re.search(r"simulated by the compiled engine in +([\d.]+) +s", printed)
            assert spent is not None, printed
            least[backfill] = min(least.get(backfill, inf), float(spent[1]))
    return least


@case(
    "shared-conservative",
    ratio_5000=("<=", 20), ratio_19579=("<=", 20), stated_ratio_5000=("<=", 20), stated_ratio_19579=("<=", 20),
)  # fmt: skip
def shared_conservative() -> Figures:
    """Return the time of conservative backfilling relative to EASY in deep queues: CPU time, and as a command reports it."""
    load()
    figures: Figures = {}
    for jobs, demand in ((5_000, 2.0), (19_579, 1.1)):
        easy, conservative = (deep_queue(name, jobs, demand) for name in ("easy", "conservative"))
        figures |= {f"easy_{jobs}": easy, f"conservative_{jobs}": conservative, f"ratio_{jobs}": conservative / easy}
        said = stated(jobs, demand)
        figures |= {f"stated_{name}_{jobs}": spent for name, spent in said.items()}
        figures[f"stated_ratio_{jobs}"] = said["conservative"] / said["easy"]
    return figures


@case("shared-growth-nodes", exponent=("<=", 0.6))
def growth_with_nodes() -> Figures:
    """Return the exponent with which the CPU time per job grows with the number of nodes, from 375 to 6,000, at load 0.9."""
    figures: Figures = {}
    sizes, cost = (375, 1_500, 6_000), []
    load()
    for nodes in sizes:
        workload = shared_jobs(40 * nodes, nodes, 0.9)
        spent, _ = seconds(lambda w=workload, n=nodes: run(w, shared(n)), repeat=3)
        cost.append(1e6 * spent / len(workload))
        figures[f"us_per_job_{nodes}"] = cost[-1]
    return {**figures, "exponent": float(np.polyfit(np.log(sizes), np.log(cost), 1)[0])}


@case("shared-growth-queue", exponent=("<=", 0.6))
def growth_with_queue() -> Figures:
    """Return the exponent with which the CPU time per job grows with the number of waiting jobs, at 100x capacity."""
    figures: Figures = {}
    waiting, cost = [], []
    load()
    for jobs in (400, 4_000, 40_000):
        workload = shared_jobs(jobs, 100, 0.9, burst=100)
        spent, result = seconds(lambda w=workload: run(w, shared(100)), repeat=3)
        waiting.append(mean_waiting(result.schedule))
        cost.append(1e6 * spent / jobs)
        figures[f"waiting_{jobs}"], figures[f"us_per_job_{jobs}"] = waiting[-1], cost[-1]
    return {**figures, "exponent": float(np.polyfit(np.log(waiting), np.log(cost), 1)[0])}
