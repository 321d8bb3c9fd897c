"""What the head of the queue is promised under EASY: when it will start, and what others may use until then.

On nodes of their own the first times at which each could hold a part of the head say it all: the head starts at the k-th of
them, k its parts. They are kept from pass to pass (`timeline.foresee`). Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.list_scheduling.state import EASY
from poolwise.kernels.shared_nodes.borrowing import holds, promise, put_aside
from poolwise.kernels.shared_nodes.choose import borrows, choose, missing
from poolwise.kernels.shared_nodes.nodes import holds_part
from poolwise.kernels.shared_nodes.runs import start
from poolwise.kernels.shared_nodes.slowdown import expected
from poolwise.kernels.shared_nodes.state import (
    BESIDE,
    BORROWS,
    EARLIER,
    GIVEN,
    HEAD,
    HOLDING,
    KEPT,
    MEMORY,
    PROMISE,
    SHADOW,
    SHUT,
    STATE,
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
from poolwise.kernels.shared_nodes.windows import go_beside, kind_now
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
    kind, elsewise = jobs.nodes[head], now[BORROWS] or now[BESIDE]
    now[HEAD], now[BORROWS] = head, int(borrows(kind, kinds, nodes))
    now[PROMISE] += 1
    if now[BORROWS]:
        promise(kind, jobs, kinds, nodes, then, runs, is_overdue(timeline, now), now)
    else:
        now[KEPT] = -1
        if elsewise:  # the last shadow time was not found here, nor nodes counted by it
            now[BESIDE], now[SHUT], now[SHADOW] = 0, 0, -1
        _await(kind, kinds, nodes, timeline, now)
        if windows is not None:
            go_beside(head, jobs, kinds, nodes, timeline, windows, now)
    now[WINDOW] = window(now)


@inlined
def window(now: IntArray) -> int:
    """How long a run may take that is to end by the shadow time; what would end later than the horizon ends there."""
    return int(now[SHADOW] - now[TIME] if now[SHADOW] < HORIZON else NEVER)


@inlined
def _await(kind: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> None:
    """Find the shadow time of a head on nodes that do not depend on each other, and how many could hold a part of it then.

    It is the time found last as long as fewer nodes than there are parts could hold one earlier, and enough could then.
    """
    foresee(kind, kinds, nodes, timeline, now)
    wanted = kinds.parts[kind]
    if now[SHADOW] >= now[TIME] and now[EARLIER] < wanted <= now[HOLDING]:
        return
    ready, front, leaves = timeline.ready, timeline.front, timeline.ready.size // 2
    front[0] = 1
    size, found, earlier, shadow = 1, 0, 0, NEVER
    now[SHADOW] = -1  # nothing is counted meanwhile
    while size > 0 and (found < wanted or ready[front[0]] <= shadow):
        t = heap.pop(front, size, ready)
        size -= 1
        if t >= leaves and not timeline.exact[t - leaves]:
            look_at(t - leaves, kind, kinds, nodes, timeline, now)  # it stands where it was or later
            heap.push(front, size, t, ready)
            size += 1
        elif t >= leaves:
            if found == 0 or ready[t] > shadow:
                earlier = found
            found += 1
            shadow = ready[t]
        else:
            heap.push(front, size, 2 * t, ready)
            heap.push(front, size + 1, 2 * t + 1, ready)
            size += 2
    now[SHADOW], now[EARLIER], now[HOLDING] = shadow, earlier, found


@step
def finds_room(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Whether a job of a kind fits now; the answer is kept until something is taken or given back."""
    if kinds.fits_at[kind] != now[STATE]:
        kinds.fits_at[kind] = now[STATE]
        if not _is_short(kind, kinds, nodes, now):
            kinds.short[kind] = missing(kind, kinds, nodes)
        kinds.fits[kind], kinds.short_at[kind] = kinds.short[kind] == 0, now[GIVEN]
    return bool(kinds.fits[kind])


@inlined
def _is_short(kind: int, kinds: KindArrays, nodes: NodeArrays, now: IntArray) -> bool:
    """Whether a kind that found no room finds none still, since too few nodes have been given back what a part needs."""
    before = kinds.short_at[kind]
    if kinds.short[kind] == 0 or now[GIVEN] - before > nodes.given.size or borrows(kind, kinds, nodes):
        return False
    for k in range(before, now[GIVEN]):
        kinds.short[kind] -= int(holds_part(nodes.given[k % nodes.given.size], kind, kinds, nodes))
        if kinds.short[kind] == 0:
            return False
    return True


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
        if not now[BORROWS] and now[HOLDING] - kinds.parts[kind] >= kinds.parts[head]:
            kinds.room[kind] = True  # whatever nodes it takes
            return True
        choose(kind, rules, kinds, nodes)
        if now[BORROWS]:
            kinds.room[kind] = _holds_beside(kind, head, kinds, nodes, then)
        else:
            kinds.room[kind] = now[HOLDING] - _spoilt(kind, head, kinds, nodes, timeline, now) >= kinds.parts[head]
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
        if timeline.ready[leaves + n] > now[SHADOW] or nodes.group[n] & now[SHUT] != 0:
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
    return leaves_room(kind, rules, jobs, kinds, nodes, timeline, then, now)


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
