"""Gap between `place` and the configuration bound at each time limit, in percent over seeds, on one core.

Run with `python -m benchmarks.batch_quality [SEEDS] [THETA ...]`.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from poolwise import catalog
from poolwise.batch.methods.method import Limit
from poolwise.batch.methods.place import Place
from poolwise.batch.problem.check import check_assignment
from poolwise.files.batch import read_batch

LIMITS = (0.05, 1.0, 60.0)


def main(seeds: int, thetas: list[str]) -> None:
    """Print one row per seed, then one per limit, for each theta."""
    file = catalog.find("batches", "batch-150x1200")
    method = Place()
    method.prepare()
    for theta in thetas:
        gaps: dict[float, list[float]] = {limit: [] for limit in LIMITS}
        times: dict[float, list[float]] = {limit: [] for limit in LIMITS}
        for seed in range(seeds):
            solutions = {}
            for limit in LIMITS:
                problem = read_batch(file, seed=seed, theta=theta)
                begun = time.process_time()
                solutions[limit] = method.solve(problem, Limit(limit, time.process_time))
                times[limit].append(time.process_time() - begun)
                assert check_assignment(problem, solutions[limit].assignment).valid
            bound = solutions[LIMITS[-1]].bound
            for limit in LIMITS:
                gaps[limit].append(100 * (solutions[limit].objective / bound - 1))
            print(theta, seed, *(f"{gaps[limit][-1]:.3f} %" for limit in LIMITS), flush=True)
        for limit in LIMITS:
            mean, worst = np.mean(gaps[limit]), np.max(gaps[limit])
            took = (np.mean(times[limit]), np.max(times[limit]))
            print(
                f"{theta} {limit} s: gap mean {mean:.2f} % worst {worst:.2f} %, CPU mean {took[0]:.3f} s worst {took[1]:.3f} s"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:] or ["printed", "relative"])
