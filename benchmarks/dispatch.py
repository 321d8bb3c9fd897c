"""Compiled dispatch of a million tasks, and how its cost grows with the number of units."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Figures, case, seconds
from poolwise.engine import dispatch, simulate
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim

CPU, GPU, FP_GOOD = 0, 2, 2
OPERATIONS = 30_000_000  # 25 us on a GPU, 500 us on a CPU


def cluster(units: int, tasks: int) -> vinesim.Case:
    """Half CPUs, half GPUs, 40 in a rack; jobs of five tasks at nearly the rate that the GPUs can take."""
    rates = np.zeros((6, 7))
    rates[CPU, :3], rates[GPU, :3] = (100_000, 60_000, 60_000), (1_200_000, 12_000, 1_200_000)
    deployment = vinesim.Deployment.of([(GPU if k % 2 else CPU, k // 40, k % 40) for k in range(units)])
    gap_us = 5 * 25 / (units / 2) * 1.02
    return vinesim.Case.of(deployment, vinesim.Tasks.of_jobs([5] * (tasks // 5), FP_GOOD, OPERATIONS), rates, gap_us)


def per_task(units: int, tasks: int, policy: str) -> float:
    """Processor seconds for a task, least of three runs."""
    this = cluster(units, tasks)
    scheduler = Dispatch(make("placements", policy))
    spent, _ = seconds(lambda: simulate(this.machine, this.workload, scheduler, truth=this.model, engine="compiled"), repeat=3)
    return spent / tasks


def figures(policy: str) -> Figures:
    """A million tasks on 10,000 units; and the cost of a task there over that on 1,000 units and on 100."""
    dispatch.load()
    large = per_task(10_000, 1_000_000, policy)
    some = {units: per_task(units, 200_000, policy) for units in (100, 1_000, 10_000)}
    return {
        "tasks_per_second": 1 / large,
        "ns_per_task": 1e9 * large,
        "growth_1k_to_10k": some[10_000] / some[1_000],
        "growth_100_to_10k": some[10_000] / some[100],
    }


@case("dispatch-high", tasks_per_second=(">=", 500_000), growth_1k_to_10k=("<=", 1.4), growth_100_to_10k=("<=", 1.6))
def high() -> Figures:
    """The idle unit with the highest affinity."""
    return figures("high")


@case("dispatch-flat", tasks_per_second=(">=", 500_000), growth_1k_to_10k=("<=", 1.4), growth_100_to_10k=("<=", 1.6))
def flat() -> Figures:
    """A random idle unit."""
    return figures("flat")
