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
from poolwise.kernels.shared_nodes.state import FIRST_FIT, WORD, SharedState
from poolwise.quantities import NEVER, OVERDUE, SECOND


@step
def begin_plan(state: SharedState, intervals: SharedIntervals) -> None:
    """Begin a backfill pass without reservations."""
    rules, segments, status, now = intervals.rules, intervals.segments, intervals.status, state.now
    segments.begin[0] = second(now) // rules.resolution * rules.resolution
    segments.end[0] = segments.begin[0] + rules.window
    segments.row[0] = 0
    for n in range(segments.reserved_from.size):
        segments.reserved_from[n], segments.first[n] = NEVER, -1
    for word in range(segments.held.shape[1]):
        segments.held[0, word], segments.twice[0, word] = 0, 0
    status.segments, status.reservations, status.planned, status.holds_until, status.version = 1, 0, 0, NEVER, now.version
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
    for k in range(status.planned):
        if k == status.tested + status.left or next_tested(k, state, intervals) != line.planned[k]:
            return False
    return True


@inlined
def next_tested(at: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the job at a position by priority, given that those before it have been returned."""
    line, status = intervals.line, intervals.status
    if at == status.tested:
        line.tested[at] = heap.pop(line.heap, status.left, state.order.key)
        status.tested += 1
        status.left -= 1
    return int(line.tested[at])


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
    releases.sorts[0] += 1
    for k in range(count):
        run = releases.run[k]
        first = parts.first[run]
        releases.node[k] = parts.node[first] if parts.first[run + 1] == first + 1 else -1
        for part in range(first, parts.first[run + 1]):
            n = parts.node[part]
            releases.idle_after[n], releases.part[n, releases.parts[n]] = k + 1, k
            _note_run(n, run, intervals)
            releases.parts[n] += 1
    for n in range(releases.parts.size):
        if releases.parts[n] < releases.run_on.shape[1]:
            _note_run(n, -1, intervals)
    intervals.status.runs = count
    for s in range(intervals.status.segments):
        intervals.segments.ended[s] = count_by(intervals.segments.begin[s], intervals.releases.end, intervals.status.runs)


@inlined
def _note_run(n: int, run: int, intervals: SharedIntervals) -> None:
    """Write the next run by expected end on a node, -1 behind the last; note whether it is another one than before."""
    releases = intervals.releases
    if releases.run_on[n, releases.parts[n]] != run:
        releases.run_on[n, releases.parts[n]] = run
        releases.changed_at[n] = releases.sorts[0]


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
    """Return the expected start (ns) of a job that does not start now, -1 if none is known; its nodes are `ahead.chosen`.

    A job starts before the instant from which it is tried next. So it is only tried from an instant if enough nodes can hold a
    part by the next one, and are not reserved from before the next one on.
    """
    kind, segments, status = state.jobs.kind[job], intervals.segments, intervals.status
    now, limit, parts = second(state.now), state.jobs.length[job], state.kinds.parts[kind]
    begin, bound, met = now, -1, 0
    _write_ends(kind, state, intervals)
    behind = last_begun(limit_end(now, limit), segments.begin, status.segments) + 1
    if behind < status.segments:
        _hold_until(segments.begin[behind] - limit, intervals)
    while True:
        while met < status.segments and segments.end[met] <= begin:
            met += 1
        later = _first_decrease(met, limit_end(begin, limit), intervals)
        if bound < 0:
            bound = _earliest_bound(begin, limit, parts, begin == now, intervals)
        if later < 0 or later >= bound:
            bound = -1
            _write_held(met, limit_end(begin, limit), intervals)
            start = _first_fit(begin, later, parts, state, intervals)
            if start >= 0 and (later < 0 or start <= later):
                if state.rules.placement == FIRST_FIT:
                    _place_first(parts, intervals)
                else:
                    _place(kind, state, intervals)
                if start == begin or not _conflicts(start, limit, parts, intervals):
                    return start
                later = start
        if later < 0:
            return -1
        begin = later


@step
def _earliest_bound(begin: int, limit: int, parts: int, is_first: bool, intervals: SharedIntervals) -> int:
    """Return the least next instant (ns) of an instant from `begin` on from which a job can start, NEVER if it never can.

    It is at least the start, and after the instant from which enough nodes are not reserved.
    `trial.free_from` is kept from call to call for the same job, except that `is_first` begins a job.
    """
    trial, last, latest = intervals.trial, parts - 1, NEVER
    if is_first:
        for k in range(intervals.status.able):
            trial.free_from[k] = -1
    _begin_least(parts, trial.least)
    for k in range(intervals.status.able):
        if trial.ready[k] < latest:
            if trial.free_from[k] < begin:
                trial.free_from[k] = _free_from(trial.able[k], begin, limit, intervals)
            _add_least(max(trial.ready[k], trial.free_from[k] + 1), parts, trial.least)
            latest = trial.least[last]
    return int(latest)


@inlined
def _begin_least(count: int, least: IntArray) -> None:
    """Begin a search for the `count` least of some numbers."""
    for k in range(count):
        least[k] = NEVER


@inlined
def _add_least(number: int, count: int, least: IntArray) -> None:
    """Insert a number into the `count` least so far, ascending."""
    k = count - 1
    if number >= least[k]:
        return
    while k > 0 and least[k - 1] > number:
        least[k] = least[k - 1]
        k -= 1
    least[k] = number


@inlined
def _free_from(n: int, begin: int, limit: int, intervals: SharedIntervals) -> int:
    """Return the first time (ns), at least `begin`, from which a node is not reserved for the length of a limit."""
    segments = intervals.segments
    k = segments.first[n]
    while k >= 0:
        if segments.since[k] > limit_end(begin, limit):
            return begin
        begin = max(begin, segments.until[k])
        k = segments.next[k]
    return begin


@step
def _first_fit(begin: int, later: int, parts: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the first start (ns), at least `begin`, at which a job fits on nodes that are not reserved as runs end.

    Return -1 if it never fits, or only after `later`, unless that is -1. Ends are tried in groups, see
    `BackfillPlan._tested_instants`: a group consists of the ends up to the last of its period; if that is on reserved nodes
    only, up to the next that is not.
    """
    releases, status = intervals.releases, intervals.status
    runs = status.runs
    wanted = _ends_wanted(parts, intervals)
    if wanted == NEVER or 0 <= later < (releases.end[wanted - 1] if wanted > 0 else begin):
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
def _write_ends(kind: int, state: SharedState, intervals: SharedIntervals) -> None:
    """Write when each node can hold a part of a kind to `trial.fits_after`, `trial.able` and `trial.ready`."""
    trial, releases, status = intervals.trial, intervals.releases, intervals.status
    row = _row_of(kind, state, intervals)
    status.able = 0
    for n in range(trial.fits_after.size):
        needed = trial.needed[row, n]
        trial.fits_after[n] = needed
        if needed < NEVER:
            trial.able[status.able], trial.ready[status.able] = n, -1
            if needed > 0:
                last = releases.part[n, needed - 1]
                trial.fits_after[n], trial.ready[status.able] = last + 1, releases.end[last]
            status.able += 1


@step
def _row_of(kind: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the row of `trial.needed` for a kind; compute it for the nodes whose runs have changed since."""
    trial, nodes, kinds = intervals.trial, state.nodes, state.kinds
    changed_at, sorts = intervals.releases.changed_at, intervals.releases.sorts[0]
    row, leaves = kind % trial.kind.size, nodes.top.shape[0] // 2
    since = trial.at[row] if trial.kind[row] == kind else -1
    trial.kind[row], trial.at[row] = kind, sorts
    for n in range(changed_at.size if since < sorts else 0):
        if changed_at[n] > since:
            trial.needed[row, n] = NEVER
            if nodes.open[kinds.eligible[kind], leaves + n]:
                trial.needed[row, n] = _count_needed(n, kind, state, intervals)
    return int(row)


@inlined
def _count_needed(n: int, kind: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the number of parts on a node that have to end before it can hold a part of a kind, NEVER if it never can."""
    releases, request, leaf = intervals.releases, state.kinds.request, state.nodes.top.shape[0] // 2 + n
    needed = 0  # for all amounts
    for d in range(request.shape[1]):
        free, k = state.nodes.top[leaf, d], 0
        while free < request[kind, d]:
            if k == releases.parts[n]:
                return NEVER
            free += request[_kind_at(n, k, state, intervals), d]
            k += 1
        needed = max(needed, k)
    return int(needed)


@inlined
def _kind_at(n: int, k: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the kind of the k-th part by end on a node."""
    releases = intervals.releases
    return int(state.jobs.kind[state.runs.job[releases.run[releases.part[n, k]]]])


@step
def _ends_wanted(parts: int, intervals: SharedIntervals) -> int:
    """Return the number of ends after which enough nodes that are not reserved can hold a part, NEVER if they never can."""
    trial = intervals.trial
    _begin_least(parts, trial.least)
    for word in range(trial.held.size):
        left = trial.usable[word] & ~trial.held[word]
        while left != 0:
            lowest = left & -left
            left ^= lowest
            _add_least(trial.fits_after[word * WORD + POWER[(lowest * DE_BRUIJN >> 27) & 31]], parts, trial.least)
    return int(trial.least[parts - 1])


@step
def _first_decrease(met: int, end: int, intervals: SharedIntervals) -> int:
    """Return when (ns) fewer reservations hold a node than in the segments from `met` to an end (ns); -1 for never."""
    segments, final, s = intervals.segments, intervals.status.segments - 1, met
    while s < final and segments.begin[s] <= end:
        if segments.falls[s]:
            return int(segments.end[s])
        s += 1
    last = s - 1  # it holds all nodes that the segments before it hold
    while met <= last and s < final:
        if _holds_more(segments.row[last], segments.row[s + 1], segments):
            return int(segments.end[s])
        s += 1
    return -1


@inlined
def _holds_more(row: int, other: int, segments: SharedSegments) -> bool:
    """Return whether a node is reserved more often in one row of `held` and `twice` than in another."""
    for word in range(segments.held.shape[1]):
        less = segments.held[row, word] & ~segments.held[other, word] | segments.twice[row, word] & ~segments.twice[other, word]
        if less != 0:
            return True
    return False


@step
def _write_held(met: int, end: int, intervals: SharedIntervals) -> None:
    """Write the nodes that are reserved in any of the segments from `met` to an end (ns) to `trial.held`."""
    held, segments, s = intervals.trial.held, intervals.segments, met
    for word in range(held.size):
        held[word] = 0
    while s < intervals.status.segments and segments.begin[s] <= end:
        for word in range(held.size):
            held[word] |= segments.held[segments.row[s], word]
        s += 1


@inlined
def _is_in(n: int, words: IntArray) -> bool:
    """Return whether a set of nodes contains a node."""
    return bool(words[n // WORD] >> (n % WORD) & 1)


@inlined
def _place_first(parts: int, intervals: SharedIntervals) -> None:
    """Do the same as `_place` by first fit."""
    trial, part, word, left = intervals.trial, 0, -1, 0
    while part < parts:
        while left == 0:
            word += 1
            left = trial.usable[word] & ~trial.held[word]
        lowest = left & -left
        left ^= lowest
        n = word * WORD + POWER[(lowest * DE_BRUIJN >> 27) & 31]
        if trial.fits_after[n] <= intervals.status.ended:
            trial.ahead.chosen[part] = n
            part += 1


@step
def _place(kind: int, state: SharedState, intervals: SharedIntervals) -> None:
    """Choose nodes (`ahead.chosen`) among those that are not reserved and can hold a part by the start found last."""
    trial, releases, ahead, nodes = intervals.trial, intervals.releases, intervals.trial.ahead, state.nodes
    ended = intervals.status.ended
    leaves, dims = ahead.top.shape[0] // 2, ahead.top.shape[1]
    for n in range(releases.parts.size):
        usable = trial.fits_after[n] <= ended and not _is_in(n, trial.held)
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
    first = max(count_by(begin - 1, segments.begin, status.segments), count_by(begin - 1, segments.end, status.segments))
    last = count_by(end, segments.end, status.segments)
    for s in range(first, last):
        for part in range(parts):
            n, row = chosen[part], segments.row[s]
            bit = 1 << (n % WORD)
            segments.twice[row, n // WORD] |= segments.held[row, n // WORD] & bit
            segments.held[row, n // WORD] |= bit
            if segments.end[s] > now:
                segments.reserved_from[n] = min(segments.reserved_from[n], segments.begin[s])
    if first < last:
        for s in range(max(first - 1, 0), min(last, status.segments - 1)):
            segments.falls[s] = _holds_more(segments.row[s], segments.row[s + 1], segments)
        for part in range(parts):
            _note_reservation(chosen[part], segments.begin[first], segments.end[last - 1], intervals)


@inlined
def _note_reservation(n: int, since: int, until: int, intervals: SharedIntervals) -> None:
    """Add a reservation between two times (ns) to those of a node, in order."""
    segments, new = intervals.segments, intervals.status.reservations
    intervals.status.reservations += 1
    segments.since[new], segments.until[new] = since, until
    before, behind = -1, segments.first[n]
    while behind >= 0 and segments.until[behind] <= since:
        before, behind = behind, segments.next[behind]
    segments.next[new] = behind
    if before >= 0:
        segments.next[before] = new
    else:
        segments.first[n] = new


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
        segments.row[s], segments.falls[s] = segments.row[s - 1], segments.falls[s - 1]
    segments.row[at + 1], segments.falls[at] = count, False
    for word in range(segments.held.shape[1]):
        segments.held[count, word] = segments.held[segments.row[at], word]
        segments.twice[count, word] = segments.twice[segments.row[at], word]
