"""HEEP: first fit of large workloads on efficient modules.

Source: Ajibola, El-Gorashi, Elmirghani 2021, as compared by Sefati et al.; the sort keys are assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poolwise.batch.methods.method import Limit, Method, unplaced
from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.registry import register


@register("methods", "heep")
@dataclass(frozen=True)
class Heep(Method):
    """First fit of workloads in descending order of cores, then memory, on modules in order of energy per core and frequency.

    Local memory shares follow equation (6).

    Parameters
    ----------
    ascending : place the workloads in ascending instead of descending order of cores, then memory
    """

    ascending: bool = False

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place all workloads that fit; a workload that fits nowhere is dropped."""
        batch, modules, of = problem.batch, problem.modules, problem.groups.of_module
        cores, memory, remote = modules.free_cores.copy(), modules.memory.copy(), problem.remote
        waste = (modules.static + modules.dynamic) / (modules.cores * modules.frequency)
        ranking = np.argsort(waste, kind="stable")
        module, local, dropped = np.full(len(batch), -1, dtype=np.int64), np.ones(len(batch)), []
        sign = 1 if self.ascending else -1
        for w in np.lexsort((sign * batch.memory, sign * batch.cores)).tolist():
            share = np.where(problem.allowed[w], problem.least[w], np.inf)[of[ranking]]
            size = float(batch.memory[w])
            fits = (cores[ranking] >= batch.cores[w]) & (share * size <= memory[ranking]) & ((1 - share) * size <= remote)
            if not fits.any():
                dropped.append(w)
                continue
            at = int(np.argmax(fits))
            c, x = int(ranking[at]), float(share[at])
            module[w], local[w] = c, x
            cores[c] -= batch.cores[w]
            memory[c] -= x * size
            remote -= (1 - x) * size
        return Solution(problem, Assignment(module, local), dropped=tuple(dropped), unmet=unplaced(problem, dropped))
