"""Means of the generators' distributions, by quadrature: how their fixed constants were found.

Run `python benchmarks/calibrate_generators.py`. Points of the quantile functions were moved by hand until the mean of
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
    """Mean of nodes x runtime; the two are independent."""
    nodes = whole(jobs.nodes.at(POINTS))
    return float((nodes * DENSITY).sum() * (jobs.runtime_s.at(POINTS) * DENSITY).sum())


def weighted_memory_gb(jobs: JobDistribution) -> float:
    """Mean memory per node, weighted with nodes x runtime.

    Given the normal scores of nodes and runtime, the memory's is normal around rho * (their sum) / sqrt 2; the sum is
    integrated on a grid of the two, the memory's own part inside.
    """
    score = POINTS[::50]
    cell = np.rint((POINTS - score[0]) / (score[1] - score[0])).astype(int)
    own = np.sqrt(1.0 - jobs.correlation**2) * POINTS[:, None]
    centres = np.linspace(-10.0, 10.0, 401)
    expected = (jobs.memory_gb.at(jobs.correlation * centres + own) * DENSITY[:, None]).sum(axis=0)
    memory = np.interp((score[:, None] + score) / np.sqrt(2.0), centres, expected)
    # Summed over fine points within each cell: the nodes of a job step, and the cells alone would miss by how much.
    nodes = np.bincount(cell, whole(jobs.nodes.at(POINTS)) * DENSITY)
    runtime = np.bincount(cell, jobs.runtime_s.at(POINTS) * DENSITY)
    work = np.outer(nodes, runtime)
    return float((memory * work).sum() / work.sum())


def correlation_for(jobs: JobDistribution, target_gb: float) -> float:
    """Correlation at which the weighted memory meets its target; 0 where it is beyond it without any."""
    low, high = 0.0, 0.95
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if weighted_memory_gb(replace(jobs, correlation=middle)) < target_gb else (low, middle)
    return low


def main() -> None:
    """Print what each distribution has and what it should have."""
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
