"""Calibration of the generators' constants: means of their distributions, by quadrature.

Run `python benchmarks/calibrate_generators.py`. The points of the quantile functions were adjusted by hand until the mean of
nodes x runtime met its target; the correlation of memory with size then follows by bisection.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from poolwise.traces.generators import juwels_like, perlmutter_like
from poolwise.traces.generators.memory_jobs import JobDistribution, whole
from poolwise.traces.generators.variates import Quantiles

POINTS = np.linspace(-7.0, 7.0, 14_001)
DENSITY = np.exp(-POINTS * POINTS / 2.0)
DENSITY /= DENSITY.sum()


def node_seconds(jobs: JobDistribution) -> float:
    """Return the mean of nodes x runtime; the two are independent."""
    nodes = whole(jobs.nodes.at(POINTS))
    return float((nodes * DENSITY).sum() * (jobs.runtime_s.at(POINTS) * DENSITY).sum())


def weighted_memory_gb(jobs: JobDistribution) -> float:
    """Return the mean memory per node, weighted with nodes x runtime.

    Given the normal scores of nodes and runtime, the score of memory is normal around rho * (their sum) / sqrt 2. The outer
    integral is over a grid of the two scores, the inner one over the independent part of memory.
    """
    score = POINTS[::50]
    cell = np.rint((POINTS - score[0]) / (score[1] - score[0])).astype(int)
    own = np.sqrt(1.0 - jobs.correlation**2) * POINTS[:, None]
    centers = np.linspace(-10.0, 10.0, 401)
    expected = (jobs.memory_gb.at(jobs.correlation * centers + own) * DENSITY[:, None]).sum(axis=0)
    memory = np.interp((score[:, None] + score) / np.sqrt(2.0), centers, expected)
    # Summed over fine points within each cell: the number of nodes is a step function, which the cells alone do not resolve.
    nodes = np.bincount(cell, whole(jobs.nodes.at(POINTS)) * DENSITY)
    runtime = np.bincount(cell, jobs.runtime_s.at(POINTS) * DENSITY)
    work = np.outer(nodes, runtime)
    return float((memory * work).sum() / work.sum())


def correlation_for(jobs: JobDistribution, target_gb: float) -> float:
    """Return the correlation at which the weighted memory meets its target; 0 if the target is exceeded without correlation."""
    low, high = 0.0, 0.95
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if weighted_memory_gb(replace(jobs, correlation=middle)) < target_gb else (low, middle)
    return low


def main() -> None:
    """Print the means of each distribution and their targets."""
    here, there = perlmutter_like, juwels_like
    cases: list[tuple[str, Quantiles, Quantiles, Quantiles, float, float, float]] = [
        ("perlmutter_like", here.NODES, here.RUNTIME_S, here.MEMORY_GB, here.CORRELATION, here.NODE_SECONDS, 140.0),
        ("  hungry", here.NODES, here.RUNTIME_S, here.HUNGRY_MEMORY_GB, here.HUNGRY_CORRELATION, here.NODE_SECONDS, 140.0),
        ("juwels_like", there.NODES, there.RUNTIME_S, there.MEMORY_GB, there.CORRELATION, there.NODE_SECONDS, 125.0),
    ]
    for name, nodes, runtime, memory, correlation, work, target in cases:
        jobs = JobDistribution(nodes, runtime, memory, correlation, work)
        print(
            f"{name:16} node-seconds {node_seconds(jobs):8.0f} (target {work:.0f})"
            f"  weighted memory {weighted_memory_gb(jobs):6.1f} GB (target {target:.0f})"
            f"  correlation {correlation:.3f} (solves to {correlation_for(jobs, target):.3f})"
        )


if __name__ == "__main__":
    main()
