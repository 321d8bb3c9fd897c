"""Who is on each node until when, and from when on each node could hold a part of the job that has a reservation."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.nodes import next_fit, raise_tree
from poolwise.kernels.shared_nodes.state import (
    AWAITED,
    MEMORY,
    STALE,
    TIME,
    KindArrays,
    NodeArrays,
    TimelineArrays,
)
from poolwise.units import NEVER, OVERDUE


@step
def settle_in(n: int, run: int, end: int, kind: int, local: int, timeline: TimelineArrays, now: IntArray) -> None:
    """Note that a part of a run is on a node until its expected end."""
    until, at = timeline.until[n], timeline.size[n]
    while at > 0 and until[at - 1] > end:
        until[at] = until[at - 1]
        timeline.by[n, at], timeline.kind[n, at] = timeline.by[n, at - 1], timeline.kind[n, at - 1]
        timeline.local[n, at] = timeline.local[n, at - 1]
        at -= 1
    until[at], timeline.by[n, at], timeline.kind[n, at], timeline.local[n, at] = end, run, kind, local
    timeline.size[n] += 1
    touch(n, timeline, now)


@step
def move_out(n: int, run: int, timeline: TimelineArrays, now: IntArray) -> int:
    """Forget a part of a run that has ended; returns the MiB that it had of the node's own."""
    by, at = timeline.by[n], 0
    while by[at] != run:
        at += 1
    local = timeline.local[n, at]
    timeline.size[n] -= 1
    for k in range(at, timeline.size[n]):
        timeline.until[n, k], by[k], timeline.kind[n, k] = timeline.until[n, k + 1], by[k + 1], timeline.kind[n, k + 1]
        timeline.local[n, k] = timeline.local[n, k + 1]
    touch(n, timeline, now)
    return int(local)


@inlined
def touch(n: int, timeline: TimelineArrays, now: IntArray) -> None:
    """Note that what is known of a node's future no longer holds."""
    leaf = timeline.first_end.size // 2 + n
    timeline.first_end[leaf] = timeline.until[n, 0] if timeline.size[n] > 0 else NEVER
    raise_tree(timeline.first_end, leaf)
    if now[AWAITED] >= 0 and not timeline.is_stale[n]:
        timeline.is_stale[n] = True
        timeline.stale[now[STALE]] = n
        now[STALE] += 1


@inlined
def is_overdue(timeline: TimelineArrays, now: IntArray) -> bool:
    """Whether a run at work should have ended."""
    return bool(timeline.first_end[1] <= now[TIME])


@step
def foresee(kind: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> None:
    """Bring `timeline.ready` up to date for jobs of a kind.

    A node that does not hold a part now will not before somebody there ends. Runs that are overdue are expected to end a
    fixed time from now: nodes with such runs are looked at in each pass.
    """
    if now[AWAITED] != kind:
        _begin(kind, kinds, nodes, timeline, now)
    for k in range(now[STALE]):
        n = timeline.stale[k]
        timeline.is_stale[n] = False
        look_at(n, kind, kinds, nodes, timeline, now)
    now[STALE] = 0
    n = next_overdue(0, timeline, now)
    while n >= 0:
        look_at(n, kind, kinds, nodes, timeline, now)
        n = next_overdue(n + 1, timeline, now)


@inlined
def _begin(kind: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> None:
    """Write what is known at once about jobs of a kind: nodes that hold a part now do so now, the others not before an end."""
    now[AWAITED] = kind
    for count in range(timeline.instant.size):
        timeline.instant[count] = -1
    for t in range(timeline.ready.size):
        timeline.ready[t] = timeline.first_end[t]
    for n in range(nodes.rack.size):
        timeline.exact[n] = False
    leaves = timeline.ready.size // 2
    n = next_fit(0, kind, -1, kinds, nodes)
    while n >= 0:
        timeline.ready[leaves + n], timeline.exact[n] = now[TIME], True
        raise_tree(timeline.ready, leaves + n)
        n = next_fit(n + 1, kind, -1, kinds, nodes)


@step
def look_at(n: int, kind: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> None:
    """Find when a node could hold a part, and count it where it belongs: one that nobody asked about is in no count."""
    leaf = timeline.ready.size // 2 + n
    known = timeline.ready[leaf]
    before, after = known if timeline.exact[n] else NEVER, _ready(n, kind, kinds, nodes, timeline, now)
    timeline.exact[n] = True
    if before != after:
        for count in range(timeline.instant.size):
            if nodes.group[n] & timeline.closed[count] == 0:
                instant = timeline.instant[count]
                timeline.earlier[count] += int(after < instant) - int(before < instant)
                timeline.holding[count] += int(after <= instant) - int(before <= instant)
    if known != after:
        timeline.ready[leaf] = after
        raise_tree(timeline.ready, leaf)


@step
def next_overdue(n: int, timeline: TimelineArrays, now: IntArray) -> int:
    """First node from n on with a run that should have ended, -1 if there is none."""
    tree, leaves = timeline.first_end, timeline.first_end.size // 2
    if n >= timeline.size.size:
        return -1
    t = leaves + n if n > 0 else 1
    while True:
        if tree[t] <= now[TIME]:
            if t >= leaves:
                return int(t - leaves)
            t *= 2
            continue
        while t & 1:
            t >>= 1
        if t == 0:
            return -1
        t += 1


@inlined
def _ready(n: int, kind: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> int:
    """When a node could hold a part, as far as is expected: ns, the present time if it does already, NEVER if it cannot."""
    leaf = nodes.top.shape[0] // 2 + n
    if not nodes.open[kinds.eligible[kind], leaf]:
        return NEVER
    ready = now[TIME]
    for d in range(nodes.top.shape[1]):
        ready = max(ready, _enough(n, d, kinds.ask[kind, d] - nodes.top[leaf, d], kinds, timeline, now))
    return int(ready)


@step
def _enough(n: int, d: int, short: int, kinds: KindArrays, timeline: TimelineArrays, now: IntArray) -> int:
    """When enough of a dimension is given back on a node for what is short of it."""
    if short <= 0:
        return int(now[TIME])
    size, late = timeline.size[n], now[TIME] + OVERDUE
    at = 0
    while at < size and timeline.until[n, at] <= now[TIME]:
        at += 1
    first, given = at, 0
    overdue = at > 0
    while at < size or overdue:
        time = timeline.until[n, at] if at < size else NEVER
        if overdue and late <= time:
            for k in range(first):
                given += back(n, k, d, kinds, timeline)
            overdue, time = False, late
        else:
            given += back(n, at, d, kinds, timeline)
            at += 1
        if given >= short:
            return int(time)
    return NEVER


@inlined
def back(n: int, at: int, d: int, kinds: KindArrays, timeline: TimelineArrays) -> int:
    """What the part at a place of a node's list gives back of a dimension."""
    return int(timeline.local[n, at] if d == MEMORY else kinds.ask[timeline.kind[n, at], d])


@step
def given_back(n: int, d: int, time: int, kinds: KindArrays, timeline: TimelineArrays, now: IntArray) -> int:
    """What is given back of a dimension on a node until a time, included."""
    given = 0
    for at in range(timeline.size[n]):
        end = timeline.until[n, at]
        if end <= now[TIME]:
            end = now[TIME] + OVERDUE
        elif end > time:
            break
        if end <= time:
            given += back(n, at, d, kinds, timeline)
    return given
