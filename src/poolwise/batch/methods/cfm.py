"""CFM: the first server that holds all memory, else the first that holds the minimum shares; shares are then shrunk to fit.

Source: Amaro et al., Can Far Memory Improve Job Throughput?, EuroSys 2020, and its authors' runs: servers are tried in random
order, and shares follow one of three rules. Accepted slowdowns are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poolwise.arrays import FloatArray
from poolwise.batch.methods.method import Limit, Method, unplaced
from poolwise.batch.problem.assignment import Assignment, Solution
from poolwise.batch.problem.definition import Problem
from poolwise.performance.profiles import Profile
from poolwise.random import uniform
from poolwise.registry import register

Shares = Literal["uniform", "proportional", "optimal"]
PRECISION = 1e-6
"""Fraction of an item's memory below which moving memory between items is not worthwhile."""


@register("methods", "cfm")
@dataclass(frozen=True)
class Cfm(Method):
    """Cluster far memory (Amaro et al.): random server order, with local memory shares shrunk by one of three rules.

    Parameters
    ----------
    shares
        Rule for shrinking the shares on a server: equally ("uniform"), in proportion to what each workload can give up
        ("proportional"), or so that the saved local memory-time product per extra time is largest ("optimal").
    seed
        Random seed of the server order.
    remote_core
        Reserve one more core on each server that uses remote memory, for its data path.
    """

    shares: Shares = "optimal"
    seed: int = 0
    remote_core: bool = False

    def solve(self, problem: Problem, limit: Limit) -> Solution:
        """Place all workloads that fit; a workload that fits nowhere is dropped."""
        batch, modules = problem.batch, problem.modules
        least = np.array([max(problem.least_local, 1 - p.remote[-1]) for p in batch.profile])
        cores, whole, floor = modules.free_cores.copy(), np.zeros(len(modules)), np.zeros(len(modules))
        far = np.zeros(len(modules))  # MiB of remote memory used by the items of a module
        module, dropped = np.full(len(batch), -1, dtype=np.int64), []
        for w in range(len(batch)):
            order = np.argsort(uniform(self.seed, "cfm", w, np.arange(len(modules))), kind="stable")
            size = float(batch.memory[w])
            fits = cores[order] >= batch.cores[w]
            all_local = fits & (whole[order] + size <= modules.memory[order])
            if all_local.any():
                c = int(order[int(np.argmax(all_local))])
            else:
                more = np.maximum(whole + size - modules.memory, 0.0)
                some = fits & (floor[order] + least[w] * size <= modules.memory[order])
                some &= far.sum() - far[order] + more[order] <= problem.remote
                if self.remote_core:
                    some &= (far[order] > 0) | (cores[order] > batch.cores[w])
                if not some.any():
                    dropped.append(w)
                    continue
                c = int(order[int(np.argmax(some))])
                cores[c] -= 1 if self.remote_core and far[c] == 0 else 0
                far[c] = more[c]
            module[w] = c
            cores[c] -= batch.cores[w]
            whole[c] += size
            floor[c] += least[w] * size
        local = np.ones(len(batch))
        for c in np.unique(module[module >= 0]).tolist():
            rows = np.flatnonzero(module == c)
            profiles = [batch.profile[w] for w in rows.tolist()]
            local[rows] = shrink(self.shares, batch.memory[rows], least[rows], float(modules.memory[c]), profiles)
        return Solution(problem, Assignment(module, local), dropped=tuple(dropped), unmet=unplaced(problem, dropped))


def shrink(rule: Shares, size: FloatArray, least: FloatArray, room: float, profiles: list[Profile]) -> FloatArray:
    """Return the local shares of workloads on a server with `room` MiB, (k,), given their `size` (MiB) and `least` shares."""
    if float(size.sum()) <= room:
        return np.ones(len(size))
    if rule == "uniform":
        return _at_least(np.full(len(size), room / float(size.sum())), size, least, room)
    give = size * (1 - least)
    proportional = 1 - (float(size.sum()) - room) * give / float(give.sum()) / size
    if rule == "proportional":
        return proportional
    return _optimal(proportional, size, least, profiles)


def _at_least(share: FloatArray, size: FloatArray, least: FloatArray, room: float) -> FloatArray:
    """Raise shares to the minimum, and lower the others equally until all workloads fit."""
    fixed = np.zeros(len(share), dtype=np.bool_)
    while bool((share[~fixed] < least[~fixed] - 1e-12).any()):
        fixed |= share < least
        left = room - float((least * size)[fixed].sum())
        share = np.where(fixed, least, left / max(float(size[~fixed].sum()), 1e-300))
    return share


def _optimal(share: FloatArray, size: FloatArray, least: FloatArray, profiles: list[Profile]) -> FloatArray:
    """Descend from the proportional shares: move memory between two workloads at a time while the ratio decreases.

    Minimizes sum m (1 - p) (x T(x) - T(1)) / sum m (1 - p) (1 - x) T(x) at a constant sum of x m. All workloads start
    together, so the progress p is 0.
    """

    def ratio(x: FloatArray) -> float:
        time = np.array([1 + float(p.at(1 - xi)) for p, xi in zip(profiles, x.tolist(), strict=True)])
        saved = float((size * (1 - x) * time).sum())
        return float((size * (x * time - 1)).sum()) / saved if saved > 0 else float("inf")

    best, step = ratio(share), 0.25
    while step > PRECISION:
        moved = False
        for i in range(len(share)):
            for j in range(len(share)):
                amount = min(step * size[i], (share[i] - least[i]) * size[i], (1 - share[j]) * size[j])
                if i == j or amount <= 0:
                    continue
                other = share.copy()
                other[i] -= amount / size[i]
                other[j] += amount / size[j]
                value = ratio(other)
                if value < best - 1e-12:
                    share, best, moved = other, value, True
        step = step if moved else step / 2
    return share
