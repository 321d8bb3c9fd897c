"""Compiled engine compared with naive Python, on racks with memory pools and on flat machines."""

from __future__ import annotations

import tempfile
from math import inf
from pathlib import Path

import numpy as np

from benchmarks import naive_pools
from benchmarks.case import Figures, case, peak_mb, seconds
from benchmarks.workloads import LOCAL_MIB, TIB, overloaded, perlmutter, perlmutter_jobs, with_slowdown, write_naive
from poolwise.engines import Result, simulate
from poolwise.engines.list_scheduling.loading import load_all, load_kernels
from poolwise.model import Machine, Schedule, Workload
from poolwise.performance.remote_memory import RemoteMemory
from poolwise.registry import make
from poolwise.schedulers.list import ListScheduler
from poolwise.traces.generators import generate


def fast(workload: Workload, machine: Machine, order: str, engine: str = "compiled", backfill: str = "easy") -> Result:
    """Simulate a run under EASY, or another backfill."""
    scheduler = ListScheduler(make("orders", order), make("backfills", backfill))
    return simulate(workload, machine, scheduler, model=RemoteMemory(), engine=engine)


def against_naive(pool_tib: int, order: str = "fm") -> Figures:
    """Return the ratio of the naive baseline's CPU time to the compiled engine's; the schedules must be identical."""
    load_all()
    machine, workload = perlmutter(pool_tib), perlmutter_jobs()
    with tempfile.TemporaryDirectory() as folder:
        write_naive(workload, Path(folder) / "jobs.csv")
        jobs = naive_pools.read(Path(folder) / "jobs.csv", LOCAL_MIB)
    quick, result = seconds(lambda: fast(workload, machine, order), repeat=5)
    slow, done = seconds(lambda: naive_pools.simulate(jobs, 6, 256, pool_tib * TIB, order, "easy", "rack"))
    schedule = result.schedule
    ids = workload.id[schedule.job].tolist()
    if dict(zip(ids, zip(schedule.start.tolist(), schedule.end.tolist(), strict=True), strict=True)) != done:
        raise AssertionError("the schedules of the compiled engine and the naive baseline differ")
    return {"ratio": slow / quick, "seconds": quick, "naive_seconds": slow}


@case("perlmutter-28tib", ratio=(">=", 300))
def perlmutter_28() -> Figures:
    """Benchmark 13,930 jobs at load 1 under FM and EASY, with 28 TiB per rack."""
    return against_naive(28)


@case("perlmutter-8tib", ratio=(">=", 400))
def perlmutter_8() -> Figures:
    """Benchmark the same jobs with 8 TiB per rack, where memory is scarce and the queue longer."""
    return against_naive(8)


@case("conservative", fm=("<=", 20.0), fcfs=("<=", 20.0))
def conservative() -> Figures:
    """Compare conservative backfilling with EASY, in turn: 20,000 jobs at load 0.9 with 28 TiB per rack."""
    load_all()
    machine, workload = perlmutter(28), perlmutter_jobs(20_000, load=0.9)
    figures: Figures = {}
    for order in ("fm", "fcfs"):
        spent = {"easy": inf, "conservative": inf}
        for _ in range(3):
            for backfill, least in spent.items():
                once, _ = seconds(lambda order=order, backfill=backfill: fast(workload, machine, order, backfill=backfill))
                spent[backfill] = min(least, once)
        figures |= {order: spent["conservative"] / spent["easy"], f"{order}_seconds": spent["conservative"]}
    return figures


@case("slurm-backfill", ratio=(">=", 40))
def slurm_backfill() -> Figures:
    """Compare the backfill `slurm` with the reference engine on 500 jobs, and time 20,000 jobs: 1,536 nodes at load 0.9."""
    load_kernels("backfill at intervals")
    machine, few, many = perlmutter(28), perlmutter_jobs(500, load=0.9), perlmutter_jobs(20_000, load=0.9)
    quick, result = seconds(lambda: fast(few, machine, "fcfs", backfill="slurm"), repeat=5)
    slow, plain = seconds(lambda: fast(few, machine, "fcfs", "reference", "slurm"))
    if difference := [name for name in ("job", "start", "end") if not _equal(result.schedule, plain.schedule, name)]:
        raise AssertionError(f"the schedules of the engines differ in {', '.join(difference)}")
    return {"ratio": slow / quick, "seconds": seconds(lambda: fast(many, machine, "fcfs", backfill="slurm"))[0]}


def _equal(schedule: Schedule, other: Schedule, name: str) -> bool:
    """Return whether a column is equal in two schedules."""
    return np.array_equal(getattr(schedule, name), getattr(other, name))


@case("lublin-100k", seconds=("<=", 2.0), added_mb=("<=", 200))
def lublin() -> Figures:
    """Benchmark 100,000 Lublin-Feitelson jobs at load 1.5 on a flat machine under FCFS and EASY: tens of thousands wait."""
    load_all()
    workload = generate("lublin", jobs=100_000, nodes=128, load=1.5)
    before = peak_mb()
    spent, _ = seconds(lambda: fast(workload, Machine.flat(128), "fcfs"))
    return {"seconds": spent, "ns_per_event": 1e9 * spent / (2 * len(workload)), "added_mb": peak_mb() - before}


def throughput(load: float, slowed: bool = False) -> Figures:
    """Return the jobs replayed per CPU second, for a million jobs under FM and EASY with 28 TiB per rack.

    The load counts node-seconds with local memory only, as the generator does; with `slowed`, it includes the slowdown by
    remote memory.
    """
    load_all()
    machine = perlmutter(28)
    growth = with_slowdown(perlmutter_jobs(100_000), machine)
    workload = perlmutter_jobs(1_000_000, load=load / growth if slowed else load)
    spent, result = seconds(lambda: fast(workload, machine, "fm"))
    schedule = result.schedule
    waited = float((schedule.start - workload.submit[schedule.job]).sum(dtype=np.float64))
    return {
        "seconds": spent,
        "jobs_per_second": len(workload) / spent,
        "mean_waiting": waited / float(schedule.end.max() - workload.submit[0]),
        "load_with_slowdown": load if slowed else load * growth,
    }


@case("million", jobs_per_second=(">=", 500_000), peak_mb=("<=", 1000))
def million() -> Figures:
    """Benchmark a million jobs at load 0.93; remote memory lengthens them, so the queue grows into the thousands."""
    return throughput(0.93)


@case("million-slowed", jobs_per_second=(">=", 500_000), peak_mb=("<=", 1000))
def million_slowed() -> Figures:
    """Benchmark a million jobs at a load of 0.93 that includes their slowdown by remote memory."""
    return throughput(0.93, slowed=True)


@case("million-settled", jobs_per_second=(">=", 500_000), peak_mb=("<=", 1000))
def million_settled() -> Figures:
    """Benchmark a million jobs at load 0.8, where the queue stays short."""
    return throughput(0.8)


def growth(machine: Machine, order: str) -> Figures:
    """Return the exponent with which the CPU time per event grows with the mean number of waiting jobs, from 10^2 to 10^5.

    It is the slope of a least-squares line through the logarithms.
    """
    load_all()
    figures: Figures = {}
    waiting, cost = [], []
    for jobs in (400, 4_000, 40_000, 400_000):  # about a quarter of them wait when one starts
        workload = overloaded(jobs, max(1, 40_000 // jobs), remote=machine.local_memory > 0)
        table = workload.table
        table.log10_nodes, table.log10_submit, table.log10_requested  # noqa: B018  # computed before the measurement
        spent, result = seconds(lambda w=workload: fast(w, machine, order), repeat=3)
        waiting.append(mean_waiting(result.schedule))
        cost.append(1e6 * spent / (2 * len(workload)))
        figures[f"waiting_{jobs}"], figures[f"us_per_event_{jobs}"] = waiting[-1], cost[-1]
    figures["exponent"] = float(np.polyfit(np.log(waiting), np.log(cost), 1)[0])
    return figures


def mean_waiting(schedule: Schedule) -> float:
    """Return the mean number of waiting jobs over all starts."""
    arrived, started = np.sort(schedule.workload.submit[schedule.job]), np.sort(schedule.start)
    return float((np.searchsorted(arrived, started, side="right") - np.arange(len(started))).mean())


FLAT = Machine.flat(512)
POOLS = Machine.of_racks(4, 128, local=LOCAL_MIB, pool=8 * TIB)


@case("growth-static", exponent=("<=", 0.6))
def growth_static() -> Figures:
    """Benchmark SJF, whose keys never change, on a flat machine."""
    return growth(FLAT, "sjf")


@case("growth-linear", exponent=("<=", 0.6))
def growth_linear() -> Figures:
    """Benchmark FM, whose keys are linear in time, on a flat machine."""
    return growth(FLAT, "fm")


@case("growth-pools-static", exponent=("<=", 0.6))
def growth_pools_static() -> Figures:
    """Benchmark SJF on racks with pools."""
    return growth(POOLS, "sjf")


@case("growth-pools-linear", exponent=("<=", 0.6))
def growth_pools_linear() -> Figures:
    """Benchmark FM on racks with pools."""
    return growth(POOLS, "fm")
