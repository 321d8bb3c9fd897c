"""One pass of list scheduling without backfilling or with EASY, by linear scans of the queue.

The head is found by a scan instead of a sort, the jobs that might be backfilled are filtered before they are ordered.
Source: specs of the memory pools, "Backfilling"; `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import FloatArray, IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.order import key
from poolwise.kernels.list_scheduling.racks import expected, fits, place, total
from poolwise.kernels.list_scheduling.runs import reserve, start
from poolwise.kernels.list_scheduling.state import (
    EASY,
    HEAD,
    NEVER,
    NONE,
    PASSES,
    SETTLED,
    SHADOW,
    TIME,
    WAITING,
    Jobs,
    Order,
    Queue,
    Racks,
    Rules,
    Runs,
)
from poolwise.kernels.list_scheduling.waiting import leave


@step
def any_fits(jobs: Jobs, rules: Rules, racks: Racks, queue: Queue, now: IntArray) -> bool:
    """Whether some waiting job finds room now; if none does, no order can start anything."""
    free = total(racks.free)
    if free == 0:
        return False
    most, memory = _pool_bounds(rules, racks)
    for k in range(now[WAITING]):
        job = queue.job[k]
        n, remote = jobs.nodes[job], jobs.remote[job]
        likely = n <= free and remote <= most and n * remote <= memory
        if likely and fits(n, remote, rules.anywhere, racks.free, racks.pool):
            return True
    return False


@step
def _pool_bounds(rules: Rules, racks: Racks) -> tuple[int, int]:
    """MiB above which one node finds no remote memory, and above which no job does: most misfits need no closer look."""
    most, memory = 0, 0
    for r in range(racks.free.size):
        memory += racks.pool[r]
        if racks.free[r] > 0:
            most = max(most, racks.pool[r])
    return (memory if rules.anywhere else most), memory


@step
def scan(jobs: Jobs, order: Order, rules: Rules, racks: Racks, queue: Queue, runs: Runs, now: IntArray) -> None:
    """Start jobs in order until one does not fit, the head; backfill behind it."""
    for k in range(now[WAITING]):
        order.key[queue.job[k]] = key(queue.job[k], now[TIME], order)
    head = -1
    while now[WAITING] > 0:
        head = _first(queue, order.key, now)
        if not place(jobs.nodes[head], jobs.remote[head], rules.anywhere, racks.free, racks.pool, racks.take, racks.borrow):
            break
        start(head, jobs, rules, racks, runs, now)
        leave(head, queue, now)
        now[HEAD] = -1
    if rules.backfill != NONE and now[WAITING] > 1 and total(racks.free) > 0:
        _backfill(head, order.key, jobs, rules, racks, queue, runs, now)


@step
def _first(queue: Queue, key: FloatArray, now: IntArray) -> int:
    """Waiting job with the smallest (key, row)."""
    best = queue.job[0]
    for k in range(1, now[WAITING]):
        if heap.before(queue.job[k], best, key):
            best = queue.job[k]
    return int(best)


@inlined
def _backfill(
    head: int, key: FloatArray, jobs: Jobs, rules: Rules, racks: Racks, queue: Queue, runs: Runs, now: IntArray
) -> None:
    """Start what does not delay the head, each job asked once, at its turn."""
    if is_settled(head, jobs, rules, racks, queue, runs, now):
        return
    free = total(racks.free)
    most, memory = _pool_bounds(rules, racks)
    count = 0
    for k in range(now[WAITING]):
        job = queue.job[k]
        n, remote = jobs.nodes[job], jobs.remote[job]
        likely = n <= free and remote <= most and n * remote <= memory and job != head
        if likely and fits(n, remote, rules.anywhere, racks.free, racks.pool):
            queue.chosen[count] = job
            count += 1
    if count == 0:
        return
    reserve(head, jobs, rules, racks, runs, now)
    now[SETTLED] = int(now[HEAD] == head)  # a start unsettles it
    count = _harmless(head, count, jobs, rules, racks, queue, now)
    heap.arrange(queue.chosen, count, key)
    while count > 0 and free > 0:
        job = heap.pop(queue.chosen, count, key)
        count -= 1
        if jobs.nodes[job] <= free and try_start(job, head, jobs, rules, racks, runs, now):
            leave(job, queue, now)
            free -= jobs.nodes[job]


@inlined
def is_settled(head: int, jobs: Jobs, rules: Rules, racks: Racks, queue: Queue, runs: Runs, now: IntArray) -> bool:
    """Whether nothing can be backfilled since nothing could at the end of the last pass.

    The same head waits, the machine is the same now and at the shadow time, and time alone lets nobody in: less is left
    until the shadow time. So only who joined the queue at this instant has to be asked.
    """
    if now[SETTLED] == 0 or now[HEAD] != head:
        return False
    reserve(head, jobs, rules, racks, runs, now)
    if now[HEAD] != head:  # a run has become overdue
        return False
    k = now[WAITING] - 1
    while k >= 0 and queue.since[queue.job[k]] == now[PASSES] - 1:
        job = queue.job[k]
        if job != head and may_start(job, head, False, jobs, rules, racks, now):
            return False
        k -= 1
    return True


@step
def _harmless(head: int, count: int, jobs: Jobs, rules: Rules, racks: Racks, queue: Queue, now: IntArray) -> int:
    """Keep of the first `count` chosen jobs those that might not delay the head (see `spare`); returns how many."""
    window = now[SHADOW] - now[TIME]
    nodes, memory, most = spare(head, jobs, rules, racks)
    kept = 0
    for k in range(count):
        job = queue.chosen[k]
        n, remote = jobs.nodes[job], jobs.remote[job]
        if jobs.length[job] <= window or (n <= nodes and n * remote <= memory and remote <= most):
            queue.chosen[kept] = job
            kept += 1
    return kept


@inlined
def spare(head: int, jobs: Jobs, rules: Rules, racks: Racks) -> tuple[int, int, int]:
    """What the head leaves over at its shadow time: nodes and MiB of all racks together, most MiB for one more node.

    A job that runs beyond the shadow time and asks for more surely delays the head, wherever it is placed: all racks
    together would have less than the head takes, or already the first node of the job, in whatever rack, would leave the
    head too few. All three only shrink within a pass.
    """
    if rules.backfill != EASY:
        return -1, -1, -1
    n, remote = jobs.nodes[head], jobs.remote[head]
    free, pool = racks.then_free, racks.then_pool
    nodes, memory = total(free) - n, total(pool) - n * remote
    if remote == 0 or rules.anywhere:
        return nodes, memory, NEVER
    surplus = -n  # nodes the head might have beyond those it needs
    for r in range(free.size):
        surplus += min(free[r], pool[r] // remote)
    most = -1
    for r in range(free.size):
        racks.kept[r] = max(min(free[r], pool[r] // remote) - surplus, 0)
        if free[r] > racks.kept[r]:
            most = max(most, pool[r] - racks.kept[r] * remote)
    return nodes, memory, most


@inlined
def try_start(job: int, head: int, jobs: Jobs, rules: Rules, racks: Racks, runs: Runs, now: IntArray) -> bool:
    """Start a job if it may start now."""
    if not may_start(job, head, True, jobs, rules, racks, now):
        return False
    start(job, jobs, rules, racks, runs, now)
    return True


@inlined
def may_start(job: int, head: int, keep: bool, jobs: Jobs, rules: Rules, racks: Racks, now: IntArray) -> bool:
    """Whether a job fits now and ends by the shadow time, or leaves the head room at that time (see `leaves_room`)."""
    anywhere = rules.anywhere
    if not place(jobs.nodes[job], jobs.remote[job], anywhere, racks.free, racks.pool, racks.take, racks.borrow):
        return False
    length = expected(job, jobs, racks.take, racks.borrow, anywhere, rules.believed_spread)
    return now[TIME] + length <= now[SHADOW] or (rules.backfill == EASY and leaves_room(head, keep, jobs, rules, racks))


@inlined
def leaves_room(head: int, keep: bool, jobs: Jobs, rules: Rules, racks: Racks) -> bool:
    """Whether the placement just found leaves the head room at its shadow time; `keep` takes it off that time's machine."""
    free, pool = racks.then_free, racks.then_pool
    short = False
    for r in range(free.size):
        free[r] -= racks.take[r]
        pool[r] -= racks.borrow[r]
        short = short or free[r] < 0 or pool[r] < 0
    room = not short and fits(jobs.nodes[head], jobs.remote[head], rules.anywhere, free, pool)
    if not (room and keep):
        for r in range(free.size):
            free[r] += racks.take[r]
            pool[r] += racks.borrow[r]
    return room
