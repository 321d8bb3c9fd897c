"""Windows in which some nodes are kept free: which of them are in a job's way, and when a head can start beside them.

A job that may not use a window is kept from its nodes if it would still run when the window begins, and until it ends. So a job
asks for less of the machine as a window comes nearer: for each set of groups of nodes that may be shut to a job its kind has a
number of its own. Sources: `policies.placement.windows`, `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.shadow import count_until, time_of_room
from poolwise.kernels.shared_nodes.state import (
    COUNTED,
    ENDED,
    PASSED,
    SETTLED,
    SHADOW,
    TIME,
    KindArrays,
    NodeArrays,
    SharedJobs,
    TimelineArrays,
    WindowArrays,
)
from poolwise.units import NEVER


@inlined
def next_window_end(windows: WindowArrays, now: IntArray) -> int:
    """Time (ns) of the next end of a window, NEVER if there is none."""
    return int(windows.ends[now[ENDED]] if now[ENDED] < windows.ends.size else NEVER)


@step
def pass_windows(windows: WindowArrays, now: IntArray) -> None:
    """Let time go on to the present: windows that are over are looked at no longer."""
    if next_window_end(windows, now) > now[TIME]:
        return
    while next_window_end(windows, now) <= now[TIME]:
        now[ENDED] += 1
    now[PASSED] = _pass(now[PASSED], now[TIME], windows)
    now[SETTLED] = 0
    for who in range(windows.coming.shape[0]):
        _look_ahead(who, windows, now)


@inlined
def _pass(w: int, time: int, windows: WindowArrays) -> int:
    """First window from w on that is not over at a time."""
    while w < windows.end.size and windows.end[w] <= time:
        w += 1
    return w


@inlined
def _look_ahead(who: int, windows: WindowArrays, now: IntArray) -> None:
    """Find when windows begin on each group that somebody's jobs may not use."""
    coming = windows.coming[who]
    for group in range(coming.size):
        coming[group] = NEVER
    left, w = coming.size, now[PASSED]
    while left > 0 and w < windows.start.size:
        if coming[windows.group[w]] == NEVER and windows.end[w] > now[TIME] and not windows.usable[who, w]:
            coming[windows.group[w]] = windows.start[w]
            left -= 1
        w += 1


@inlined
def shut_now(kind: int, length: int, windows: WindowArrays, now: IntArray) -> int:
    """Groups of nodes, a bit each, on which a job of a kind that lasts so many ns cannot start now because of windows."""
    shut, coming = 0, windows.coming[windows.who[kind]]
    for group in range(coming.size):
        shut |= int(coming[group] < NEVER and coming[group] - now[TIME] < length) << group
    return int(shut)


@inlined
def ever_shut(kind: int, windows: WindowArrays) -> int:
    """Groups of nodes, a bit each, on which some jobs of a kind cannot start before the next end of a window, if they last."""
    shut, coming = 0, windows.coming[windows.who[kind]]
    for group in range(coming.size):
        shut |= int(coming[group] < NEVER) << group
    return int(shut)


@inlined
def next_shut(job: int, jobs: SharedJobs, windows: WindowArrays, now: IntArray) -> int:
    """Time (ns) from which a job cannot start on one group more, if it waits until then; NEVER if there is none."""
    first, length, coming = NEVER, jobs.asked[job], windows.coming[windows.who[jobs.nodes[job]]]
    for group in range(coming.size):
        if coming[group] < NEVER and coming[group] - now[TIME] >= length:
            first = min(first, coming[group] - length + 1)
    return int(first)


@inlined
def kind_now(job: int, jobs: SharedJobs, windows: WindowArrays | None, now: IntArray) -> int:
    """Kind of a job that would start now."""
    kind = jobs.nodes[job]
    if windows is not None:
        kind += shut_now(kind, jobs.asked[job], windows, now)
    return int(kind)


@step
def await_beside(
    head: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    windows: WindowArrays,
    now: IntArray,
) -> None:
    """Find the shadow time of a head of the kind `now[AWAITED]`, and count the nodes that could hold a part of it then.

    As time goes on more nodes could hold a part, and fewer are open as windows come nearer, until one ends. So the head starts
    when enough of the nodes could that are open to it, or when a window ends.
    """
    kind, time, end, first = jobs.nodes[head], now[TIME], now[ENDED], now[PASSED]
    while True:
        shut = _shut_at(time, first, kind, jobs.asked[head], windows)
        ready = time_of_room(kind, shut, kinds, nodes, timeline, now)
        if ready <= time:
            break
        while end < windows.ends.size and windows.ends[end] <= time:
            end += 1
        time = min(ready, windows.ends[end]) if end < windows.ends.size else ready
        first = _pass(first, time, windows)
    now[SHADOW], now[COUNTED] = time, shut
    if ready < time:
        now[COUNTED] = timeline.instant.size - 1
        count_until(time, kind, shut, kinds, nodes, timeline, now)


@inlined
def _shut_at(time: int, w: int, kind: int, length: int, windows: WindowArrays) -> int:
    """Groups of nodes, a bit each, that are shut at a time to a job that lasts so many ns; windows before w are over."""
    shut, who = 0, windows.who[kind]
    while w < windows.start.size and windows.start[w] - time < length:
        if windows.end[w] > time and not windows.usable[who, w]:
            shut |= 1 << windows.group[w]
        w += 1
    return int(shut)
