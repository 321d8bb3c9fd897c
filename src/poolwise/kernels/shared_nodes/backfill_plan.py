"""Plan of one backfill pass: the expected start of a job, given the expected ends of runs and the reservations made so far.

Equals `policies.backfill.slurm_plan`, start by start. A reservation covers whole nodes: a job cannot use a node that is
reserved at any time of its interval.
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.intervals import PRECISION, add_times, count_by, last_begun, limit_end, second
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals, SharedSegments
from poolwise.kernels.shared_nodes.nodes import DE_BRUIJN, POWER, next_fit, rebuild
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.state import WORD, SharedState
from poolwise.units import NEVER, OVERDUE, SECOND


@step
def begin_plan(state: SharedState, intervals: SharedIntervals) -> None:
    """Begin a backfill pass without reservations."""
    rules, segments, status, now = intervals.rules, intervals.segments, intervals.status, state.now
    segments.begin[0] = second(now) // rules.resolution * rules.resolution
    segments.end[0] = segments.begin[0] + rules.window
    segments.row[0] = 0
    for n in range(segments.reserved_from.size):
        segments.reserved_from[n] = NEVER
    for word in range(segments.held.shape[1]):
        segments.held[0, word], segments.twice[0, word] = 0, 0
    status.segments, status.planned, status.holds_until, status.version = 1, 0, NEVER, now.version
    sort_releases(state, intervals)
    for k in range(now.running):
        _hold_until(state.runs.expected[state.runs.ending[k]] // SECOND * SECOND, intervals)


@step
def holds(state: SharedState, intervals: SharedIntervals) -> bool:
    """Return whether a new pass would begin with the plan of the last one: time and ranking have not changed it.

    With the same runs, time changes the plan when an expected end has passed; when the interval of a planned job, from now on,
    reaches a further segment; when an expected start comes into the window; when a reservation has passed that rounding ends
    before its start; or when the window ends later within a reservation.
    """
    line, status = intervals.line, intervals.status
    if status.version != state.now.version or state.now.time >= status.holds_until:
        return False
    for k in range(status.planned):  # noqa: SIM110  # a loop is what compiles
        if line.tested[k] != line.planned[k]:
            return False
    return True


@inlined
def _hold_until(time: int, intervals: SharedIntervals) -> None:
    """Let the plan hold only before a time (ns)."""
    intervals.status.holds_until = min(intervals.status.holds_until, time)


@step
def sort_releases(state: SharedState, intervals: SharedIntervals) -> None:
    """Sort the current runs by expected end, ties by job."""
    releases, runs, parts, now = intervals.releases, state.runs, state.parts, state.now
    soon, count = second(now) + OVERDUE, now.running
    for k in range(count):
        run = runs.ending[k]
        releases.run[k] = run
        releases.due[run] = max(runs.expected[run] // SECOND * SECOND, soon)
    heap.sort(releases.run, count, releases.due)
    for n in range(releases.idle_after.size):
        releases.idle_after[n], releases.parts[n] = 0, 0
    for k in range(count):
        run, at = releases.run[k], k
        while at > 0 and releases.end[at - 1] == releases.due[run] and runs.job[releases.run[at - 1]] > runs.job[run]:
            releases.run[at] = releases.run[at - 1]
            at -= 1
        releases.run[at], releases.end[k] = run, releases.due[run]
    for k in range(count):
        run = releases.run[k]
        first = parts.first[run]
        releases.node[k] = parts.node[first] if parts.first[run + 1] == first + 1 else -1
        for part in range(first, parts.first[run + 1]):
            n = parts.node[part]
            releases.idle_after[n], releases.part[n, releases.parts[n]] = k + 1, k
            releases.parts[n] += 1
    intervals.status.runs = count
    intervals.status.sorted += 1
    for s in range(intervals.status.segments):
        intervals.segments.ended[s] = count_by(intervals.segments.begin[s], intervals.releases.end, intervals.status.runs)


@step
def starts_now(job: int, state: SharedState, intervals: SharedIntervals) -> bool:
    """Return whether a job fits now along with all reservations up to the end of its limit."""
    kind, segments, kinds = state.jobs.kind[job], intervals.segments, state.kinds
    if not finds_room(kind, state):
        return False
    end, found = limit_end(second(state.now), state.jobs.length[job]), 0
    n = next_fit(0, kind, -1, kinds, state.nodes)
    while n >= 0:
        found += int(segments.reserved_from[n] > end)
        if found == kinds.parts[kind]:
            return True
        n = next_fit(n + 1, kind, -1, kinds, state.nodes)
    return False


@step
def place_now(job: int, state: SharedState, intervals: SharedIntervals) -> None:
    """Find nodes (`nodes.chosen`) for a job that fits now along with the reservations."""
    kind, nodes, ahead, segments = state.jobs.kind[job], state.nodes, intervals.trial.ahead, intervals.segments
    end, leaves = limit_end(second(state.now), state.jobs.length[job]), nodes.top.shape[0] // 2
    for n in range(segments.reserved_from.size):
        usable = segments.reserved_from[n] > end
        for d in range(nodes.top.shape[1]):
            ahead.top[leaves + n, d] = nodes.top[leaves + n, d] if usable else -1
    rebuild(segments.reserved_from.size, ahead)
    choose(kind, state.rules, state.kinds, ahead)
    for part in range(state.kinds.parts[kind]):
        nodes.chosen[part], nodes.borrow[part] = ahead.chosen[part], 0


@step
def reserve(job: int, state: SharedState, intervals: SharedIntervals) -> None:
    """Find the expected start of a job that does not start now, and reserve its nodes if that is in the window."""
    rules, status, now = intervals.rules, intervals.status, second(state.now)
    intervals.line.planned[status.planned] = job
    status.planned += 1
    start = _expected_start(job, state, intervals)
    if start < 0:
        return
    if start > now + rules.window:
        _hold_until(start - rules.window, intervals)
        return
    begin = start // rules.resolution * rules.resolution
    end = limit_end(start, state.jobs.length[job]) // rules.resolution * rules.resolution
    _hold_until(end, intervals)
    if end >= intervals.segments.end[status.segments - 1]:
        _hold_until((now // rules.resolution + 1) * rules.resolution, intervals)
    _add(begin, end, state.kinds.parts[state.jobs.kind[job]], now, intervals)


@step
def _expected_start(job: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the expected start (ns) of a job that does not start now, -1 if none is known; its nodes are `ahead.chosen`."""
    kind = state.jobs.kind[job]
    begin, limit, parts = second(state.now), state.jobs.length[job], state.kinds.parts[kind]
    intervals.status.row = _row_of(kind, state, intervals)
    while True:
        start = _first_fit(job, begin, limit, state, intervals)
        later = intervals.status.later
        if start >= 0 and (later < 0 or start <= later):
            _place(kind, state, intervals)
            if start == begin or not _conflicts(start, limit, parts, intervals):
                return start
            later = start
        if later < 0:
            return -1
        begin = later


@step
def _first_fit(job: int, begin: int, limit: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the first start (ns), at least `begin`, at which a job fits as runs end; -1 if it never fits.

    Ends are tried in groups, see `BackfillPlan._tested_instants`: a group consists of the ends up to the last of its period;
    if that is on reserved nodes only, up to the next that is not.
    """
    releases, segments, status = intervals.releases, intervals.segments, intervals.status
    kind, runs = state.jobs.kind[job], status.runs
    met = count_by(begin, segments.end, status.segments)
    last_met = max(last_begun(limit_end(begin, limit), segments.begin, status.segments) + 1, met)
    status.later = _first_decrease(met, last_met, intervals)
    if begin == second(state.now) and last_met < status.segments:
        _hold_until(segments.begin[last_met] - limit, intervals)
    _write_held(met, last_met, intervals)
    wanted = _ends_wanted(status.row, state.kinds.parts[kind], intervals)
    if wanted == NEVER:
        return -1
    if begin > second(state.now) and wanted == 0:
        status.ended = 0
        return begin
    period, until, k = PRECISION, -1, 0
    while True:
        k = _next_touching(k, state, intervals)
        if k >= runs:
            return -1
        end = releases.end[k]
        if until < 0:
            until = end + PRECISION - end % PRECISION
        if end > add_times(until, period):
            until += (end - until - 1) // period * period
        k = _next_touching(max(k, count_by(add_times(until, period), releases.end, status.runs) - 1), state, intervals) + 1
        last = k - 1
        if k > runs:
            k, last = runs, _last_touching(state, intervals)
        if wanted <= k:
            status.ended = k
            return int(max(releases.end[last], begin))
        period = add_times(period, period)


@step
def _next_touching(k: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the first run from the k-th one on that has a part on a node that is not reserved; the number of runs if none."""
    while k < intervals.status.runs and not _touches(k, state, intervals):
        k += 1
    return k


@inlined
def _last_touching(state: SharedState, intervals: SharedIntervals) -> int:
    """Return the last run that has a part on a node that is not reserved, given that there is one."""
    k = intervals.status.runs - 1
    while not _touches(k, state, intervals):
        k -= 1
    return int(k)


@inlined
def _touches(k: int, state: SharedState, intervals: SharedIntervals) -> bool:
    """Return whether the k-th run by end has a part on a node that is not reserved."""
    run, parts, held, n = intervals.releases.run[k], state.parts, intervals.trial.held, intervals.releases.node[k]
    if n >= 0:
        return not _is_in(n, held)
    for part in range(parts.first[run], parts.first[run + 1]):  # noqa: SIM110  # a loop is what compiles
        if not _is_in(parts.node[part], held):
            return True
    return False


@step
def _row_of(kind: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the row of `trial.fits_after` for a kind; compute it unless it is up to date."""
    trial, status, nodes, kinds = intervals.trial, intervals.status, state.nodes, state.kinds
    row, leaves = kind % trial.kind.size, nodes.top.shape[0] // 2
    if trial.kind[row] == kind and trial.at[row] == status.sorted:
        return int(row)
    trial.kind[row], trial.at[row] = kind, status.sorted
    for n in range(intervals.releases.parts.size):
        trial.fits_after[row, n] = NEVER
        if nodes.open[kinds.eligible[kind], leaves + n]:
            trial.fits_after[row, n] = _ends_until_fit(n, kind, state, intervals)
    return int(row)


@inlined
def _ends_until_fit(n: int, kind: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the number of ends after which a node can hold a part, NEVER if it never can."""
    releases, request, leaf = intervals.releases, state.kinds.request, state.nodes.top.shape[0] // 2 + n
    needed = 0  # parts that have to end for all amounts
    for d in range(request.shape[1]):
        free, k = state.nodes.top[leaf, d], 0
        while free < request[kind, d]:
            if k == releases.parts[n]:
                return NEVER
            free += request[_kind_at(n, k, state, intervals), d]
            k += 1
        needed = max(needed, k)
    return int(releases.part[n, needed - 1] + 1 if needed > 0 else 0)


@inlined
def _kind_at(n: int, k: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the kind of the k-th part by end on a node."""
    releases = intervals.releases
    return int(state.jobs.kind[state.runs.job[releases.run[releases.part[n, k]]]])


@step
def _ends_wanted(row: int, parts: int, intervals: SharedIntervals) -> int:
    """Return the number of ends after which enough nodes that are not reserved can hold a part, NEVER if they never can."""
    trial, line, count = intervals.trial, intervals.trial.ahead.line, 0
    least = NEVER
    for word in range(trial.held.size):
        left = trial.usable[word] & ~trial.held[word]
        while left != 0:
            lowest = left & -left
            n = word * WORD + POWER[(lowest * DE_BRUIJN >> 27) & 31]
            left ^= lowest
            after = trial.fits_after[row, n]
            least = min(least, after)
            if parts > 1 and after < NEVER:
                trial.ahead.key[n], line[count] = after, n
                count += 1
    if parts == 1:
        return int(least)
    if count < parts:
        return NEVER
    heap.arrange(line, count, trial.ahead.key)
    n = -1
    for k in range(parts):
        n = heap.pop(line, count - k, trial.ahead.key)
    return int(trial.ahead.key[n])


@step
def _first_decrease(first: int, last: int, intervals: SharedIntervals) -> int:
    """Return when (ns) fewer reservations hold a node than in the segments `first` to before `last`; -1 for never."""
    segments, trial = intervals.segments, intervals.trial
    _clear(intervals)
    for s in range(first, intervals.status.segments - 1):
        if s < last:
            _include(s, intervals)
        row = segments.row[s + 1]
        for word in range(trial.held.size):
            less = trial.held[word] & ~segments.held[row, word] | trial.twice[word] & ~segments.twice[row, word]
            if less != 0:
                return int(segments.end[s])
    return -1


@step
def _write_held(first: int, last: int, intervals: SharedIntervals) -> None:
    """Write the nodes that are reserved in any of the segments `first` to before `last` to `trial.held`."""
    _clear(intervals)
    for s in range(first, last):
        _include(s, intervals)


@inlined
def _clear(intervals: SharedIntervals) -> None:
    """Begin a search for the nodes that are reserved."""
    for word in range(intervals.trial.held.size):
        intervals.trial.held[word], intervals.trial.twice[word] = 0, 0


@inlined
def _include(s: int, intervals: SharedIntervals) -> None:
    """Include the nodes that are reserved in a segment."""
    trial, segments = intervals.trial, intervals.segments
    row = segments.row[s]
    for word in range(trial.held.size):
        trial.held[word] |= segments.held[row, word]
        trial.twice[word] |= segments.twice[row, word]


@inlined
def _is_in(n: int, words: IntArray) -> bool:
    """Return whether a set of nodes contains a node."""
    return bool(words[n // WORD] >> (n % WORD) & 1)


@step
def _place(kind: int, state: SharedState, intervals: SharedIntervals) -> None:
    """Choose nodes (`ahead.chosen`) among those that are not reserved and can hold a part by the start found last."""
    trial, releases, ahead, nodes = intervals.trial, intervals.releases, intervals.trial.ahead, state.nodes
    row, ended = intervals.status.row, intervals.status.ended
    leaves, dims = ahead.top.shape[0] // 2, ahead.top.shape[1]
    for n in range(releases.parts.size):
        usable = trial.fits_after[row, n] <= ended and not _is_in(n, trial.held)
        for d in range(dims):
            ahead.top[leaves + n, d] = nodes.top[leaves + n, d] if usable else -1
        k = 0
        while usable and k < releases.parts[n] and releases.part[n, k] < ended:
            for d in range(dims):
                ahead.top[leaves + n, d] += state.kinds.request[_kind_at(n, k, state, intervals), d]
            k += 1
    rebuild(releases.parts.size, ahead)
    choose(kind, state.rules, state.kinds, ahead)


@step
def _conflicts(start: int, limit: int, parts: int, intervals: SharedIntervals) -> bool:
    """Return whether a start (ns) would use nodes that are not idle, or reserved for other jobs, in its interval."""
    rules, releases, segments, chosen = intervals.rules, intervals.releases, intervals.segments, intervals.trial.ahead.chosen
    begin = start // rules.resolution * rules.resolution
    end = limit_end(start, limit) // rules.resolution * rules.resolution
    ended = count_by(start, releases.end, intervals.status.runs)
    for s in range(intervals.status.segments):
        if segments.begin[s] >= end:
            break
        if segments.end[s] > begin:
            k = max(ended, segments.ended[s])
            for part in range(parts):
                n = chosen[part]
                if releases.idle_after[n] > k or _is_in(n, segments.held[segments.row[s]]):
                    return True
    return False


@step
def _add(begin: int, end: int, parts: int, now: int, intervals: SharedIntervals) -> None:
    """Add a reservation of the chosen nodes to the segments in its interval, cut at its ends.

    An interval within a segment that is rounded to a single instant becomes a segment without length.
    """
    status, segments, chosen = intervals.status, intervals.segments, intervals.trial.ahead.chosen
    at = _cut_at(begin, intervals)
    if begin < end:
        _cut_at(end, intervals)
    elif at >= 0:
        _insert(at, segments, status.segments)
        status.segments += 1
        segments.end[at] = begin
    s = count_by(begin - 1, segments.end, status.segments)
    while s < status.segments and segments.end[s] <= end:
        if segments.begin[s] >= begin:
            for part in range(parts):
                n, row = chosen[part], segments.row[s]
                bit = 1 << (n % WORD)
                segments.twice[row, n // WORD] |= segments.held[row, n // WORD] & bit
                segments.held[row, n // WORD] |= bit
                if segments.end[s] > now:
                    segments.reserved_from[n] = min(segments.reserved_from[n], segments.begin[s])
        s += 1


@step
def _cut_at(time: int, intervals: SharedIntervals) -> int:
    """Cut the segment that contains a time (ns) other than its ends; return the segment that begins there, -1 if none does."""
    segments = intervals.segments
    s = last_begun(time, segments.begin, intervals.status.segments)
    if not segments.begin[s] < time < segments.end[s]:
        return -1
    _insert(s, segments, intervals.status.segments)
    intervals.status.segments += 1
    segments.end[s], segments.begin[s + 1] = time, time
    segments.ended[s + 1] = count_by(time, intervals.releases.end, intervals.status.runs)
    return s + 1


@step
def _insert(at: int, segments: SharedSegments, count: int) -> None:
    """Insert a copy of one of `count` segments behind it."""
    for s in range(count, at, -1):
        segments.begin[s], segments.end[s], segments.ended[s] = (
            segments.begin[s - 1],
            segments.end[s - 1],
            segments.ended[s - 1],
        )
        segments.row[s] = segments.row[s - 1]
    segments.row[at + 1] = count
    for word in range(segments.held.shape[1]):
        segments.held[count, word] = segments.held[segments.row[at], word]
        segments.twice[count, word] = segments.twice[segments.row[at], word]
