"""Availability profile: the steps of each node since the pass that built it, net of the reservations made so far.

The steps of a node are in consecutive rows, ordered by time, with a row behind them whose time is NEVER.

Nodes are independent: a node can hold a part for some time from the start of one of its own steps, or from now. So the earliest
start of a job with k parts follows from the k-th available node, without trying all instants on all nodes.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.nodes import rebuild
from poolwise.kernels.shared_nodes.state import FIRST_FIT, KindArrays, NodeArrays, ProfileSteps, SharedState
from poolwise.kernels.shared_nodes.timeline import released_by
from poolwise.quantities import HORIZON, NEVER, OVERDUE

SPARE = 8
"""Spare rows of a node, in addition to its runs, when the profile is built."""


@step
def build_profile(state: SharedState, profile: ProfileSteps) -> None:
    """Fill the profile from the current runs."""
    nodes, timeline, now = state.nodes, state.timeline, state.now
    leaves, dims, late = nodes.top.shape[0] // 2, nodes.top.shape[1], now.time + OVERDUE
    profile.used[0] = 0
    for n in range(nodes.rack.size):
        size, overdue = timeline.size[n], 0
        last = _reserve(n, size + SPARE, profile)
        profile.time[last] = now.time
        for d in range(dims):
            profile.free[last, d] = nodes.top[leaves + n, d]
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
                last += 1
                profile.time[last] = end
                for d in range(dims):
                    profile.free[last, d] = profile.free[last - 1, d]
            for k in range(first, behind):
                for d in range(dims):
                    profile.free[last, d] += released_by(n, k, d, state.kinds, timeline)
        profile.time[last + 1] = NEVER
        profile.size[n] = last + 1 - profile.first[n]


@inlined
def _reserve(n: int, room: int, profile: ProfileSteps) -> int:
    """Give a node rows for some steps, after the rows of all other nodes; return the first row."""
    first = profile.used[0]
    profile.used[0] += room
    profile.first[n], profile.room[n] = first, room
    return int(first)


@inlined
def _after(n: int, at: int, time: int, profile: ProfileSteps) -> int:
    """Insert a step of a node after another, with the same free capacity; return its row.

    A node without a spare row moves to twice as many rows after the rows of all other nodes.
    """
    old, size = profile.first[n], profile.size[n]
    first = old
    if size + 2 > profile.room[n]:
        first = _reserve(n, 2 * profile.room[n], profile)
        for k in range(at + 1 - old):
            profile.time[first + k] = profile.time[old + k]
            for d in range(profile.free.shape[1]):
                profile.free[first + k, d] = profile.free[old + k, d]
    new, k = first + at + 1 - old, size
    while k > at - old:
        profile.time[first + k + 1] = profile.time[old + k]
        for d in range(profile.free.shape[1]):
            profile.free[first + k + 1, d] = profile.free[old + k, d]
        k -= 1
    profile.time[new] = time
    for d in range(profile.free.shape[1]):
        profile.free[new, d] = profile.free[new - 1, d]
    profile.size[n] = size + 1
    return int(new)


@step
def earliest(kind: int, length: int, since: int, until: int, state: SharedState, profile: ProfileSteps) -> int:
    """Return the first time (ns) from `since` to `until` at which enough nodes can hold a part for the length, or NEVER."""
    kinds, nodes = state.kinds, state.nodes
    time, wanted, line, count = since, kinds.parts[kind], nodes.line, 0
    leaves, available, latest = nodes.top.shape[0] // 2, profile.available, until
    for n in range(nodes.rack.size):
        available[n] = NEVER
        if not nodes.open[kinds.eligible[kind], leaves + n]:
            continue
        available[n] = available_from(n, kind, length, time, latest, kinds, profile)
        if available[n] == NEVER:
            continue
        line[count] = n
        count += 1
        if wanted == 1:
            latest = available[n]
            if latest == time and state.rules.placement == FIRST_FIT:
                break  # the later nodes would not be chosen
    if wanted == 1:
        return int(latest)
    while count >= wanted:
        heap.select(line, count, wanted, available)
        time, available_now = since, 0
        for k in range(wanted):
            time = max(time, available[line[k]])
        k = 0
        while k < count:
            n = line[k]
            if available[n] < time:
                available[n] = available_from(n, kind, length, time, until, kinds, profile)
                if available[n] == NEVER:
                    count -= 1
                    line[k] = line[count]
                    continue
            available_now += int(available[n] == time)
            k += 1
        if available_now >= wanted:
            return int(time)
    return NEVER


@step
def available_from(n: int, kind: int, length: int, time: int, latest: int, kinds: KindArrays, profile: ProfileSteps) -> int:
    """Return the first time (ns) from `time` to `latest` from which a node can hold a part for the length; NEVER if none."""
    at, begin = profile.first[n], -1
    behind = at + profile.size[n]
    while profile.time[at + 1] <= time < NEVER:
        at += 1
    while at < behind:
        if begin < 0 and profile.time[at] > latest:
            return NEVER
        if _has(at, kind, kinds, profile):
            if begin < 0:
                begin = max(profile.time[at], time)
            if profile.time[at + 1] - begin >= min(length, HORIZON - begin):
                return int(begin)
        else:
            begin = -1
        at += 1
    return NEVER


@step
def holds_throughout(n: int, time: int, kind: int, length: int, kinds: KindArrays, profile: ProfileSteps) -> bool:
    """Return whether a node can hold a part for the entire length from a time (ns) on."""
    at = _current(n, time, profile)
    end = time + min(length, HORIZON - time)
    while profile.time[at] < end:
        if not _has(at, kind, kinds, profile):
            return False
        at += 1
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
    at = _current(n, time, profile)
    for d in range(least.size):
        least[d] = profile.free[at, d]
    while profile.time[at + 1] < end:
        at += 1
        for d in range(least.size):
            least[d] = min(least[d], profile.free[at, d])


@step
def write_most(n: int, since: int, until: int, most: IntArray, profile: ProfileSteps) -> None:
    """Write the most that a node has free at any time between two times, (n_dim,)."""
    at = _current(n, since, profile)
    for d in range(most.size):
        most[d] = profile.free[at, d]
    while profile.time[at + 1] < until:
        at += 1
        for d in range(most.size):
            most[d] = max(most[d], profile.free[at, d])


@step
def occupy(n: int, time: int, length: int, kind: int, kinds: KindArrays, profile: ProfileSteps) -> None:
    """Subtract a part from a node's steps for an interval, which begins before NEVER."""
    if time == NEVER:
        return
    profile.kept.is_exact[n] = False
    end = time + min(length, HORIZON - time)
    at = _current(n, time, profile)
    if profile.time[at] < time:
        at = _after(n, at, time, profile)
    while profile.time[at] < end:
        if profile.time[at + 1] > end:
            at = _after(n, at, end, profile) - 1
        for d in range(profile.free.shape[1]):
            profile.free[at, d] -= kinds.request[kind, d]
        at += 1


@inlined
def _current(n: int, time: int, profile: ProfileSteps) -> int:
    """Return the step of a node that contains a time."""
    at = profile.first[n]
    while profile.time[at + 1] <= time < NEVER:
        at += 1
    return int(at)
