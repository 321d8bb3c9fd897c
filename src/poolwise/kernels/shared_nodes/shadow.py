"""Shadow time of a head: when enough nodes outside groups closed by windows can hold its parts, and how many can by a time.

Results are cached per set of closed groups while `timeline.evaluate_node` counts fewer nodes than parts before that time and
enough nodes by then. Source: `policies.backfill.easy`.
"""

from __future__ import annotations

from poolwise.kernels.common import heap
from poolwise.kernels.jit import step
from poolwise.kernels.shared_nodes.state import SharedState
from poolwise.kernels.shared_nodes.timeline import evaluate_node
from poolwise.quantities import NEVER


@step
def time_of_fit(kind: int, closed: int, state: SharedState) -> int:
    """Return the first time (ns) at which the parts of kind `now.ready_kind` fit outside closed groups, or NEVER."""
    kinds, nodes, timeline = state.kinds, state.nodes, state.timeline
    wanted, shadow = kinds.parts[kind], timeline.instant[closed]
    if shadow >= 0 and timeline.earlier[closed] < wanted and (wanted <= timeline.holding[closed] or shadow == NEVER):
        return int(shadow)
    ready, front, leaves, within = timeline.ready, timeline.front, timeline.ready.size // 2, kinds.eligible[kind + closed]
    front[0] = 1
    size, fitting, earlier, shadow = int(nodes.open[within, 1]), 0, 0, NEVER
    timeline.instant[closed] = -1  # suspends counting
    while size > 0 and (fitting < wanted or ready[front[0]] <= shadow):
        t = heap.pop(front, size, ready)
        size -= 1
        if t < leaves:
            for below in range(2 * t, 2 * t + 2):
                if nodes.open[within, below]:
                    heap.push(front, size, below, ready)
                    size += 1
        elif not timeline.exact[t - leaves]:
            evaluate_node(t - leaves, kind, state)  # its time is the same or later
            heap.push(front, size, t, ready)
            size += 1
        else:
            if fitting == 0 or ready[t] > shadow:
                earlier = fitting
            fitting += 1
            shadow = ready[t]
    if fitting < wanted:
        shadow = NEVER
    timeline.instant[closed], timeline.earlier[closed], timeline.holding[closed] = shadow, earlier, fitting
    return int(shadow)


@step
def count_until(time: int, kind: int, closed: int, state: SharedState) -> None:
    """Set the last count to the nodes outside closed groups that can hold a part of kind `now.ready_kind` by a time."""
    timeline = state.timeline
    last = timeline.instant.size - 1
    if timeline.instant[last] == time and timeline.closed[last] == closed:
        return
    ready, stack, leaves, within = timeline.ready, timeline.front, timeline.ready.size // 2, state.kinds.eligible[kind + closed]
    stack[0] = 1
    size, fitting = 1, 0
    timeline.instant[last] = -1
    while size > 0:
        size -= 1
        t = stack[size]
        if ready[t] > time or not state.nodes.open[within, t]:
            continue
        if t < leaves:
            stack[size], stack[size + 1] = 2 * t, 2 * t + 1
            size += 2
        elif timeline.exact[t - leaves]:
            fitting += 1
        else:
            evaluate_node(t - leaves, kind, state)
            size += 1  # the same entry is still on the stack
    timeline.instant[last], timeline.closed[last], timeline.holding[last] = time, closed, fitting
