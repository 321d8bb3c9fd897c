"""Compiled dispatch of a million tasks, and the growth of its cost with the number of units."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Figures, case, seconds
from poolwise.engines import simulate
from poolwise.engines.dispatch.columns import arrays
from poolwise.engines.dispatch.replay import load
from poolwise.kernels.dispatch.replay import replay
from poolwise.registry import make
from poolwise.schedulers.dispatch import Dispatch
from poolwise.traces import vinesim

CPU, GPU, FP_GOOD = 0, 2, 2
OPERATIONS = 30_000_000  # 25 us on a GPU, 500 us on a CPU
ROUNDS = 7
TARGETS = {
    "tasks_per_second": (">=", 500_000.0),
    # No growth except noise: the ratios of least times repeat within 0.03 on a busy computer.
    "growth_1k_to_10k": ("<=", 1.05),
    "growth_100_to_10k": ("<=", 1.05),
    # The kernel alone, within 0.05: the state of 10,000 units exceeds the first-level cache.
    "loop_growth_100_to_10k": ("<=", 1.1),
}


def cluster(units: int, tasks: int) -> vinesim.VineSimCase:
    """Return half CPUs, half GPUs, 40 per rack, with jobs of five tasks at nearly the rate that the GPUs can serve."""
    rates = np.zeros((6, 7))
    rates[CPU, :3], rates[GPU, :3] = (100_000, 60_000, 60_000), (1_200_000, 12_000, 1_200_000)
    deployment = vinesim.UnitList.of([(GPU if k % 2 else CPU, k // 40, k % 40) for k in range(units)])
    gap_us = 5 * 25 / (units / 2) * 1.02
    return vinesim.VineSimCase.of(deployment, vinesim.TaskList.of_jobs([5] * (tasks // 5), FP_GOOD, OPERATIONS), rates, gap_us)


def figures(policy: str) -> Figures:
    """Return the rate of a million tasks on 10,000 units, and the cost per task relative to 1,000 units and to 100.

    The cost is that of a whole run, or that of the kernel (the event loop) alone.
    """
    load()
    scheduler = Dispatch(make("placements", policy))
    large = cluster(10_000, 1_000_000)
    per_task = _whole(large, scheduler, repeat=3) / 1_000_000
    some = {units: cluster(units, 200_000) for units in (100, 1_000, 10_000)}
    whole, loop = (dict.fromkeys(some, float("inf")) for _ in range(2))
    for _ in range(ROUNDS):  # in turn, so that a temporary slowdown of the computer affects all of them
        for units, this in some.items():
            whole[units] = min(whole[units], _whole(this, scheduler))
            arrays_of_run = arrays(this.workload, this.machine, scheduler, this.model, 0)
            loop[units] = min(loop[units], seconds(lambda arrays_of_run=arrays_of_run: replay(arrays_of_run))[0])
    return {
        "tasks_per_second": 1 / per_task,
        "ns_per_task": 1e9 * per_task,
        "loop_ns_per_task": 1e9 * loop[10_000] / 200_000,
        "growth_1k_to_10k": whole[10_000] / whole[1_000],
        "growth_100_to_10k": whole[10_000] / whole[100],
        "loop_growth_100_to_10k": loop[10_000] / loop[100],
    }


def _whole(this: vinesim.VineSimCase, scheduler: Dispatch, repeat: int = 1) -> float:
    """Return the least CPU seconds of repeated runs."""
    return seconds(
        lambda: simulate(this.workload, this.machine, scheduler, model=this.model, engine="compiled"), repeat=repeat
    )[0]


@case("dispatch-high", **TARGETS)
def high() -> Figures:
    """Benchmark the policy that selects the idle unit with the highest affinity."""
    return figures("high")


@case("dispatch-flat", **TARGETS)
def flat() -> Figures:
    """Benchmark the policy that selects a random idle unit."""
    return figures("flat")
