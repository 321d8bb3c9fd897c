"""Placement of a job on racks whose nodes differ or are not all allowed, and its slowdown there.

The racks of a replay are then groups: the nodes of one type in one rack, whose pool is at its first group. Equals
`policies.placement.memory.mixed_racks` and `performance.remote_memory`, operation by operation.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.state import MEAN, PAPER
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.state import MixedArrays

# Columns of MixedArrays.offers
NODES, REMOTE, OTHERS, LOCAL, FREE = range(5)


@inlined
def remote_on(g: int, job: int, mixed: MixedArrays) -> int:
    """Return the MiB of remote memory that a job needs on a node of a group."""
    return int(max(mixed.memory[job] - mixed.local[g], 0))


@step
def _offer(n: int, job: int, r: int, anywhere: bool, mixed: MixedArrays, free: IntArray, pool: IntArray, take: IntArray) -> int:
    """Offer up to n nodes of rack r: write the nodes of each of its groups, and the sums; return the number of nodes."""
    row, memory, level, eligible = mixed.offers[r], mixed.memory[job], mixed.level[job], mixed.eligible[job]
    nodes, remote, others, local, whole = 0, 0, 0, 0, 0
    for i in range(mixed.first[r], mixed.first[r + 1]):
        g = mixed.by_rack[level, i]
        usable = free[g] if mixed.allowed[eligible, g] else 0
        each, k = max(memory - mixed.local[g], 0), min(n - nodes, usable)
        if each > 0 and not anywhere:
            k = min(k, (pool[mixed.home[g]] - remote) // each)
        take[g] = k
        nodes += k
        remote += k * each
        others += k * mixed.others[g]
        local += k * mixed.local[g]
        whole += usable
    row[NODES], row[REMOTE], row[OTHERS], row[LOCAL], row[FREE] = nodes, remote, others, local, -whole
    return nodes


@inlined
def _is_better(r: int, best: int, offers: IntArray) -> bool:
    """Return whether rack r offers more nodes than an earlier rack or, if equal, less in the next column that differs."""
    if offers[r, NODES] != offers[best, NODES]:
        return bool(offers[r, NODES] > offers[best, NODES])
    for column in range(REMOTE, FREE + 1):
        if offers[r, column] != offers[best, column]:
            return bool(offers[r, column] < offers[best, column])
    return False


@inlined
def _best(offers: IntArray) -> int:
    """Return the rack with the best offer, the first on ties."""
    best = 0
    for r in range(1, offers.shape[0]):
        if _is_better(r, best, offers):
            best = r
    return best


@step
def _take_cheapest(n: int, job: int, mixed: MixedArrays, free: IntArray, take: IntArray) -> int:
    """Take n nodes, those that need the least remote memory first; return the total remote memory, -1 for too few nodes."""
    needed, level, eligible = 0, mixed.level[job], mixed.eligible[job]
    for i in range(free.size):
        g = mixed.by_preference[level, i]
        take[g] = min(n, free[g]) if mixed.allowed[eligible, g] else 0
        n -= take[g]
        needed += take[g] * remote_on(g, job, mixed)
    return needed if n == 0 else -1


@inlined
def _has_nodes(n: int, job: int, mixed: MixedArrays, free: IntArray) -> bool:
    """Return whether n nodes that a job may use are free, a necessary condition that usually decides."""
    eligible = mixed.eligible[job]
    for g in range(free.size):
        n -= free[g] if mixed.allowed[eligible, g] else 0
    return n <= 0


@step
def fits_mixed(n: int, job: int, anywhere: bool, mixed: MixedArrays, free: IntArray, pool: IntArray) -> bool:
    """Return whether a job of n nodes fits. Monotone: less free capacity never makes a job fit."""
    if anywhere:
        needed, memory = _take_cheapest(n, job, mixed, free, mixed.scratch), 0
        for g in range(pool.size):
            memory += pool[g]
        return bool(0 <= needed <= memory)
    nodes = 0
    if not _has_nodes(n, job, mixed, free):
        return False
    for r in range(mixed.offers.shape[0]):
        nodes += _offer(n - nodes, job, r, anywhere, mixed, free, pool, mixed.scratch)
        if nodes == n:
            return True
    return False


@step
def choose_mixed(n: int, job: int, anywhere: bool, mixed: MixedArrays, free: IntArray, pool: IntArray, take: IntArray) -> bool:
    """Choose n nodes, `take`, on one rack if possible, else on as few as possible; return False if the job does not fit."""
    offers, nodes, memory = mixed.offers, 0, 0
    if not _has_nodes(n, job, mixed, free):
        return False
    for r in range(offers.shape[0]):
        nodes += _offer(n, job, r, anywhere, mixed, free, pool, take)
    if nodes < n:
        return False
    missing, needed = n, 0
    while missing > 0:
        best = _best(offers)
        if offers[best, NODES] > missing:
            _offer(missing, job, best, anywhere, mixed, free, pool, take)
        missing -= offers[best, NODES]
        needed += offers[best, REMOTE]
        offers[best, NODES] = -1  # chosen
    for g in range(take.size):
        memory += pool[g]
        if offers[mixed.rack[g], NODES] >= 0:
            take[g] = 0
    return not anywhere or needed <= memory or _take_cheapest(n, job, mixed, free, take) <= memory


@step
def want_memory(job: int, mixed: MixedArrays, take: IntArray, wanted: IntArray) -> None:
    """Write the MiB of remote memory that the nodes of each rack need, at its first group."""
    for g in range(take.size):
        wanted[g] = 0
    for g in range(take.size):
        wanted[mixed.home[g]] += take[g] * remote_on(g, job, mixed)


@step
def slowdown_by_node(
    job: int, near: float, far: float, mixed: MixedArrays, take: IntArray, borrow: IntArray, spread: int
) -> float:
    """Return the slowdown of a job whose nodes have different shares of remote memory: of the slowest node, or the mean."""
    wanted = mixed.scratch
    want_memory(job, mixed, take, wanted)
    all_near, worst, total, nodes = True, 0.0, 0.0, 0
    for g in range(take.size):
        all_near &= borrow[g] >= wanted[g]
    for g in range(take.size):
        if take[g] > 0:
            remote, at, slow = remote_on(g, job, mixed), mixed.home[g], 0.0
            if remote > 0:
                inside = min(borrow[at], wanted[at]) / wanted[at]
                if spread == PAPER:
                    factor = near if all_near else far
                else:
                    factor = near if inside == 1.0 else inside * near + (1 - inside) * far
                slow = factor * (remote / mixed.memory[job])
            worst = slow if nodes == 0 else max(worst, slow)
            total += take[g] * slow
            nodes += take[g]
    return total / nodes if spread == MEAN else worst
