"""What the head of the queue is promised under EASY: when it will start, and what others may use until then.

On nodes of their own the first times at which each could hold a part of the head say it all: the head starts at the k-th of
them, k its parts. They are kept from pass to pass (`timeline.foresee`). Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.state import EASY
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.state import (
    AWAITED,
    HOLDING,
    PROMISE,
    SHADOW,
    STATE,
    TIME,
    JobArrays,
    KindArrays,
    NodeArrays,
    Rules,
    RunArrays,
    TimelineArrays,
)
from poolwise.kernels.shared_nodes.timeline import foresee, given_back
from poolwise.units import NEVER


@step
def reserve(kind: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> None:
    """Find the shadow time of a head that does not fit now, and how many nodes could hold a part of it then."""
    foresee(kind, kinds, nodes, timeline, now)
    ready, front, leaves = timeline.ready, timeline.front, timeline.ready.size // 2
    front[0] = 1
    size, holding, wanted = 1, 0, kinds.parts[kind]
    shadow = NEVER
    while size > 0 and (holding < wanted or ready[front[0]] <= shadow):
        t = heap.pop(front, size, ready)
        size -= 1
        if t >= leaves:
            holding += 1
            if holding == wanted:
                shadow = ready[t]
        else:
            heap.push(front, size, 2 * t, ready)
            heap.push(front, size + 1, 2 * t + 1, ready)
            size += 2
    now[SHADOW], now[HOLDING] = shadow, holding
    now[PROMISE] += 1


@step
def finds_room(kind: int, rules: Rules, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Whether a job of a kind fits now; the answer is kept until something is taken or given back."""
    if kinds.fits_at[kind] != now[STATE]:
        kinds.fits_at[kind] = now[STATE]
        kinds.fits[kind] = choose(kind, rules, kinds, nodes)
    return bool(kinds.fits[kind])


@step
def leaves_room(kind: int, rules: Rules, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> bool:
    """Whether a job of a kind that fits now, and runs beyond the shadow time, leaves the head room; kept as long as it holds."""
    if rules.backfill != EASY:
        return False
    if kinds.room_at[kind] != now[PROMISE]:
        kinds.room_at[kind] = now[PROMISE]
        choose(kind, rules, kinds, nodes)
        head = now[AWAITED]
        kinds.room[kind] = now[HOLDING] - _spoilt(kind, head, kinds, nodes, timeline, now) >= kinds.parts[head]
    return bool(kinds.room[kind])


@inlined
def _spoilt(kind: int, head: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> int:
    """How many of the nodes just chosen could hold a part of the head at its shadow time, but not beside this job."""
    spoilt, leaves = 0, nodes.top.shape[0] // 2
    for part in range(kinds.parts[kind]):
        n = nodes.chosen[part]
        if timeline.ready[leaves + n] > now[SHADOW]:
            continue
        for d in range(nodes.top.shape[1]):
            short = kinds.ask[head, d] + kinds.ask[kind, d] - nodes.top[leaves + n, d]
            if short > 0 and given_back(n, d, now[SHADOW], kinds, timeline, now) < short:
                spoilt += 1
                break
    return spoilt


@step
def may_start(
    job: int,
    rules: Rules,
    jobs: JobArrays,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    now: IntArray,
) -> bool:
    """Whether a job fits now, and ends by the shadow time or leaves the head room."""
    kind = jobs.nodes[job]
    if not finds_room(kind, rules, kinds, nodes, now):
        return False
    if now[TIME] + jobs.length[job] <= now[SHADOW]:
        return True
    return leaves_room(kind, rules, kinds, nodes, timeline, now)


@step
def backfill(
    job: int,
    rules: Rules,
    jobs: JobArrays,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Start a job that `may_start`; what it spoils for the head is counted."""
    kind, head = jobs.nodes[job], now[AWAITED]
    choose(kind, rules, kinds, nodes)
    if now[TIME] + jobs.length[job] > now[SHADOW]:
        now[HOLDING] -= _spoilt(kind, head, kinds, nodes, timeline, now)
    start(job, jobs, kinds, nodes, timeline, runs, now)
    foresee(head, kinds, nodes, timeline, now)
