"""Reservations of a backfill pass: the segments of its window, and the nodes that each segment holds for waiting jobs."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.common.intervals import count_by, last_begun, limit_end
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.shared_nodes.interval_state import SharedIntervals, SharedSegments
from poolwise.kernels.shared_nodes.state import WORD


@step
def add_reservation(begin: int, end: int, parts: int, now: int, intervals: SharedIntervals) -> None:
    """Add a reservation of the chosen nodes to the segments in its interval, after cutting segments at both of its ends.

    If rounding reduces an interval within a segment to a single instant, it becomes a segment of length zero.
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
            segments.falls[s] = _holds_more(segments.row[s], segments.row[s + 1], intervals.trial.usable, segments)
        for part in range(parts):
            _note_reservation(chosen[part], segments.begin[first], segments.end[last - 1], intervals)


@inlined
def _note_reservation(n: int, since: int, until: int, intervals: SharedIntervals) -> None:
    """Insert a reservation between two times (ns) into the ordered reservations of a node."""
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
    return s + 1


@step
def _insert(at: int, segments: SharedSegments, count: int) -> None:
    """Insert a copy of one of `count` segments behind it."""
    for s in range(count, at, -1):
        segments.begin[s], segments.end[s] = segments.begin[s - 1], segments.end[s - 1]
        segments.row[s], segments.falls[s] = segments.row[s - 1], segments.falls[s - 1]
    segments.row[at + 1], segments.falls[at] = count, False
    for word in range(segments.held.shape[1]):
        segments.held[count, word] = segments.held[segments.row[at], word]
        segments.twice[count, word] = segments.twice[segments.row[at], word]


@inlined
def free_from(n: int, begin: int, limit: int, intervals: SharedIntervals) -> int:
    """Return the first time (ns), at least `begin`, from which a node stays unreserved for the length of a time limit."""
    segments = intervals.segments
    k = segments.first[n]
    while k >= 0:
        if segments.since[k] > limit_end(begin, limit):
            return begin
        begin = max(begin, segments.until[k])
        k = segments.next[k]
    return begin


@step
def first_decrease(met: int, end: int, area: IntArray, intervals: SharedIntervals) -> int:
    """Return when (ns) fewer reservations hold a node than in the segments from `met` to an end (ns); -1 for never.

    Only the nodes of `area`, (n_word,), count.
    """
    segments, final, s = intervals.segments, intervals.status.segments - 1, met
    while s < final and segments.begin[s] <= end:
        if segments.falls[s] and _holds_more(segments.row[s], segments.row[s + 1], area, segments):
            return int(segments.end[s])
        s += 1
    last = s - 1  # it holds all nodes of the area that the segments before it hold
    while met <= last and s < final:
        if _holds_more(segments.row[last], segments.row[s + 1], area, segments):
            return int(segments.end[s])
        s += 1
    return -1


@inlined
def _holds_more(row: int, other: int, area: IntArray, segments: SharedSegments) -> bool:
    """Return whether a node of an area, (n_word,), is reserved more often in one row of `held` and `twice` than in another."""
    for word in range(segments.held.shape[1]):
        less = segments.held[row, word] & ~segments.held[other, word] | segments.twice[row, word] & ~segments.twice[other, word]
        if less & area[word] != 0:
            return True
    return False


@step
def write_held(kind: int, met: int, end: int, intervals: SharedIntervals) -> None:
    """Record in `trial.held` the nodes that a job of a kind cannot use in the segments from `met` to an end (ns)."""
    trial, held, segments, s = intervals.trial, intervals.trial.held, intervals.segments, met
    for word in range(held.size):
        held[word] = trial.never[trial.class_of[kind], word]
    while s < intervals.status.segments and segments.begin[s] <= end:
        for word in range(held.size):
            held[word] |= segments.held[segments.row[s], word]
        s += 1


@inlined
def is_reserved(n: int, words: IntArray) -> bool:
    """Return whether a node is in a set of reserved nodes."""
    return bool(words[n // WORD] >> (n % WORD) & 1)


@step
def conflicts(start: int, limit: int, parts: int, intervals: SharedIntervals) -> bool:
    """Return whether a start (ns) would use nodes that are reserved for other jobs in its interval."""
    rules, segments, chosen = intervals.rules, intervals.segments, intervals.trial.ahead.chosen
    begin = start // rules.resolution * rules.resolution
    end = limit_end(start, limit) // rules.resolution * rules.resolution
    for s in range(intervals.status.segments):
        if segments.begin[s] >= end:
            break
        if segments.end[s] > begin:
            for part in range(parts):
                if is_reserved(chosen[part], segments.held[segments.row[s]]):
                    return True
    return False
