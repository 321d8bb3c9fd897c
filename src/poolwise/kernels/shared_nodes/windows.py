"""Windows in which some nodes are kept free: which of them block a job, and when a head can start despite them.

A job that may not use a window cannot use the window's nodes from the first start at which the job would still run when the
window begins, until the window ends. So fewer nodes are open to a job as a window approaches: its kind has a separate number
for each set of groups of nodes that may be closed to it. Sources: `policies.placement.avoid_windows`, `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.events import time_at
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.shadow import count_until, time_of_fit
from poolwise.kernels.shared_nodes.state import SharedNow, SharedState, WindowArrays
from poolwise.quantities import NEVER


@step
def pass_windows(windows: WindowArrays, now: SharedNow) -> None:
    """Advance to the current time: skip windows that are over."""
    if time_at(windows.ends, now.ended) > now.time:
        return
    while time_at(windows.ends, now.ended) <= now.time:
        now.ended += 1
    now.passed = _first_not_over(now.passed, now.time, windows)
    now.settled = 0
    now.version += 1
    for user in range(windows.coming.shape[0]):
        _update_coming(user, windows, now)


@inlined
def _first_not_over(w: int, time: int, windows: WindowArrays) -> int:
    """Return the first window from w on that is not over at a time."""
    while w < windows.end.size and windows.end[w] <= time:
        w += 1
    return w


@inlined
def _update_coming(user: int, windows: WindowArrays, now: SharedNow) -> None:
    """Find when windows begin on each group that a class of users may not use."""
    coming = windows.coming[user]
    for group in range(coming.size):
        coming[group] = NEVER
    left, w = coming.size, now.passed
    while left > 0 and w < windows.start.size:
        if coming[windows.group[w]] == NEVER and windows.end[w] > now.time and not windows.usable[user, w]:
            coming[windows.group[w]] = windows.start[w]
            left -= 1
        w += 1


@inlined
def closed_now(kind: int, length: int, windows: WindowArrays, now: SharedNow) -> int:
    """Return the groups of nodes (bits) on which a job of a given kind and length (ns) cannot start now because of windows."""
    closed, coming = 0, windows.coming[windows.user[kind]]
    for group in range(coming.size):
        closed |= int(coming[group] < NEVER and coming[group] - now.time < length) << group
    return int(closed)


@inlined
def ever_closed(kind: int, windows: WindowArrays) -> int:
    """Return the groups of nodes (bits) on which long jobs of a kind cannot start before the next end of a window."""
    closed, coming = 0, windows.coming[windows.user[kind]]
    for group in range(coming.size):
        closed |= int(coming[group] < NEVER) << group
    return int(closed)


@inlined
def next_closing(job: int, state: SharedState, windows: WindowArrays) -> int:
    """Return the time (ns) from which one more group is closed to a waiting job; NEVER if there is none."""
    jobs = state.jobs
    first, length, coming = NEVER, jobs.expected_work[job], windows.coming[windows.user[jobs.kind[job]]]
    for group in range(coming.size):
        if coming[group] < NEVER and coming[group] - state.now.time >= length:
            first = min(first, coming[group] - length + 1)
    return int(first)


@inlined
def kind_now(job: int, state: SharedState, windows: WindowArrays | None) -> int:
    """Return the kind of a job that would start now."""
    jobs = state.jobs
    kind = jobs.kind[job]
    if windows is not None:
        kind += closed_now(kind, jobs.expected_work[job], windows, state.now)
    return int(kind)


@step
def shadow_time_with_windows(head: int, state: SharedState, windows: WindowArrays) -> None:
    """Find the shadow time of a head of kind `now.ready_kind`, and count the nodes that can hold a part of it then.

    With time more nodes can hold a part, while approaching windows close groups until one ends. So the head starts when enough
    nodes that are open to it can hold its parts, or when a window ends.
    """
    jobs, now = state.jobs, state.now
    kind, time, end, first = jobs.kind[head], now.time, now.ended, now.passed
    while True:
        closed = closed_at(time, first, kind, jobs.expected_work[head], windows)
        ready = time_of_fit(kind, closed, state)
        if ready <= time:
            break
        while end < windows.ends.size and windows.ends[end] <= time:
            end += 1
        time = min(ready, windows.ends[end]) if end < windows.ends.size else ready
        first = _first_not_over(first, time, windows)
    now.shadow, now.counted = time, closed
    if ready < time:
        now.counted = state.timeline.instant.size - 1
        count_until(time, kind, closed, state)


@inlined
def closed_at(time: int, w: int, kind: int, length: int, windows: WindowArrays) -> int:
    """Return the groups of nodes (bits) closed at a time to a job of a given length (ns); windows before w are over."""
    closed, user = 0, windows.user[kind]
    while w < windows.start.size and windows.start[w] - time < length:
        if windows.end[w] > time and not windows.usable[user, w]:
            closed |= 1 << windows.group[w]
        w += 1
    return int(closed)


@step
def next_closings(state: SharedState, windows: WindowArrays) -> int:
    """Return the time (ns) from which one more group is closed to some waiting job; NEVER if there is none."""
    first = NEVER
    if windows.coming.shape[1] > 0:
        for k in range(state.now.waiting):
            first = min(first, next_closing(state.queue.job[k], state, windows))
    return int(first)


@step
def opens(begin: int, job: int, area: IntArray, state: SharedState, windows: WindowArrays) -> int:
    """Return the first instant (ns), from `begin` on, from which no window closes all nodes of a job's partitions.

    `area`, (n_set, n_word), contains the nodes of partitions with each set of closed groups. Source: `BackfillWindows.opens`.
    """
    kind, length, until = state.jobs.kind[job], state.jobs.length[job], begin
    of, user = state.kinds.eligible[kind], windows.user[kind]
    while windows.coming.shape[1] > 0:
        time, w = max(until, state.now.time), state.now.passed
        while w < windows.start.size and windows.start[w] - time < length:
            if windows.end[w] > time and not windows.usable[user, w] and not area[of + (1 << windows.group[w])].any():
                until = max(until, windows.end[w])
            w += 1
        if until == begin:
            break
        begin = until
    return int(until)
