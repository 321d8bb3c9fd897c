"""Plan of one backfill pass: the expected start of a job, given the expected ends of runs and the reservations made so far.

Equals `policies.backfill.slurm_plan`, start by start. A reservation covers whole nodes: a job cannot use a node that is
reserved at any time of its interval.
"""

from __future__ import annotations

from math import inf

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.intervals import PRECISION, add_times, count_by, last_begun, limit_end, second
from poolwise.kernels.common.state import STATIC, IntervalRules
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.choose import choose
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals
from poolwise.kernels.shared_nodes.nodes import DE_BRUIJN, POWER, next_fit, rebuild
from poolwise.kernels.shared_nodes.releases import last_touching, next_touching, sort_releases, write_ends
from poolwise.kernels.shared_nodes.room import finds_room
from poolwise.kernels.shared_nodes.segments import (
    add_reservation,
    conflicts,
    first_decrease,
    free_from,
    is_reserved,
    write_held,
)
from poolwise.kernels.shared_nodes.state import FIRST_FIT, WORD, SharedNow, SharedState, WindowArrays
from poolwise.kernels.shared_nodes.windows import closed_at, kind_now, next_closing, opens
from poolwise.quantities import NEVER, SECOND


@step
def begin_plan(state: SharedState, intervals: SharedIntervals) -> None:
    """Begin a backfill pass without reservations."""
    rules, segments, status, now = intervals.rules, intervals.segments, intervals.status, state.now
    segments.begin[0] = second(now) // rules.resolution * rules.resolution
    segments.end[0] = _window_end(now, rules)
    segments.row[0] = 0
    for n in range(segments.reserved_from.size):
        segments.reserved_from[n], segments.first[n] = NEVER, -1
    for word in range(segments.held.shape[1]):
        segments.held[0, word], segments.twice[0, word] = 0, 0
    for component in range(intervals.components.reserved.size):
        intervals.components.reserved[component] = 0
    for partition in range(intervals.groups.reserved.size):
        intervals.groups.reserved[partition] = 0
    status.segments, status.reservations, status.planned, status.holds_until, status.version = 1, 0, 0, NEVER, now.version
    status.renewal = now.renewal
    sort_releases(state, intervals)
    for k in range(now.running):
        _hold_until(state.runs.expected[state.runs.ending[k]] // SECOND * SECOND, intervals)


@step
def holds(state: SharedState, intervals: SharedIntervals) -> bool:
    """Return whether a new pass would begin with the plan of the last one: time and ranking have not changed it.

    If the runs stay the same, time changes the plan in five cases: an expected end has passed; the interval of a planned job,
    counted from now, reaches another segment; an expected start has entered the window; a reservation whose rounded end
    precedes its start has passed; or the window has reached the end of a reservation. Otherwise, only the window's end moves.

    If only jobs above a minimum priority get reservations, the plan also changes with the priorities. If the number of
    reservations is limited, the result is False.
    """
    line, status, rules = intervals.line, intervals.status, intervals.rules
    same_keys = state.order.kind == STATIC and status.renewal == state.now.renewal
    if rules.reserved_jobs > 0 or (rules.last_key < inf and not same_keys):
        return False
    if status.version != state.now.version or state.now.time >= status.holds_until:
        return False
    for k in range(status.planned):
        if k == status.tested + status.left or next_tested(k, state, intervals) != line.planned[k]:
            return False
    intervals.segments.end[status.segments - 1] = _window_end(state.now, intervals.rules)
    return True


@inlined
def _window_end(now: SharedNow, rules: IntervalRules) -> int:
    """Return the end (ns) of the window of a pass."""
    return int(second(now) // rules.resolution * rules.resolution + rules.window)


@inlined
def next_tested(at: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the job at a position by priority, given that the jobs before it have been returned."""
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
def starts_now(job: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> bool:
    """Return whether a job fits from now to the end of its time limit, in addition to all reservations."""
    kind, segments, kinds = kind_now(job, state, windows), intervals.segments, state.kinds
    if not finds_room(kind, state):
        return False
    end, free_nodes = limit_end(second(state.now), state.jobs.length[job]), 0
    n = next_fit(0, kind, -1, kinds, state.nodes)
    while n >= 0:
        free_nodes += int(segments.reserved_from[n] > end)
        if free_nodes == kinds.parts[kind]:
            return True
        n = next_fit(n + 1, kind, -1, kinds, state.nodes)
    return False


@step
def place_now(job: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> None:
    """Find nodes (`nodes.chosen`) for a job that fits now in addition to the reservations."""
    kind, nodes, ahead, segments = kind_now(job, state, windows), state.nodes, intervals.trial.ahead, intervals.segments
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
def reserve(job: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> None:
    """Find the expected start of a job that does not start now, and reserve its nodes if the start is in the window.

    Do nothing for jobs that get no reservation; see `IntervalRules.last_key` and `reserved_jobs`.

    As long as the end of the window moves only within the same reservations, no other expected start in it changes: a job is
    tried only from instants in the window, and later starts conflict with no reservation.
    """
    rules, status, now, groups = intervals.rules, intervals.status, second(state.now), intervals.groups
    of = groups.partition[job]
    if state.order.key[job] > rules.last_key or 0 < rules.reserved_jobs <= groups.reserved[of]:
        return
    start = _expected_start(job, state, windows, intervals)
    if start < 0:
        return
    groups.reserved[of] += 1
    if start > now + rules.window:
        _hold_until(start - rules.window, intervals)
        return
    begin = start // rules.resolution * rules.resolution
    end = limit_end(start, state.jobs.length[job]) // rules.resolution * rules.resolution
    _hold_until(end, intervals)
    last = intervals.segments.end[status.segments - 1]
    if begin < last <= end and rules.window % rules.resolution == 0:
        _hold_until(end - rules.window + rules.resolution, intervals)
    elif last <= end:
        _hold_until((now // rules.resolution + 1) * rules.resolution, intervals)
    add_reservation(begin, end, status.chosen, now, intervals)


@step
def _expected_start(job: int, state: SharedState, windows: WindowArrays, intervals: SharedIntervals) -> int:
    """Return the expected start (ns) of a job that does not start now, -1 if none is known; its nodes are `ahead.chosen`.

    A job starts before the instant from which it is tried next. So it is tried from an instant only if, by the next one, enough
    nodes can hold a part and are no longer reserved. Windows may close some of these nodes to the job.
    """
    kind, segments, status, is_first = state.jobs.kind[job], intervals.segments, intervals.status, True
    now, limit, parts, area = second(state.now), state.jobs.length[job], state.kinds.parts[kind], intervals.trial.area
    begin, bound, met, of = now, -1, 0, state.kinds.eligible[kind]
    write_ends(kind, state, windows, intervals)
    behind = last_begun(limit_end(now, limit), segments.begin, status.segments) + 1
    if behind < status.segments:
        _hold_until(segments.begin[behind] - limit, intervals)
    _hold_until(next_closing(job, state, windows), intervals)
    while True:
        begin = opens(begin, job, area, state, windows)
        closed = closed_at(max(begin, state.now.time), state.now.passed, kind, limit, windows)
        while met < status.segments and segments.end[met] <= begin:
            met += 1
        later = first_decrease(met, limit_end(begin, limit), area[of + closed], intervals)
        if closed != 0:
            later = _tried_again(begin, later, of, closed, state.now, windows, intervals)
        if bound < 0:
            bound = _earliest_bound(begin, limit, parts, is_first, intervals)
            is_first = False
        if later < 0 or later >= bound:
            bound = -1
            write_held(kind + closed, met, limit_end(begin, limit), intervals)
            start = _first_fit(begin, later, parts, state, intervals)
            if start >= 0 and (later < 0 or start <= later):
                status.chosen = parts
                if intervals.rules.busy_nodes and status.ended > 0:
                    _place_on_busy(parts, intervals)
                elif state.rules.placement == FIRST_FIT:
                    _place_first(parts, intervals)
                else:
                    _place(kind, state, intervals)
                if start == begin or not conflicts(start, limit, status.chosen, intervals):
                    return start
                later = start
        if later < 0:
            return -1
        begin = later


@step
def _tried_again(
    begin: int, later: int, of: int, closed: int, now: SharedNow, windows: WindowArrays, intervals: SharedIntervals
) -> int:
    """Return the next instant (ns) from which a job is tried, -1 for none; `later` is that instant without windows.

    Equals `BackfillWindows.next_trial`. It changes as the end of the plan moves and, at first, when a window has ended.
    """
    rules, meets = intervals.rules, False
    for word in range(intervals.trial.area.shape[1]):
        meets = meets or intervals.trial.area[of, word] != intervals.trial.area[of + closed, word]
    k = count_by(begin - 1, windows.ends, windows.ends.size)
    if not meets or k == windows.ends.size:
        return later
    if begin == second(now):
        _hold_until((windows.ends[k] // SECOND + 1) * SECOND, intervals)
    again = -(-windows.ends[k] // rules.resolution) * rules.resolution + SECOND
    if again >= _window_end(now, rules):
        _hold_until(((again - rules.window) // rules.resolution + 1) * rules.resolution, intervals)
        return later
    return int(again if later < 0 else min(later, again))


@step
def _earliest_bound(begin: int, limit: int, parts: int, is_first: bool, intervals: SharedIntervals) -> int:
    """Return a lower bound (ns) of the next instant after a possible start from `begin` on; NEVER if there is no such start.

    The bound is at least the start, and later than the instant from which enough nodes are not reserved. `trial.free_from` is
    kept from call to call for the same job, and reset if `is_first`.
    """
    trial, last, latest = intervals.trial, parts - 1, NEVER
    if is_first:
        for k in range(intervals.status.able):
            trial.free_from[k] = -1
    _begin_least(parts, trial.least)
    for k in range(intervals.status.able):
        if trial.ready[k] < latest:
            if trial.free_from[k] < begin:
                trial.free_from[k] = free_from(trial.able[k], begin, limit, intervals)
            _add_least(max(trial.ready[k], trial.free_from[k] + 1), parts, trial.least)
            latest = trial.least[last]
    return int(latest)


@inlined
def _begin_least(count: int, least: IntArray) -> None:
    """Begin a search for the `count` smallest numbers of a sequence."""
    for k in range(count):
        least[k] = NEVER


@inlined
def _add_least(number: int, count: int, least: IntArray) -> None:
    """Insert a number into the `count` smallest so far, in ascending order."""
    k = count - 1
    if number >= least[k]:
        return
    while k > 0 and least[k - 1] > number:
        least[k] = least[k - 1]
        k -= 1
    least[k] = number


@step
def _first_fit(begin: int, later: int, parts: int, state: SharedState, intervals: SharedIntervals) -> int:
    """Return the first start (ns), at least `begin`, at which a job fits on nodes that are not reserved as runs end.

    Return -1 if it never fits or, unless `later` is -1, fits only after `later`. Ends are tried in groups, see
    `BackfillPlan._tested_instants`: a group consists of the ends up to the last of its period; if that end is on reserved nodes
    only, the group extends to the next end that is not. Without `rules.groups_ends`, each end is a group.
    """
    releases, status = intervals.releases, intervals.status
    runs = status.runs
    wanted = _ends_wanted(parts, intervals)
    if wanted == NEVER or 0 <= later < (releases.end[wanted - 1] if wanted > 0 else begin):
        return -1
    if wanted == 0 and (begin > second(state.now) or not intervals.rules.groups_ends):
        status.ended = 0
        return begin
    if not intervals.rules.groups_ends:
        status.ended = wanted
        return int(max(releases.end[wanted - 1], begin))
    period, until, k = PRECISION, -1, 0
    while True:
        k = next_touching(k, state, intervals)
        if k >= runs:
            return -1
        end = releases.end[k]
        if until < 0:
            until = end + PRECISION - end % PRECISION
        if end > add_times(until, period):
            until += (end - until - 1) // period * period
        k = next_touching(max(k, count_by(add_times(until, period), releases.end, status.runs) - 1), state, intervals) + 1
        last = k - 1
        if k > runs:
            k, last = runs, last_touching(state, intervals)
        if wanted <= k:
            status.ended = k
            return int(max(releases.end[last], begin))
        period = add_times(period, period)


@step
def _ends_wanted(parts: int, intervals: SharedIntervals) -> int:
    """Return the number of ends after which enough unreserved nodes can hold a part, NEVER if they never can."""
    trial = intervals.trial
    _begin_least(parts, trial.least)
    for word in range(trial.held.size):
        left = trial.usable[word] & ~trial.held[word]
        while left != 0:
            lowest = left & -left
            left ^= lowest
            _add_least(trial.fits_after[word * WORD + POWER[(lowest * DE_BRUIJN >> 27) & 31]], parts, trial.least)
    return int(trial.least[parts - 1])


@inlined
def _place_first(parts: int, intervals: SharedIntervals) -> None:
    """Choose nodes as `_place` does, by first fit."""
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
def _place_on_busy(parts: int, intervals: SharedIntervals) -> None:
    """Choose nodes as `policies.placement.nodes.busy` does: among nodes of equal weight, those in use first.

    If they suffice, one idle node of their weight is chosen in addition.
    """
    trial, releases, status, first = intervals.trial, intervals.releases, intervals.status, 0
    status.chosen = 0
    while status.chosen < parts:
        behind = count_by(trial.weight[first], trial.weight, trial.weight.size)
        for idle in (False, True):
            most = parts + int(idle and status.chosen == parts)
            for n in range(first, behind):
                able = trial.fits_after[n] <= status.ended and not is_reserved(n, trial.held)
                if status.chosen < most and able and (releases.parts[n] == 0) == idle:
                    trial.ahead.chosen[status.chosen] = n
                    status.chosen += 1
        first = behind


@step
def _place(kind: int, state: SharedState, intervals: SharedIntervals) -> None:
    """Choose nodes (`ahead.chosen`) among those that are not reserved and can hold a part by the start found last."""
    trial, releases, ahead, nodes = intervals.trial, intervals.releases, intervals.trial.ahead, state.nodes
    ended = intervals.status.ended
    leaves, dims = ahead.top.shape[0] // 2, ahead.top.shape[1]
    for n in range(releases.parts.size):
        usable = trial.fits_after[n] <= ended and not is_reserved(n, trial.held)
        for d in range(dims):
            ahead.top[leaves + n, d] = nodes.top[leaves + n, d] if usable else -1
        k = 0
        while usable and k < releases.parts[n] and releases.part[n, k] < ended:
            for d in range(dims):
                ahead.top[leaves + n, d] += state.kinds.request[releases.kind_on[n, k], d]
            k += 1
    rebuild(releases.parts.size, ahead)
    choose(kind, state.rules, state.kinds, ahead)
