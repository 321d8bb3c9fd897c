"""What the head of the queue is promised under EASY: when it will start, and what others may use until then.

On nodes of their own the first times at which each could hold a part of the head say it all: the head starts at the k-th of
them, k its parts (`shadow`). They are kept from pass to pass (`timeline.foresee`). Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.state import EASY
from poolwise.kernels.shared_nodes.borrowing import holds, promise, put_aside
from poolwise.kernels.shared_nodes.choose import borrows, choose
from poolwise.kernels.shared_nodes.room import finds_room, place
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.shadow import time_of_room
from poolwise.kernels.shared_nodes.slowdown import expected
from poolwise.kernels.shared_nodes.state import (
    BORROWS,
    COUNTED,
    ELSEWHERE,
    HEAD,
    KEPT,
    MEMORY,
    PROMISE,
    SHADOW,
    TIME,
    WINDOW,
    KindArrays,
    NodeArrays,
    SharedJobs,
    SharedRules,
    SharedRuns,
    ThenArrays,
    TimelineArrays,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.timeline import foresee, given_back, is_overdue, look_at
from poolwise.kernels.shared_nodes.windows import await_beside, kind_now, next_shut
from poolwise.units import HORIZON, NEVER


@step
def reserve(
    head: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Find the shadow time of a head that does not fit now, and what it is left then."""
    kind = jobs.nodes[head]
    now[HEAD], now[BORROWS] = head, int(borrows(kind, kinds, nodes))
    now[PROMISE] += 1
    if now[BORROWS]:
        promise(kind, jobs, kinds, nodes, then, runs, is_overdue(timeline, now), now)
    else:
        now[KEPT] = -1
        foresee(kind, kinds, nodes, timeline, now)
        if windows is None:
            now[SHADOW] = time_of_room(kind, 0, kinds, nodes, timeline, now)
        else:
            await_beside(head, jobs, kinds, nodes, timeline, windows, now)
    now[WINDOW] = window(now)


@inlined
def window(now: IntArray) -> int:
    """How long a run may take that is to end by the shadow time; what would end later than the horizon ends there."""
    return int(now[SHADOW] - now[TIME] if now[SHADOW] < HORIZON else NEVER)


@step
def leaves_room(
    kind: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    now: IntArray,
) -> bool:
    """Whether a job of a kind that fits now, and runs beyond the shadow time, leaves the head room; kept while it holds."""
    if rules.backfill != EASY:
        return False
    if kinds.room_at[kind] != now[PROMISE]:
        kinds.room_at[kind] = now[PROMISE]
        head = jobs.nodes[now[HEAD]]
        if not now[BORROWS] and timeline.holding[now[COUNTED]] - kinds.parts[kind] >= kinds.parts[head]:
            kinds.room[kind] = True  # whatever nodes it takes
            return True
        place(kind, rules, kinds, nodes)
        if now[BORROWS]:
            kinds.room[kind] = _holds_beside(kind, head, kinds, nodes, then)
        else:
            spoilt = _spoilt(kind, head, kinds, nodes, timeline, now)
            kinds.room[kind] = timeline.holding[now[COUNTED]] - spoilt >= kinds.parts[head]
    return bool(kinds.room[kind])


@inlined
def _holds_beside(kind: int, head: int, kinds: KindArrays, nodes: NodeArrays, then: ThenArrays) -> bool:
    """Whether the head finds room at its shadow time beside the placement just found."""
    put_aside(kind, -1, kinds, nodes, then)
    found = holds(head, kinds, nodes, then)
    put_aside(kind, 1, kinds, nodes, then)
    return found


@inlined
def _spoilt(kind: int, head: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> int:
    """How many of the nodes just chosen could hold a part of the head at its shadow time, but not beside this job."""
    spoilt, leaves = 0, nodes.top.shape[0] // 2
    for part in range(kinds.parts[kind]):
        n = nodes.chosen[part]
        if not timeline.exact[n]:
            look_at(n, head, kinds, nodes, timeline, now)
        if timeline.ready[leaves + n] > now[SHADOW] or nodes.group[n] & timeline.closed[now[COUNTED]] != 0:
            continue
        for d in range(nodes.top.shape[1]):
            short = kinds.ask[head, d] + kinds.ask[kind, d] - nodes.top[leaves + n, d]
            if d == MEMORY:
                short -= nodes.lack[part]
            if short > 0 and given_back(n, d, now[SHADOW], kinds, timeline, now) < short:
                spoilt += 1
                break
    return spoilt


@step
def may_start(
    job: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
    now: IntArray,
) -> bool:
    """Whether a job fits now, and ends by the shadow time or leaves the head room."""
    kind = kind_now(job, jobs, windows, now)
    if not finds_room(kind, kinds, nodes, now):
        return False
    if jobs.length[job] <= now[WINDOW] and _ends_in_time(job, rules, jobs, kinds, nodes, now):
        return True
    if leaves_room(kind, rules, jobs, kinds, nodes, timeline, then, now):
        return True
    if windows is not None:
        now[ELSEWHERE] = min(now[ELSEWHERE], next_shut(job, jobs, windows, now))
    return False


@inlined
def _ends_in_time(job: int, rules: SharedRules, jobs: SharedJobs, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Whether a job that would with all memory in the nodes ends by the shadow time where it is placed."""
    if jobs.near.size == 0:
        return True
    choose(jobs.nodes[job], rules, kinds, nodes)
    return bool(expected(job, rules, jobs, kinds, nodes) <= now[WINDOW])


@step
def backfill(
    job: int,
    rules: SharedRules,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    then: ThenArrays,
    windows: WindowArrays | None,
    runs: SharedRuns,
    now: IntArray,
) -> None:
    """Start a job that `may_start`, beside the head; what it takes from the head's time is counted no longer."""
    kind = kind_now(job, jobs, windows, now)
    choose(kind, rules, kinds, nodes)
    if now[BORROWS] and expected(job, rules, jobs, kinds, nodes) > now[WINDOW]:
        put_aside(kind, -1, kinds, nodes, then)
    start(job, rules, jobs, kinds, nodes, timeline, runs, now)
    if not now[BORROWS]:
        foresee(jobs.nodes[now[HEAD]], kinds, nodes, timeline, now)
