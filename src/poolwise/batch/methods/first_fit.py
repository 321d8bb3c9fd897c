"""First fit: the first module that holds all memory locally, else the first with room. Ignores accepted slowdowns.

Source: Sefati et al., IRoP, section V-A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.batch.methods.method import Limit, Method, unplaced
from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.registry import register


@register("methods", "first-fit")
@dataclass(frozen=True)
class FirstFit(Method):
    """First fit in input order: the first module with all memory local, else the first with cores and the minimum share."""

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place all workloads that fit; a workload that fits nowhere is dropped."""
        batch, modules = problem.batch, problem.modules
        cores, memory, remote = modules.free_cores.copy(), modules.memory.copy(), problem.remote
        module, local, dropped = np.full(len(batch), -1, dtype=np.int64), np.ones(len(batch)), []
        for w in range(len(batch)):
            size = float(batch.memory[w])
            free = cores >= batch.cores[w]
            whole = np.flatnonzero(free & (memory >= size))
            if len(whole):
                c, x = int(whole[0]), 1.0
            else:
                least = max(problem.least_local, 1 - batch.profile[w].remote[-1])
                share = np.minimum(memory / size, 1.0)
                some = np.flatnonzero(free & (share >= least) & ((1 - share) * size <= remote))
                if not len(some):
                    dropped.append(w)
                    continue
                c = int(some[0])
                x = float(share[c])
            module[w], local[w] = c, x
            cores[c] -= batch.cores[w]
            memory[c] -= x * size
            remote -= (1 - x) * size
        return Solution(problem, Assignment(module, local), dropped=tuple(dropped), unmet=unplaced(problem, dropped))
