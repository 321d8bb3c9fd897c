"""Plan of one backfill pass: the expected start of a job, given the expected ends of runs and the reservations made so far.

Equals `policies.backfill.slurm_plan`, start by start. On racks, it counts nodes and pool memory: a job fits at a time if enough
of both is free, net of the reservations, throughout its interval.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.intervals import PRECISION, add_times, count_by, last_begun, limit_end, second
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.interval_state import IntervalArrays, ReleaseArrays, SegmentArrays
from poolwise.kernels.list_scheduling.racks import fits, place, total
from poolwise.kernels.list_scheduling.runs import release
from poolwise.kernels.list_scheduling.state import RackState
from poolwise.quantities import NEVER, OVERDUE, SECOND


@step
def begin_plan(state: RackState, intervals: IntervalArrays) -> None:
    """Begin a backfill pass without reservations."""
    rules, segments = intervals.rules, intervals.segments
    segments.begin[0] = second(state.now) // rules.resolution * rules.resolution
    segments.end[0] = segments.begin[0] + rules.window
    for r in range(state.racks.free.size):
        segments.nodes[0, r], segments.memory[0, r] = 0, 0
    segments.most[0] = total(intervals.releases.nodes)
    status, now = intervals.status, state.now
    status.segments, status.planned, status.holds_until = 1, 0, NEVER
    sort_releases(state, intervals)
    if now.running > 0:
        status.holds_until = state.runs.expected[state.due.run[now.running - 1]] // SECOND * SECOND


@step
def holds(state: RackState, intervals: IntervalArrays) -> bool:
    """Return whether a new pass would begin with the plan of the last one: time and ranking have not changed it.

    If the runs stay the same, time changes the plan in five cases: an expected end has passed; the interval of a planned job,
    counted from now, reaches another segment; an expected start has entered the window; a reservation whose rounded end
    precedes its start has passed; or the window now ends later within a reservation.
    """
    rank, status = intervals.rank, intervals.status
    if state.now.time >= status.holds_until:
        return False
    for k in range(status.planned):  # noqa: SIM110  # a loop is what compiles
        if rank.job[k] != rank.planned[k]:
            return False
    return True


@inlined
def _hold_until(time: int, intervals: IntervalArrays) -> None:
    """Let the plan hold only before a time (ns)."""
    intervals.status.holds_until = min(intervals.status.holds_until, time)


@step
def sort_releases(state: RackState, intervals: IntervalArrays) -> None:
    """Compute the capacity free after each expected end, and the capacity that the reservations leave free from now on."""
    racks, releases, now = state.racks, intervals.releases, state.now
    soon = second(now) + OVERDUE
    for r in range(racks.free.size):
        releases.free[0, r], releases.pool[0, r] = racks.free[r], racks.pool[r]
    for k in range(now.running):
        run = state.due.run[now.running - 1 - k]
        _insert_release(k, run, max(state.runs.expected[run] // SECOND * SECOND, soon), state.runs.job, releases)
    for k in range(now.running):
        for r in range(racks.free.size):
            releases.free[k + 1, r], releases.pool[k + 1, r] = releases.free[k, r], releases.pool[k, r]
        release(releases.run[k], 1, releases.free[k + 1], releases.pool[k + 1], state)
    intervals.status.runs = now.running
    for s in range(intervals.status.segments):
        intervals.segments.ended[s] = count_by(intervals.segments.begin[s], intervals.releases.end, intervals.status.runs)
    intervals.status.known = 0


@inlined
def _insert_release(at: int, run: int, end: int, job: IntArray, releases: ReleaseArrays) -> None:
    """Insert a run into the first `at` runs, sorted by expected end (ns), then by job; runs arrive nearly sorted."""
    while at > 0 and (releases.end[at - 1] > end or (releases.end[at - 1] == end and job[releases.run[at - 1]] > job[run])):
        releases.end[at], releases.run[at] = releases.end[at - 1], releases.run[at - 1]
        at -= 1
    releases.end[at], releases.run[at] = end, run


@step
def _find_least(last: int, now: int, intervals: IntervalArrays) -> None:
    """Compute the least capacity free from now (ns) to each segment up to `last`, unless it is known already."""
    releases, segments, status = intervals.releases, intervals.segments, intervals.status
    for s in range(status.known, last + 1):
        nodes_left, counts = 0, segments.end[s] > now
        for r in range(releases.nodes.size):
            nodes, memory = releases.free[0, r], releases.pool[0, r]
            if s > 0:
                nodes, memory = segments.least_nodes[s - 1, r], segments.least_memory[s - 1, r]
            if counts:
                nodes = min(nodes, releases.free[segments.ended[s], r] - segments.nodes[s, r])
                memory = min(memory, releases.pool[segments.ended[s], r] - segments.memory[s, r])
            segments.least_nodes[s, r], segments.least_memory[s, r] = max(nodes, 0), max(memory, 0)
            nodes_left += max(nodes, 0)
        segments.total[s] = nodes_left
    status.known = max(status.known, last + 1)


@step
def starts_now(job: int, state: RackState, intervals: IntervalArrays) -> bool:
    """Return whether a job fits from now to the end of its time limit, in addition to all reservations."""
    jobs, segments = state.jobs, intervals.segments
    n, now = jobs.nodes[job], second(state.now)
    s = last_begun(limit_end(now, jobs.expected_work[job]), segments.begin, intervals.status.segments)
    _find_least(s, now, intervals)
    return bool(
        n <= segments.total[s]
        and fits(job, n, jobs.remote[job], state.rules.anywhere, None, segments.least_nodes[s], segments.least_memory[s])
    )


@step
def place_now(job: int, state: RackState, intervals: IntervalArrays) -> None:
    """Find nodes and MiB (`racks.take`, `racks.borrow`) for a job that fits now in addition to the reservations."""
    jobs, racks, segments = state.jobs, state.racks, intervals.segments
    end = limit_end(second(state.now), jobs.expected_work[job])
    s = last_begun(end, segments.begin, intervals.status.segments)
    place(
        job,
        jobs,
        state.rules.anywhere,
        segments.least_nodes[s],
        segments.least_memory[s],
        racks.take,
        racks.borrow,
    )


@step
def reserve(job: int, state: RackState, intervals: IntervalArrays) -> None:
    """Find the expected start of a job that does not start now, and reserve its placement if that is in the window."""
    rules, rank, status, now = intervals.rules, intervals.rank, intervals.status, second(state.now)
    rank.planned[status.planned] = job
    status.planned += 1
    start = _expected_start(job, state, intervals)
    if start < 0:
        return
    if start > now + rules.window:
        _hold_until(start - rules.window, intervals)
        return
    begin = start // rules.resolution * rules.resolution
    end = limit_end(start, state.jobs.expected_work[job]) // rules.resolution * rules.resolution
    _hold_until(end, intervals)
    if end >= intervals.segments.end[status.segments - 1]:
        _hold_until((now // rules.resolution + 1) * rules.resolution, intervals)
    _cut(begin, end, state.racks.take, state.racks.borrow, intervals)


@step
def _expected_start(job: int, state: RackState, intervals: IntervalArrays) -> int:
    """Return the expected start (ns) of a job that does not start now, -1 if none is known; its placement is in `racks`."""
    begin, limit = second(state.now), state.jobs.expected_work[job]
    while True:
        start = _first_fit(job, begin, limit, state, intervals)
        later = intervals.status.later
        if start >= 0 and (later < 0 or start <= later):
            if start == begin or not _conflicts(start, limit, state.racks.take, state.racks.borrow, intervals):
                return start
            later = start
        if later < 0:
            return -1
        begin = later


@step
def _first_fit(job: int, begin: int, limit: int, state: RackState, intervals: IntervalArrays) -> int:
    """Return the first start (ns), at least `begin`, at which a job fits as runs end; -1 if it never fits."""
    releases, segments, status, groups_ends = (
        intervals.releases,
        intervals.segments,
        intervals.status,
        intervals.rules.groups_ends,
    )
    met = count_by(begin, segments.end, status.segments)
    last_met = max(last_begun(limit_end(begin, limit), segments.begin, status.segments) + 1, met)
    status.later = _first_decrease(met, last_met, intervals)
    if begin == second(state.now) and last_met < status.segments:
        _hold_until(segments.begin[last_met] - limit, intervals)
    for s in range(met, last_met):
        if segments.most[s] < state.jobs.nodes[job]:
            return -1
    _find_tails(met, last_met, intervals)
    if begin > second(state.now) and _fits_after(0, met, last_met, job, state, intervals):
        return begin
    all_usable = _all_usable(releases)
    period, until, k = PRECISION, -1, 0
    while k < status.runs:
        last, first = -1, True
        while k < status.runs:
            end, touches = releases.end[k], all_usable or _touches(releases.run[k], state, releases)
            k += 1
            if not touches:
                continue
            if first:
                if until < 0:
                    until = end + PRECISION - end % PRECISION
                if end > add_times(until, period):
                    until += (end - until - 1) // period * period
            last, first = end, False
            if not groups_ends or (k < status.runs and releases.end[k] > add_times(until, period)):
                break
        if last < 0:
            return -1
        if _fits_after(k, met, last_met, job, state, intervals):
            return max(last, begin)
        period = add_times(period, period)
    return -1


@step
def _first_decrease(first: int, last: int, intervals: IntervalArrays) -> int:
    """Return when (ns) reserved amounts first fall below their maximum over segments `first` to `last` - 1; -1 for never."""
    releases, segments = intervals.releases, intervals.segments
    _clear_most(releases)
    for s in range(first, intervals.status.segments - 1):
        if s < last:
            _raise_most(s, releases, segments)
        if _decreases(s + 1, releases, segments):
            return int(segments.end[s])
    return -1


@inlined
def _clear_most(releases: ReleaseArrays) -> None:
    """Begin a search for the largest reserved amounts."""
    for r in range(releases.nodes.size):
        releases.most_nodes[r], releases.most_memory[r] = 0, 0


@inlined
def _raise_most(s: int, releases: ReleaseArrays, segments: SegmentArrays) -> None:
    """Include a segment in the search for the largest reserved amounts."""
    for r in range(releases.nodes.size):
        releases.most_nodes[r] = max(releases.most_nodes[r], segments.nodes[s, r])
        releases.most_memory[r] = max(releases.most_memory[r], segments.memory[s, r])


@step
def _find_tails(first: int, last: int, intervals: IntervalArrays) -> None:
    """Compute the largest amounts reserved in segments `first` to `last` - 1, and the least free from each to the last."""
    releases, segments = intervals.releases, intervals.segments
    _clear_most(releases)
    for s in range(last - 1, first - 1, -1):
        _raise_most(s, releases, segments)
        for r in range(releases.nodes.size):
            nodes = releases.free[segments.ended[s], r] - segments.nodes[s, r]
            memory = releases.pool[segments.ended[s], r] - segments.memory[s, r]
            if s + 1 < last:
                nodes, memory = min(nodes, segments.tail_nodes[s + 1, r]), min(memory, segments.tail_memory[s + 1, r])
            segments.tail_nodes[s, r], segments.tail_memory[s, r] = nodes, memory


@inlined
def _decreases(s: int, releases: ReleaseArrays, segments: SegmentArrays) -> bool:
    """Return whether a segment reserves less of some rack or pool than the largest amount so far."""
    for r in range(releases.nodes.size):
        if segments.nodes[s, r] < releases.most_nodes[r] or segments.memory[s, r] < releases.most_memory[r]:
            return True
    return False


@step
def _all_usable(releases: ReleaseArrays) -> bool:
    """Return whether no rack or pool is entirely reserved at any time of the interval."""
    for r in range(releases.nodes.size):
        if releases.nodes[r] <= releases.most_nodes[r] or 0 < releases.memory[r] <= releases.most_memory[r]:
            return False
    return True


@step
def _touches(run: int, state: RackState, releases: ReleaseArrays) -> bool:
    """Return whether a run holds a part of a rack or pool that is not entirely reserved."""
    racks, runs = state.racks, state.runs
    for row in range(runs.offset[run], runs.offset[run + 1]):
        r = racks.of_owner[runs.owner[row]]
        if runs.resource[row] == racks.node_column:
            if releases.nodes[r] > releases.most_nodes[r]:
                return True
        elif releases.memory[r] > releases.most_memory[r]:
            return True
    return False


@step
def _fits_after(ended: int, met: int, last: int, job: int, state: RackState, intervals: IntervalArrays) -> bool:
    """Return whether a job fits after `ended` ends, in addition to segments `met` to `last` - 1; if so, place it in `racks`.

    Free capacity grows with each end. So only the largest amounts reserved up to that end matter, and the least capacity free
    after it.
    """
    jobs, racks, releases, segments = state.jobs, state.racks, intervals.releases, intervals.segments
    anywhere = state.rules.anywhere
    if total(releases.free[ended]) < jobs.nodes[job]:
        return False
    nodes, memory = releases.room, releases.pool_room
    for r in range(nodes.size):
        nodes[r], memory[r] = 0, 0
    s = met
    while s < last and segments.ended[s] < ended:
        for r in range(nodes.size):
            nodes[r], memory[r] = max(nodes[r], segments.nodes[s, r]), max(memory[r], segments.memory[s, r])
        s += 1
    for r in range(nodes.size):
        nodes[r], memory[r] = releases.free[ended, r] - nodes[r], releases.pool[ended, r] - memory[r]
        if s < last:
            nodes[r] = min(nodes[r], segments.tail_nodes[s, r])
            memory[r] = min(memory[r], segments.tail_memory[s, r])
        nodes[r], memory[r] = max(nodes[r], 0), max(memory[r], 0)
    return bool(
        fits(job, jobs.nodes[job], jobs.remote[job], anywhere, None, nodes, memory)
        and place(job, jobs, anywhere, nodes, memory, racks.take, racks.borrow)
    )


@step
def _conflicts(start: int, limit: int, take: IntArray, borrow: IntArray, intervals: IntervalArrays) -> bool:
    """Return whether a start (ns) would use amounts that are reserved for other jobs in its interval."""
    rules, releases, segments = intervals.rules, intervals.releases, intervals.segments
    begin = start // rules.resolution * rules.resolution
    end = limit_end(start, limit) // rules.resolution * rules.resolution
    ended = count_by(start, releases.end, intervals.status.runs)
    for s in range(intervals.status.segments):
        if segments.begin[s] >= end:
            break
        if segments.end[s] > begin:
            k = max(ended, segments.ended[s])
            for r in range(take.size):
                if take[r] > max(releases.free[k, r] - segments.nodes[s, r], 0):
                    return True
                if borrow[r] > max(releases.pool[k, r] - segments.memory[s, r], 0):
                    return True
    return False


@step
def _cut(begin: int, end: int, take: IntArray, borrow: IntArray, intervals: IntervalArrays) -> None:
    """Add a reservation to the segments in its interval, after cutting segments at both of its ends.

    If rounding reduces an interval within a segment to a single instant, it becomes a segment of length zero.
    """
    status, segments, capacity = intervals.status, intervals.segments, intervals.releases.nodes
    at = _cut_at(begin, intervals)
    if begin < end:
        _cut_at(end, intervals)
    elif at >= 0:
        _insert(at, intervals)
        segments.end[at] = begin
    s = count_by(begin - 1, segments.end, status.segments)
    status.known = min(status.known, s)
    while s < status.segments and segments.end[s] <= end:
        if segments.begin[s] >= begin:
            segments.most[s] = 0
            for r in range(take.size):
                segments.nodes[s, r] += take[r]
                segments.memory[s, r] += borrow[r]
                segments.most[s] += max(capacity[r] - segments.nodes[s, r], 0)
        s += 1


@step
def _cut_at(time: int, intervals: IntervalArrays) -> int:
    """Cut the segment that contains a time (ns) other than its ends; return the segment that begins there, -1 if none does."""
    segments = intervals.segments
    s = last_begun(time, segments.begin, intervals.status.segments)
    if not segments.begin[s] < time < segments.end[s]:
        return -1
    _insert(s, intervals)
    segments.end[s], segments.begin[s + 1] = time, time
    segments.ended[s + 1] = count_by(time, intervals.releases.end, intervals.status.runs)
    return s + 1


@step
def _insert(at: int, intervals: IntervalArrays) -> None:
    """Insert a copy of a segment behind it."""
    segments, count = intervals.segments, intervals.status.segments
    for s in range(count, at, -1):
        segments.begin[s], segments.end[s] = segments.begin[s - 1], segments.end[s - 1]
        segments.ended[s], segments.most[s] = segments.ended[s - 1], segments.most[s - 1]
        for r in range(segments.nodes.shape[1]):
            segments.nodes[s, r], segments.memory[s, r] = segments.nodes[s - 1, r], segments.memory[s - 1, r]
    intervals.status.segments = count + 1
