"""Availability profile: a list of steps for each node, from now on, net of the reservations made so far.

Nodes are independent: a node can hold a part for some time from the start of one of its own steps, or from now. So the earliest
start of a job with k parts follows from the k-th available node, without trying all instants on all nodes.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.nodes import rebuild
from poolwise.kernels.shared_nodes.state import KindArrays, NodeArrays, ProfileSteps, SharedState
from poolwise.kernels.shared_nodes.timeline import released_by
from poolwise.units import HORIZON, NEVER, OVERDUE


@step
def build_profile(state: SharedState, profile: ProfileSteps) -> None:
    """Fill the profile from the current runs."""
    nodes, timeline, now = state.nodes, state.timeline, state.now
    leaves, dims, late = nodes.top.shape[0] // 2, nodes.top.shape[1], now.time + OVERDUE
    profile.used[0] = 0
    for n in range(nodes.rack.size):
        last = _new_step(now.time, profile)
        profile.first[n] = last
        for d in range(dims):
            profile.free[last, d] = nodes.top[leaves + n, d]
        size, overdue = timeline.size[n], 0
        while overdue < size and timeline.until[n, overdue] <= now.time:
            overdue += 1
        at, pending = overdue, overdue > 0
        while at < size or pending:
            end = timeline.until[n, at] if at < size else NEVER
            first, behind = at, at + 1
            if pending and late <= end:
                end, first, behind, pending = late, 0, overdue, False
            else:
                at += 1
            if profile.time[last] != end:
                last = _after(last, end, profile)
            for k in range(first, behind):
                for d in range(dims):
                    profile.free[last, d] += released_by(n, k, d, state.kinds, timeline)


@inlined
def _new_step(time: int, profile: ProfileSteps) -> int:
    """Return a new step that begins at a time, without a successor."""
    new = profile.used[0]
    profile.used[0] += 1
    profile.time[new], profile.next[new] = time, -1
    return int(new)


@inlined
def _after(step: int, time: int, profile: ProfileSteps) -> int:
    """Return a new step after another, with the same free capacity."""
    new = _new_step(time, profile)
    profile.next[new], profile.next[step] = profile.next[step], new
    for d in range(profile.free.shape[1]):
        profile.free[new, d] = profile.free[step, d]
    return new


@step
def earliest(kind: int, length: int, state: SharedState, profile: ProfileSteps) -> int:
    """Return the first time (ns) at which enough nodes can hold one part each for the entire length; NEVER if there is none."""
    kinds, nodes = state.kinds, state.nodes
    time, wanted, line, count = state.now.time, kinds.parts[kind], nodes.line, nodes.rack.size
    leaves, available, latest = nodes.top.shape[0] // 2, profile.available, NEVER
    for n in range(count):
        available[n] = NEVER
        if nodes.open[kinds.eligible[kind], leaves + n]:
            available[n] = available_from(n, kind, length, time, latest, kinds, profile)
        if wanted == 1:
            latest = min(latest, available[n])
    if wanted == 1:
        return int(latest)
    while True:
        available_now = 0
        for n in range(count):
            line[n] = n
            available_now += int(available[n] == time)
        if available_now >= wanted:
            return int(time)
        heap.arrange(line, count, available)
        n = -1
        for k in range(wanted):
            n = heap.pop(line, count - k, available)
        time = available[n]
        if time == NEVER:
            return NEVER
        for n in range(count):
            if available[n] < time:
                available[n] = available_from(n, kind, length, time, NEVER, kinds, profile)


@step
def available_from(n: int, kind: int, length: int, time: int, latest: int, kinds: KindArrays, profile: ProfileSteps) -> int:
    """Return the first time (ns) from `time` to `latest` from which a node can hold a part for the length; NEVER if none."""
    at, begin = profile.first[n], -1
    while at >= 0:
        following = profile.next[at]
        end = profile.time[following] if following >= 0 else NEVER
        if end > time:
            if begin < 0 and profile.time[at] > latest:
                return NEVER
            if not _has(at, kind, kinds, profile):
                begin = -1
            else:
                if begin < 0:
                    begin = max(profile.time[at], time)
                if end - begin >= min(length, HORIZON - begin):
                    return int(begin)
        at = following
    return NEVER


@step
def holds_now(n: int, kind: int, length: int, kinds: KindArrays, profile: ProfileSteps) -> bool:
    """Return whether a node can hold a part from now on for the length."""
    at = profile.first[n]
    end = profile.time[at] + min(length, HORIZON - profile.time[at])
    while at >= 0 and profile.time[at] < end:
        if not _has(at, kind, kinds, profile):
            return False
        at = profile.next[at]
    return True


@inlined
def _has(at: int, kind: int, kinds: KindArrays, profile: ProfileSteps) -> bool:
    for d in range(profile.free.shape[1]):  # noqa: SIM110  # a loop is what compiles
        if profile.free[at, d] < kinds.request[kind, d]:
            return False
    return True


@step
def write_interval_minimum(time: int, length: int, nodes: NodeArrays, ahead: NodeArrays, profile: ProfileSteps) -> None:
    """Write the minimum over an interval to `ahead`, only for the nodes that `earliest` found available for it."""
    top, dims, end = ahead.top, ahead.top.shape[1], time + min(length, HORIZON - time)
    leaves = top.shape[0] // 2
    for n in range(nodes.rack.size):
        for d in range(dims):
            top[leaves + n, d] = -1
        if profile.available[n] == time:
            _least(n, time, end, top[leaves + n], profile)
    rebuild(nodes.rack.size, ahead)


@inlined
def _least(n: int, time: int, end: int, least: IntArray, profile: ProfileSteps) -> None:
    """Write the minimum that a node has free between two times."""
    at = profile.first[n]
    while at >= 0 and profile.time[at] < end:
        following = profile.next[at]
        if following < 0 or profile.time[following] > time:
            for d in range(least.size):
                free = profile.free[at, d]
                if least[d] < 0 or free < least[d]:
                    least[d] = free
        at = following


@step
def occupy(n: int, time: int, length: int, kind: int, kinds: KindArrays, profile: ProfileSteps) -> None:
    """Subtract a part from a node's steps for an interval."""
    end = time + min(length, HORIZON - time)
    at = _begin_at(profile.first[n], time, profile)
    while at >= 0 and profile.time[at] < end:
        following = profile.next[at]
        if following < 0 or profile.time[following] > end:
            _after(at, end, profile)
        for d in range(profile.free.shape[1]):
            profile.free[at, d] -= kinds.request[kind, d]
        at = profile.next[at]


@inlined
def _begin_at(at: int, time: int, profile: ProfileSteps) -> int:
    """Return the step that begins at a time, splitting the current one if necessary."""
    while profile.next[at] >= 0 and profile.time[profile.next[at]] <= time:
        at = profile.next[at]
    return int(at) if profile.time[at] == time else _after(at, time, profile)
