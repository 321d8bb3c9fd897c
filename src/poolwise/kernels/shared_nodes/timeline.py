"""Timeline of each node: the expected ends of its runs, and when it can hold a part of the job with the reservation."""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.nodes import next_fit, next_subtree, update_tree
from poolwise.kernels.shared_nodes.state import MEMORY, KindArrays, SharedNow, SharedState, TimelineArrays
from poolwise.quantities import NEVER, OVERDUE


@step
def add_part(n: int, run: int, end: int, kind: int, local: int, timeline: TimelineArrays, now: SharedNow) -> None:
    """Add a part of a run to a node until its expected end."""
    until, at = timeline.until[n], timeline.size[n]
    while at > 0 and until[at - 1] > end:
        until[at] = until[at - 1]
        timeline.run_of[n, at], timeline.kind[n, at] = timeline.run_of[n, at - 1], timeline.kind[n, at - 1]
        timeline.local[n, at] = timeline.local[n, at - 1]
        at -= 1
    until[at], timeline.run_of[n, at], timeline.kind[n, at], timeline.local[n, at] = end, run, kind, local
    timeline.size[n] += 1
    timeline.shifted[n] = True
    touch(n, timeline, now)


@step
def remove_part(n: int, run: int, timeline: TimelineArrays, now: SharedNow) -> int:
    """Remove a part of a run that has ended; return the MiB of the node's own memory that it used."""
    by, at = timeline.run_of[n], 0
    while by[at] != run:
        at += 1
    local = timeline.local[n, at]
    timeline.shifted[n] = timeline.shifted[n] or timeline.until[n, at] < now.time
    if timeline.until[n, at] > now.time:
        timeline.vacant[n] = max(timeline.vacant[n], timeline.until[n, at])
    timeline.size[n] -= 1
    for k in range(at, timeline.size[n]):
        timeline.until[n, k], by[k], timeline.kind[n, k] = timeline.until[n, k + 1], by[k + 1], timeline.kind[n, k + 1]
        timeline.local[n, k] = timeline.local[n, k + 1]
    touch(n, timeline, now)
    return int(local)


@inlined
def touch(n: int, timeline: TimelineArrays, now: SharedNow) -> None:
    """Mark the ready time of a node as outdated."""
    leaf = timeline.first_end.size // 2 + n
    timeline.first_end[leaf] = timeline.until[n, 0] if timeline.size[n] > 0 else NEVER
    update_tree(timeline.first_end, leaf)
    if now.ready_kind >= 0 and not timeline.is_stale[n]:
        timeline.is_stale[n] = True
        timeline.stale[now.stale] = n
        now.stale += 1


@inlined
def is_overdue(state: SharedState) -> bool:
    """Return whether a current run is overdue."""
    return bool(state.timeline.first_end[1] <= state.now.time)


@step
def update_ready(kind: int, state: SharedState) -> None:
    """Update `timeline.ready` for jobs of a kind.

    A node that cannot hold a part now cannot hold one before a run on it ends. Overdue runs are expected to end a fixed time
    from now, so nodes with such runs are evaluated in each pass.
    """
    timeline, now = state.timeline, state.now
    if now.ready_kind != kind:
        _reset_ready(kind, state)
    for k in range(now.stale):
        n = timeline.stale[k]
        timeline.is_stale[n] = False
        evaluate_node(n, kind, state)
    now.stale = 0
    n = next_overdue(0, timeline, now)
    while n >= 0:
        evaluate_node(n, kind, state)
        n = next_overdue(n + 1, timeline, now)


@inlined
def _reset_ready(kind: int, state: SharedState) -> None:
    """Initialize ready times for a kind: now for nodes that hold a part now; for the others their first end, a lower bound."""
    kinds, nodes, timeline, now = state.kinds, state.nodes, state.timeline, state.now
    now.ready_kind = kind
    for count in range(timeline.instant.size):
        timeline.instant[count] = -1
    for t in range(timeline.ready.size):
        timeline.ready[t] = timeline.first_end[t]
    for n in range(nodes.rack.size):
        timeline.exact[n] = False
    leaves = timeline.ready.size // 2
    n = next_fit(0, kind, -1, kinds, nodes)
    while n >= 0:
        timeline.ready[leaves + n], timeline.exact[n] = now.time, True
        update_tree(timeline.ready, leaves + n)
        n = next_fit(n + 1, kind, -1, kinds, nodes)


@step
def evaluate_node(n: int, kind: int, state: SharedState) -> None:
    """Compute when a node can hold a part, and update the counts; a node not evaluated yet is in no count."""
    timeline = state.timeline
    leaf = timeline.ready.size // 2 + n
    cached = timeline.ready[leaf]
    before, after = cached if timeline.exact[n] else NEVER, _ready(n, kind, state)
    timeline.exact[n] = True
    if before != after:
        for count in range(timeline.instant.size):
            if state.nodes.group[n] & timeline.closed[count] == 0:
                instant = timeline.instant[count]
                timeline.earlier[count] += int(after < instant) - int(before < instant)
                timeline.holding[count] += int(after <= instant) - int(before <= instant)
    if cached != after:
        timeline.ready[leaf] = after
        update_tree(timeline.ready, leaf)


@step
def next_overdue(n: int, timeline: TimelineArrays, now: SharedNow) -> int:
    """Return the first node from n on with an overdue run, -1 if there is none."""
    tree, leaves = timeline.first_end, timeline.first_end.size // 2
    if n >= timeline.size.size:
        return -1
    t = leaves + n if n > 0 else 1
    while True:
        if tree[t] <= now.time:
            if t >= leaves:
                return int(t - leaves)
            t *= 2
            continue
        t = next_subtree(t)
        if t == 0:
            return -1


@inlined
def _ready(n: int, kind: int, state: SharedState) -> int:
    """Return when a node is expected to hold a part (ns): now if it already does, NEVER if it cannot."""
    kinds, nodes, now = state.kinds, state.nodes, state.now
    leaf = nodes.top.shape[0] // 2 + n
    if not nodes.open[kinds.eligible[kind], leaf]:
        return NEVER
    ready = now.time
    for d in range(nodes.top.shape[1]):
        ready = max(ready, _time_of_release(n, d, kinds.request[kind, d] - nodes.top[leaf, d], kinds, state.timeline, now))
    return int(ready)


@step
def _time_of_release(n: int, d: int, short: int, kinds: KindArrays, timeline: TimelineArrays, now: SharedNow) -> int:
    """Return when a node has released as much of a dimension as a part is short of."""
    if short <= 0:
        return int(now.time)
    size, late = timeline.size[n], now.time + OVERDUE
    at = 0
    while at < size and timeline.until[n, at] <= now.time:
        at += 1
    first, released = at, 0
    overdue = at > 0
    while at < size or overdue:
        time = timeline.until[n, at] if at < size else NEVER
        if overdue and late <= time:
            for k in range(first):
                released += released_by(n, k, d, kinds, timeline)
            overdue, time = False, late
        else:
            released += released_by(n, at, d, kinds, timeline)
            at += 1
        if released >= short:
            return int(time)
    return NEVER


@inlined
def released_by(n: int, at: int, d: int, kinds: KindArrays, timeline: TimelineArrays) -> int:
    """Return the amount of a dimension that the part at a position of a node's list releases."""
    return int(timeline.local[n, at] if d == MEMORY else kinds.request[timeline.kind[n, at], d])


@step
def released_until(n: int, d: int, time: int, kinds: KindArrays, timeline: TimelineArrays, now: SharedNow) -> int:
    """Return the amount of a dimension that a node releases up to a time, inclusive."""
    released = 0
    for at in range(timeline.size[n]):
        end = timeline.until[n, at]
        if end <= now.time:
            end = now.time + OVERDUE
        elif end > time:
            break
        if end <= time:
            released += released_by(n, at, d, kinds, timeline)
    return released
