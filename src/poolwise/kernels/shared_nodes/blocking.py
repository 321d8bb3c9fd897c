"""Starts in priority order, in which a job that does not fit blocks the nodes of its partitions for the jobs behind it.

Equals `policies.backfill.none.start_in_order` on nodes without memory pools.
"""

from __future__ import annotations

from poolwise.arrays import BoolArray, IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.order import key
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.counters import admit_jobs, has_counters, take
from poolwise.kernels.shared_nodes.head_state import CLOSED, OPEN, PARTLY, BlockArrays
from poolwise.kernels.shared_nodes.nodes import rebuild
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import WORD, CounterArrays, NodeArrays, SharedState, WindowArrays
from poolwise.kernels.shared_nodes.waiting import leave
from poolwise.kernels.shared_nodes.windows import kind_now


@step
def line_up(line: IntArray, counters: CounterArrays, state: SharedState) -> int:
    """Write the waiting jobs that are admitted, with their keys, in any order; return how many there are."""
    order, queue, now, count = state.order, state.queue, state.now, 0
    counts = has_counters(counters)
    if counts:
        admit_jobs(state, counters)
    for k in range(now.waiting):
        job = queue.job[k]
        if not counts or counters.admitted[job]:
            order.key[job] = key(job, now.time, order)
            line[count] = job
            count += 1
    return count


@inlined
def start_in_order(
    most: int,
    waiting: int,
    line: IntArray,
    counters: CounterArrays,
    blocks: BlockArrays,
    ahead: NodeArrays,
    windows: WindowArrays | None,
    last_key: float,
    state: SharedState,
) -> int:
    """Start jobs in priority order; write those that block nodes to `blocks.head` and return how many there are.

    `line` begins with `waiting` jobs, which come before all others that can start. At most `most` of them are considered,
    blocked ones included. Jobs with a key above `last_key` block no others. Return -1 after a start that bars an admitted job.
    """
    jobs, kinds, is_open, heads = state.jobs, state.kinds, True, 0
    heap.arrange(line, waiting, state.order.key)
    last = max(waiting - most, 0)
    while waiting > last and is_open:
        job = heap.pop(line, waiting, state.order.key)
        waiting -= 1
        kind = jobs.kind[job]
        status = blocks.status[kinds.eligible[kind]]
        if status == CLOSED:
            continue
        here = kind_now(job, state, windows)
        fits = finds_room(here, state)
        if fits:
            fits = (
                _place_beside(here, blocks, ahead, state) if status == PARTLY else choose(here, state.rules, kinds, state.nodes)
            )
        if fits:
            start(job, state)
            leave(job, state)
            if take(job, state, counters):
                return -1
        elif state.order.key[job] <= last_key and not _lacks_nodes(kind, here, blocks, state):
            blocks.head[heads] = job
            heads += 1
            is_open = _block(kinds.eligible[kind], state.nodes.top.shape[0] // 2, state.nodes.open, blocks)
    return heads


@inlined
def _lacks_nodes(kind: int, here: int, blocks: BlockArrays, state: SharedState) -> bool:
    """Return whether a job of a kind (`here` under windows) would not fit on the unblocked nodes even if nothing ran.

    Return False if its partitions have fewer unblocked nodes than it has parts.
    """
    if blocks.able.shape[1] == 0:
        return False
    of, of_class, left, able = state.kinds.eligible[kind], blocks.class_of[here], 0, 0
    for n in range(blocks.blocked.size):
        if not blocks.blocked[n]:
            left += int(blocks.of_set[of, n])
            able += int(blocks.able[of_class, n // WORD] >> (n % WORD) & 1)
    return bool(able < state.kinds.parts[kind] <= left)


@inlined
def line_up_open(line: IntArray, without: BoolArray, blocks: BlockArrays, state: SharedState) -> int:
    """Write the waiting jobs with nodes that are not blocked, in any order; return how many there are.

    Skip the jobs for which `without`, (n_job,), is true.
    """
    count = 0
    for k in range(state.now.waiting):
        job = state.queue.job[k]
        if not without[job] and blocks.status[state.kinds.eligible[state.jobs.kind[job]]] != CLOSED:
            line[count] = job
            count += 1
    return count


@inlined
def unblock(blocks: BlockArrays) -> None:
    """Begin a pass: no node is blocked."""
    for n in range(blocks.blocked.size):
        blocks.blocked[n] = False
    for k in range(blocks.status.size):
        blocks.status[k] = OPEN


@step
def _block(of: int, leaves: int, opened: BoolArray, blocks: BlockArrays) -> bool:
    """Block the nodes of a job's partitions; return whether some set, (n_set, 2 * n_leaf), still has open nodes."""
    is_open = False
    for n in range(blocks.blocked.size):
        blocks.blocked[n] = blocks.blocked[n] or blocks.of_set[of, n]
    for k in range(blocks.status.size):
        met, left = False, False
        for n in range(blocks.blocked.size):
            if opened[k, leaves + n]:
                met, left = met or blocks.blocked[n], left or not blocks.blocked[n]
        blocks.status[k] = CLOSED if not left else PARTLY if met else OPEN
        is_open = is_open or left
    return is_open


@step
def _place_beside(kind: int, blocks: BlockArrays, ahead: NodeArrays, state: SharedState) -> bool:
    """Find nodes for all parts of a job among those that are not blocked; return False if it does not fit."""
    nodes, blocked = state.nodes, blocks.blocked
    leaves = nodes.top.shape[0] // 2
    for n in range(blocked.size):
        for d in range(nodes.top.shape[1]):
            ahead.top[leaves + n, d] = -1 if blocked[n] else nodes.top[leaves + n, d]
    rebuild(blocked.size, ahead)
    if not choose(kind, state.rules, state.kinds, ahead):
        return False
    for part in range(state.kinds.parts[kind]):
        nodes.chosen[part], nodes.borrow[part] = ahead.chosen[part], 0
    return True
