"""When enough nodes could hold the parts of a head, groups of nodes left out that windows shut, and how many could by a time.

What was found is kept, by the set of groups, as long as `timeline.look_at` counts fewer nodes than there are parts that could
hold one earlier, and enough that could by then. Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.shared_nodes.state import KindArrays, NodeArrays, TimelineArrays
from poolwise.kernels.shared_nodes.timeline import look_at
from poolwise.units import NEVER


@step
def time_of_room(kind: int, shut: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray) -> int:
    """First time (ns) at which the parts of the kind `now[AWAITED]` could be held where groups are shut, NEVER if never."""
    wanted, shadow = kinds.parts[kind], timeline.instant[shut]
    if shadow >= 0 and timeline.earlier[shut] < wanted and (wanted <= timeline.holding[shut] or shadow == NEVER):
        return int(shadow)
    ready, front, leaves, within = timeline.ready, timeline.front, timeline.ready.size // 2, kinds.eligible[kind + shut]
    front[0] = 1
    size, found, earlier, shadow = int(nodes.open[within, 1]), 0, 0, NEVER
    timeline.instant[shut] = -1  # nothing is counted meanwhile
    while size > 0 and (found < wanted or ready[front[0]] <= shadow):
        t = heap.pop(front, size, ready)
        size -= 1
        if t < leaves:
            for below in range(2 * t, 2 * t + 2):
                if nodes.open[within, below]:
                    heap.push(front, size, below, ready)
                    size += 1
        elif not timeline.exact[t - leaves]:
            look_at(t - leaves, kind, kinds, nodes, timeline, now)  # it stands where it was or later
            heap.push(front, size, t, ready)
            size += 1
        else:
            if found == 0 or ready[t] > shadow:
                earlier = found
            found += 1
            shadow = ready[t]
    if found < wanted:
        shadow = NEVER
    timeline.instant[shut], timeline.earlier[shut], timeline.holding[shut] = shadow, earlier, found
    return int(shadow)


@step
def count_until(
    time: int, kind: int, shut: int, kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, now: IntArray
) -> None:
    """Let the last count be that of the nodes outside of groups that could hold a part of the kind `now[AWAITED]` by a time."""
    last = timeline.instant.size - 1
    if timeline.instant[last] == time and timeline.closed[last] == shut:
        return
    ready, stack, leaves, within = timeline.ready, timeline.front, timeline.ready.size // 2, kinds.eligible[kind + shut]
    stack[0] = 1
    size, found = 1, 0
    timeline.instant[last] = -1
    while size > 0:
        size -= 1
        t = stack[size]
        if ready[t] > time or not nodes.open[within, t]:
            continue
        if t < leaves:
            stack[size], stack[size + 1] = 2 * t, 2 * t + 1
            size += 2
        elif timeline.exact[t - leaves]:
            found += 1
        else:
            look_at(t - leaves, kind, kinds, nodes, timeline, now)
            size += 1  # it still stands there
    timeline.instant[last], timeline.closed[last], timeline.holding[last] = time, shut, found
