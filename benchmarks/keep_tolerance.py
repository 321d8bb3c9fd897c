"""Effect of moving the memory of running jobs: batch scheduling with and without resizes, over seeds.

Run: python -m benchmarks.keep_tolerance [SEEDS]. Prints means with 95 % intervals of the paired differences.
"""

from __future__ import annotations

import sys

import numpy as np

from poolwise.engines import simulate
from poolwise.metrics.power import load_of
from poolwise.metrics.window import Window
from poolwise.model import Machine, MachineBuilder, Schedule, Workload
from poolwise.performance.cpu_frequency import CpuFrequency
from poolwise.quantities import SECOND
from poolwise.schedulers.batch import BatchScheduler
from poolwise.schedulers.keep_tolerance import KeepTolerance

JOBS, NODES = 80, 6
PROFILES = ("kmeans", "hpcg", "spark_wordcount")


def machine() -> Machine:
    """Return six nodes with 64 GiB each, of the paper's first module type, and a pool."""
    build = MachineBuilder("six modules", ("cores", "memory"))
    for k in range(NODES):
        build.node(f"n{k}", cores=192, memory="64 GiB", attributes={"frequency": 2.0, "static": 1.65, "dynamic": 0.55})
    build.pool("far", memory="512 GiB")
    return Machine.of(build)


def workload(seed: int) -> Workload:
    """Return jobs that together exceed local memory, with random arrivals and tolerances of 5 to 100 %."""
    rng = np.random.default_rng(seed)
    return Workload.of(
        np.cumsum(rng.exponential(60, JOBS)).astype(np.int64) * SECOND,
        rng.integers(200, 1200, JOBS) * SECOND,
        requests={"cores": rng.integers(1, 49, JOBS), "memory": rng.integers(4, 65, JOBS) * 1024},
        attributes={
            "frequency": np.full(JOBS, 2.0),
            "tolerance": rng.uniform(0.05, 1.0, JOBS),
            "profile": rng.choice(PROFILES, JOBS),
        },
    )


def numbers(schedule: Schedule) -> dict[str, float]:
    """Return mean wait (s), mean slowdown, worst slowdown above tolerance, makespan (s) and energy (raw units times s)."""
    jobs = schedule.workload
    slowdown = (schedule.end - schedule.start) / jobs.duration[schedule.job] - 1
    end = int(schedule.end.max())
    load = load_of(schedule, Window(0, end))
    nodes = slice(0, NODES)
    excess = slowdown - jobs.attributes["tolerance"][schedule.job]
    return {
        "mean wait, s": float((schedule.start - jobs.submit[schedule.job]).mean()) / SECOND,
        "mean slowdown": float(slowdown.mean()),
        "worst slowdown above tolerance": float(excess.max()),
        "makespan, s": end / SECOND,
        "energy": float((1.65 * load.awake[nodes] + 0.55 * load.mean[nodes]).sum()) * end / SECOND,
        "resizes": float(len(schedule.resizes)),
        "jobs": float(schedule.n_run),
    }


def main(seeds: int) -> None:
    """Compare both schedulers over seeds."""
    by_measure: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        drawn = workload(seed)
        pair = [
            numbers(simulate(drawn, machine(), scheduler(effort_s=0.005), model=CpuFrequency(), seed=seed).schedule)
            for scheduler in (BatchScheduler, KeepTolerance)
        ]
        for name, value in pair[0].items():
            by_measure.setdefault(name, []).append((value, pair[1][name]))
    for name, values in by_measure.items():
        fixed, resized = np.array(values).T
        gain, half = float((resized - fixed).mean()), 1.96 * float((resized - fixed).std(ddof=1)) / len(values) ** 0.5
        print(f"{name}: {fixed.mean():.4g} fixed, {resized.mean():.4g} resized, difference {gain:.4g} +- {half:.2g}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
