"""Windows in which some nodes are kept free: which of them are in a job's way, and when a head can start beside them.

A job that may not use a window is kept from its nodes if it would still run when the window begins, and until it ends. So a job
asks for less of the machine as a window comes nearer: for each set of groups of nodes that may be shut to a job its kind has a
number of its own. Sources: `policies.placement.windows`, `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.shared_nodes.state import (
    BESIDE,
    ENDED,
    HOLDING,
    PASSED,
    SHADOW,
    SHUT,
    TIME,
    KindArrays,
    NodeArrays,
    SharedJobs,
    TimelineArrays,
    WindowArrays,
)
from poolwise.kernels.shared_nodes.timeline import look_at
from poolwise.units import NEVER


@inlined
def next_window_end(windows: WindowArrays, now: IntArray) -> int:
    """Time (ns) of the next end of a window, NEVER if there is none."""
    return int(windows.ends[now[ENDED]] if now[ENDED] < windows.ends.size else NEVER)


@step
def pass_windows(windows: WindowArrays, now: IntArray) -> None:
    """Let time go on to the present: windows that are over are looked at no longer."""
    while next_window_end(windows, now) <= now[TIME]:
        now[ENDED] += 1
    while now[PASSED] < windows.end.size and windows.end[now[PASSED]] <= now[TIME]:
        now[PASSED] += 1


@step
def shut_to(job: int, time: int, jobs: SharedJobs, windows: WindowArrays, now: IntArray) -> int:
    """Groups of nodes, a bit each, on which a job cannot start at a time because of windows."""
    shut, length, who = 0, jobs.asked[job], windows.who[job]
    for w in range(now[PASSED], windows.start.size):
        if windows.start[w] - time >= length:
            break
        if windows.end[w] > time and not windows.usable[who, w]:
            shut |= 1 << windows.group[w]
    return shut


@inlined
def kind_now(job: int, jobs: SharedJobs, windows: WindowArrays | None, now: IntArray) -> int:
    """Kind of a job that would start now."""
    kind = jobs.nodes[job]
    if windows is not None:
        kind += shut_to(job, now[TIME], jobs, windows, now)
    return int(kind)


@step
def go_beside(
    head: int,
    jobs: SharedJobs,
    kinds: KindArrays,
    nodes: NodeArrays,
    timeline: TimelineArrays,
    windows: WindowArrays,
    now: IntArray,
) -> None:
    """Find the shadow time anew if a window is in the way of a head, now or at the shadow time that was found without windows.

    As time goes on more nodes could hold a part, and fewer are open as windows come nearer, until one ends. So the head starts
    when a node can first hold a part, or when a window ends.
    """
    if shut_to(head, now[TIME], jobs, windows, now) | shut_to(head, now[SHADOW], jobs, windows, now) == 0:
        return
    kind, count = jobs.nodes[head], nodes.rack.size
    line, ready, leaves = nodes.line, timeline.ready, timeline.ready.size // 2
    now[SHADOW] = -1  # nothing is counted meanwhile
    for n in range(count):
        if not timeline.exact[n]:
            look_at(n, kind, kinds, nodes, timeline, now)
        line[n] = leaves + n
    heap.arrange(line, count, ready)
    for group in range(windows.holding.size):
        windows.holding[group] = 0
    time, end = now[TIME], now[ENDED]
    while True:
        while count > 0 and ready[line[0]] <= time:
            windows.holding[nodes.group[heap.pop(line, count, ready) - leaves]] += 1
            count -= 1
        if _holds_beside(head, time, jobs, kinds, windows, now):
            break
        following = ready[line[0]] if count > 0 else NEVER
        while end < windows.ends.size and windows.ends[end] <= time:
            end += 1
        time = min(following, windows.ends[end]) if end < windows.ends.size else following
    now[SHADOW], now[BESIDE] = time, 1


@inlined
def _holds_beside(head: int, time: int, jobs: SharedJobs, kinds: KindArrays, windows: WindowArrays, now: IntArray) -> bool:
    """Whether enough of the nodes in `windows.holding` are open to a head at a time; notes how many, and what is shut."""
    now[SHUT], now[HOLDING] = shut_to(head, time, jobs, windows, now), 0
    for groups in range(windows.holding.size):
        if groups & now[SHUT] == 0:
            now[HOLDING] += windows.holding[groups]
    return bool(now[HOLDING] >= kinds.parts[jobs.nodes[head]] or time == NEVER)
