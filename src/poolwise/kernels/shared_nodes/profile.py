"""What each node has free from now on, beside the reservations made so far: a list of steps for each node.

Nodes do not depend on each other: a node could hold a part for some time from the beginning of one of its own steps, or from
now. So the earliest start of a job with k parts is found from the k-th of the nodes, not by trying all instants on all nodes.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling import heap
from poolwise.kernels.shared_nodes.state import CORES, TIME, WORD, KindArrays, NodeArrays, ProfileSteps, TimelineArrays
from poolwise.kernels.shared_nodes.timeline import back
from poolwise.units import HORIZON, NEVER, OVERDUE


@step
def foresee_all(kinds: KindArrays, nodes: NodeArrays, timeline: TimelineArrays, profile: ProfileSteps, now: IntArray) -> None:
    """Fill the profile with the runs at work."""
    leaves, dims, late = nodes.top.shape[0] // 2, nodes.top.shape[1], now[TIME] + OVERDUE
    profile.used[0] = 0
    for n in range(nodes.rack.size):
        last = _new_step(now[TIME], profile)
        profile.first[n] = last
        for d in range(dims):
            profile.free[last, d] = nodes.top[leaves + n, d]
        size, overdue = timeline.size[n], 0
        while overdue < size and timeline.until[n, overdue] <= now[TIME]:
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
                    profile.free[last, d] += back(n, k, d, kinds, timeline)


@inlined
def _new_step(time: int, profile: ProfileSteps) -> int:
    """Return a step that begins at a time; nothing follows."""
    new = profile.used[0]
    profile.used[0] += 1
    profile.time[new], profile.next[new] = time, -1
    return int(new)


@inlined
def _after(step: int, time: int, profile: ProfileSteps) -> int:
    """Return a new step behind another, in which as much is free."""
    new = _new_step(time, profile)
    profile.next[new], profile.next[step] = profile.next[step], new
    for d in range(profile.free.shape[1]):
        profile.free[new, d] = profile.free[step, d]
    return new


@step
def earliest(kind: int, length: int, kinds: KindArrays, nodes: NodeArrays, profile: ProfileSteps, now: IntArray) -> int:
    """First time (ns) at which as many nodes as a job has parts could hold one each for a time; NEVER if there is none."""
    time, wanted, line, count = now[TIME], kinds.parts[kind], nodes.line, nodes.rack.size
    leaves, opens = nodes.top.shape[0] // 2, profile.opens
    for n in range(count):
        opens[n] = NEVER
        if nodes.open[kinds.eligible[kind], leaves + n]:
            opens[n] = _opens(n, kind, length, time, kinds, profile)
    while True:
        open_now = 0
        for n in range(count):
            line[n] = n
            open_now += int(opens[n] == time)
        if open_now >= wanted:
            return int(time)
        heap.arrange(line, count, opens)
        n = -1
        for k in range(wanted):
            n = heap.pop(line, count - k, opens)
        time = opens[n]
        if time == NEVER:
            return NEVER
        for n in range(count):
            if opens[n] < time:
                opens[n] = _opens(n, kind, length, time, kinds, profile)


@inlined
def _opens(n: int, kind: int, length: int, time: int, kinds: KindArrays, profile: ProfileSteps) -> int:
    """First time, not before another, from which on a node could hold a part for a time; NEVER if there is none."""
    at, begin = profile.first[n], -1
    while at >= 0:
        following = profile.next[at]
        end = profile.time[following] if following >= 0 else NEVER
        if end > time:
            if not _has(at, kind, kinds, profile):
                begin = -1
            else:
                if begin < 0:
                    begin = max(profile.time[at], time)
                if end - begin >= min(length, HORIZON - begin):
                    return int(begin)
        at = following
    return NEVER


@inlined
def _has(at: int, kind: int, kinds: KindArrays, profile: ProfileSteps) -> bool:
    for d in range(profile.free.shape[1]):  # noqa: SIM110  # a loop is what compiles
        if profile.free[at, d] < kinds.ask[kind, d]:
            return False
    return True


@step
def look_ahead(time: int, length: int, nodes: NodeArrays, ahead: NodeArrays, profile: ProfileSteps) -> None:
    """Write what is free throughout an interval into `ahead`, of the nodes that `earliest` found open for it alone."""
    top, dims, end = ahead.top, ahead.top.shape[1], time + min(length, HORIZON - time)
    leaves = top.shape[0] // 2
    for cores in range(ahead.having.size):
        ahead.having[cores] = 0
        for word in range(ahead.bits.shape[1]):
            ahead.bits[cores, word] = 0
    for n in range(nodes.rack.size):
        for d in range(dims):
            top[leaves + n, d] = -1
        if profile.opens[n] == time:
            _least(n, time, end, top[leaves + n], profile)
            if ahead.having.size > 0:
                cores = top[leaves + n, CORES]
                ahead.having[cores] += 1
                ahead.bits[cores, n // WORD] |= 1 << (n % WORD)
    for cores in range(ahead.having.size - 2, -1, -1):  # who has more has as many, too
        ahead.having[cores] += ahead.having[cores + 1]
        for word in range(ahead.bits.shape[1]):
            ahead.bits[cores, word] |= ahead.bits[cores + 1, word]
    for t in range(leaves - 1, 0, -1):
        for d in range(dims):
            top[t, d] = max(top[2 * t, d], top[2 * t + 1, d])


@inlined
def _least(n: int, time: int, end: int, least: IntArray, profile: ProfileSteps) -> None:
    """Write the least that a node has free between two times."""
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
    """Take a part off a node from a time on for a while."""
    end = time + min(length, HORIZON - time)
    at = _begin_at(profile.first[n], time, profile)
    while at >= 0 and profile.time[at] < end:
        following = profile.next[at]
        if following < 0 or profile.time[following] > end:
            _after(at, end, profile)
        for d in range(profile.free.shape[1]):
            profile.free[at, d] -= kinds.ask[kind, d]
        at = profile.next[at]


@inlined
def _begin_at(at: int, time: int, profile: ProfileSteps) -> int:
    """Return the step that begins at a time, which is split off where none does."""
    while profile.next[at] >= 0 and profile.time[profile.next[at]] <= time:
        at = profile.next[at]
    return int(at) if profile.time[at] == time else _after(at, time, profile)
