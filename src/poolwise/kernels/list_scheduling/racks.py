"""Placement of a job on racks with memory pools, and its slowdown there.

Source: specs of the memory pools, "Placement" and "Job". Equals `policies.placement.racks` and
`performance.remote_memory`, operation by operation.
"""

from __future__ import annotations

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.common.events import stretch
from poolwise.kernels.common.state import MEAN, PAPER
from poolwise.kernels.jit import entry, inlined, step
from poolwise.kernels.list_scheduling.mixed_racks import choose_mixed, fits_mixed, slowdown_by_node, want_memory
from poolwise.kernels.list_scheduling.state import JobArrays, MixedArrays, RackState, Rules


@step
def total(amounts: IntArray) -> int:
    """Return the sum over the racks; a loop compiles much faster than the array's method."""
    whole = 0
    for r in range(amounts.size):
        whole += amounts[r]
    return whole


@step
def copy(source: IntArray, target: IntArray) -> None:
    """Copy the amounts of all racks; a loop compiles much faster than a slice."""
    for r in range(source.size):
        target[r] = source[r]


@step
def fits(job: int, n: int, remote: int, anywhere: bool, mixed: MixedArrays | None, free: IntArray, pool: IntArray) -> bool:
    """Return whether n nodes with `remote` MiB each fit. Monotone: less free capacity never makes a job fit.

    `job` matters only on `mixed` nodes. If `mixed` is omitted in scope "system", the result is a necessary condition for them.
    """
    if mixed is not None:
        return fits_mixed(n, job, anywhere, mixed, free, pool)
    if remote == 0 or anywhere:
        return total(free) >= n and (remote == 0 or total(pool) >= n * remote)
    nodes = 0
    for r in range(free.size):
        nodes += offer(free[r], pool[r], remote)
        if nodes >= n:
            return True
    return False


@entry
def screen(
    nodes: IntArray,
    remote: IntArray,
    anywhere: bool,
    mixed: MixedArrays | None,
    free: IntArray,
    pool: IntArray,
    able: BoolArray,
) -> None:
    """Write for each job, (n_job,) `nodes` and `remote`, whether it fits."""
    for job in range(nodes.size):
        able[job] = fits(job, nodes[job], remote[job], anywhere, mixed, free, pool)


@inlined
def offer(free: int, pool: int, remote: int) -> int:
    """Return the nodes that a rack has for a job whose nodes each use `remote` MiB of its pool."""
    return free if pool >= free * remote else pool // remote  # usually avoids the division


@inlined
def roomiest(n: int, remote: int, free: IntArray, pool: IntArray) -> int:
    """Return the rack with the most free nodes of those that hold an entire job and its memory; -1 if there is none."""
    best = -1
    for r in range(free.size):
        if free[r] >= n and pool[r] >= n * remote and (best < 0 or free[r] > free[best]):
            best = r
    return best


@inlined
def place(job: int, jobs: JobArrays, anywhere: bool, free: IntArray, pool: IntArray, take: IntArray, borrow: IntArray) -> bool:
    """Find nodes (`take`) and MiB (`borrow`) per rack; return False if the job does not fit."""
    return _place(job, jobs.nodes[job], jobs.remote[job], anywhere, jobs.mixed, free, pool, take, borrow)


@step
def _place(
    job: int,
    n: int,
    remote: int,
    anywhere: bool,
    mixed: MixedArrays | None,
    free: IntArray,
    pool: IntArray,
    take: IntArray,
    borrow: IntArray,
) -> bool:
    """Find nodes and MiB for a job of n nodes."""
    if mixed is not None:
        if not choose_mixed(n, job, anywhere, mixed, free, pool, take):
            return False
        want_memory(job, mixed, take, borrow)
        if anywhere:
            _borrow(pool, borrow)
        return True
    own = 0 if anywhere else remote  # MiB that a node can use only of its own rack's pool
    whole = roomiest(n, own, free, pool)
    if (whole < 0 or own < remote) and not fits(job, n, remote, anywhere, mixed, free, pool):
        return False
    for r in range(free.size):
        take[r], borrow[r] = 0, 0
    if whole >= 0:
        take[whole], borrow[whole] = n, n * remote
    else:
        for r in range(free.size):
            take[r] = offer(free[r], pool[r], own) if own else free[r]
        _fill(n, free, take, borrow)
        for r in range(free.size):
            borrow[r] = take[r] * remote
    if own < remote:
        _borrow(pool, borrow)
    return True


@inlined
def place_job(job: int, state: RackState) -> bool:
    """Find nodes (`racks.take`) and MiB (`racks.borrow`) for a job now; return False if it does not fit."""
    jobs, racks = state.jobs, state.racks
    return place(job, jobs, state.rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow)


@step
def _fill(n: int, free: IntArray, take: IntArray, filled: IntArray) -> None:
    """Turn offers into allocated nodes: racks by (offer, free nodes) descending, then index. `filled` starts as zeros."""
    while n > 0:
        best = -1
        for r in range(free.size):
            if filled[r] == 0 and take[r] > 0:
                larger = best < 0 or take[r] > take[best] or (take[r] == take[best] and free[r] > free[best])
                if larger:
                    best = r
        filled[best] = min(n, take[best])
        n -= filled[best]
    copy(filled, take)


@step
def _borrow(pool: IntArray, borrow: IntArray) -> None:
    """Assign memory to pools: the own rack's first, then those with the most left, then the lowest index."""
    rest = 0
    for r in range(pool.size):
        if borrow[r] > pool[r]:
            rest += borrow[r] - pool[r]
            borrow[r] = pool[r]
    while rest > 0:
        best = 0
        for r in range(1, pool.size):
            if pool[r] - borrow[r] > pool[best] - borrow[best]:
                best = r
        more = min(rest, pool[best] - borrow[best])
        borrow[best] += more
        rest -= more


@step
def near_share(remote: int, take: IntArray, borrow: IntArray, spread: int) -> float:
    """Return the share of the remote memory in the own rack's pool: of the worst rack, or the mean over nodes."""
    own, nodes, worst = 0, 0, 1.0
    for r in range(take.size):
        if take[r] > 0:
            here = min(borrow[r], take[r] * remote)
            own += here
            nodes += take[r]
            worst = min(worst, here / (take[r] * remote))
    return own / (nodes * remote) if spread == MEAN else worst


@step
def slowdown(near: float, far: float, weight: float, share: float, spread: int) -> float:
    """Return the extra time per unit of work if `share` of the remote memory is near."""
    if share == 1.0:
        factor = near
    elif spread == PAPER:
        factor = far
    else:
        factor = share * near + (1 - share) * far
    return factor * weight


@step
def _slowdown(
    job: int,
    near: float,
    far: float,
    weight: float,
    remote: int,
    by_node: bool,
    mixed: MixedArrays | None,
    take: IntArray,
    borrow: IntArray,
    spread: int,
) -> float:
    """Return the slowdown of a job with `remote` MiB of remote memory at the placement found last."""
    if mixed is not None and by_node:
        return slowdown_by_node(job, near, far, mixed, take, borrow, spread)
    return slowdown(near, far, weight, near_share(remote, take, borrow, spread), spread)


@inlined
def varies(job: int, jobs: JobArrays, rules: Rules) -> bool:
    """Return whether the runtime of a job depends on its placement."""
    return bool(rules.varies and (jobs.remote[job] > 0 or rules.by_node))


@step
def runtime(job: int, jobs: JobArrays, take: IntArray, borrow: IntArray, rules: Rules) -> int:
    """Return the true runtime (ns) of a job at the placement found last."""
    if not varies(job, jobs, rules):
        return int(jobs.runtime[job])
    weights = jobs.near[job], jobs.far[job], jobs.weight[job]
    slow = _slowdown(job, *weights, jobs.remote[job], rules.by_node, jobs.mixed, take, borrow, rules.spread)
    return stretch(jobs.work[job], slow)


@step
def expected(job: int, jobs: JobArrays, take: IntArray, borrow: IntArray, rules: Rules) -> int:
    """Return the runtime (ns) that the scheduler expects of a job at the placement found last."""
    if not varies(job, jobs, rules):
        return int(jobs.length[job])
    weights = jobs.believed_near[job], jobs.believed_far[job], jobs.believed_weight[job]
    slow = _slowdown(job, *weights, jobs.remote[job], rules.by_node, jobs.mixed, take, borrow, rules.believed_spread)
    return stretch(jobs.expected_work[job], slow)
