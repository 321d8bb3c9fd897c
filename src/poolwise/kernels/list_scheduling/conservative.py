"""One pass of conservative backfilling: make reservations in priority order and start the jobs whose reservation begins now.

Incremental: the profile and the reservations persist from pass to pass, and only reservations that may have changed are
recomputed (`reservation_cache`). The decisions equal those of `policies.backfill.conservative`, which recomputes all of them.
Source: specs of the memory pools, "Backfilling".
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.candidate_filter import last_candidate, remains_candidate
from poolwise.kernels.list_scheduling.earliest import earliest, shortest
from poolwise.kernels.list_scheduling.profile import advance, before, build_profile, merge
from poolwise.kernels.list_scheduling.racks import fits, total
from poolwise.kernels.list_scheduling.reservation_cache import (
    adjust_profile,
    drop,
    is_unchanged,
    mark_current,
    may_be_affected,
    may_begin_earlier,
    note_gain,
    note_loss,
    note_start_behind,
    racks_used,
    rank,
    release_early,
    store,
)
from poolwise.kernels.list_scheduling.runs import is_overdue, start_at
from poolwise.kernels.list_scheduling.state import JobArrays, ProfileArrays, RackArrays, RackState, Rules
from poolwise.kernels.list_scheduling.waiting import leave
from poolwise.quantities import NEVER


@step
def conservative_pass(state: RackState, profile: ProfileArrays) -> None:
    """Reserve the earliest free interval for each job in priority order; start the jobs whose interval begins now.

    Reservations before the first that may have changed remain valid. The later ones are removed from the profile, recomputed if
    necessary, and added again one by one. This stops once no remaining job fits from now until its expected end: the other
    reservations remain unchanged, and the changes in front of them are recorded.
    """
    jobs, rules, racks, now = state.jobs, state.rules, state.racks, state.now
    cache, waiting, at = profile.cache, now.waiting, 0
    rank(state.order, state.queue, cache, now)
    _refresh_profile(state, profile)
    while at < waiting and cache.counted[cache.ranked[at]] and is_unchanged(cache.ranked[at], now, cache):
        _start_if_due(at, state, profile)
        at += 1
    last, free = waiting - 1, total(racks.free)
    while last >= at and not _fits_now(cache.ranked[last], free, jobs, rules, racks):
        last -= 1
    if last < at:
        return
    for k in range(at, waiting):
        if cache.counted[cache.ranked[k]]:
            adjust_profile(cache.ranked[k], 1, now, profile)
    profile.status.steps = 0
    last = last_candidate(last, at, jobs, rules, profile)
    gained, free_until, lost, taken_until, on = NEVER, 0, NEVER, 0, 0  # changes in front of `at`
    while at <= last:
        job = cache.ranked[at]
        note_gain(job, gained, free_until, cache)
        note_loss(job, lost, taken_until, on, cache)
        begin, end = cache.start[job], cache.end[job]
        changed = _reserve(job, state, profile)
        if changed and begin >= 0:
            gained, free_until = min(gained, begin), max(free_until, end)
        if changed and cache.start[job] >= 0:
            lost, taken_until = min(lost, cache.start[job]), max(taken_until, cache.end[job])
            on |= racks_used(job, cache)
        _start_if_due(at, state, profile)
        if at == last or not remains_candidate(cache.ranked[last], job, jobs, rules, profile):
            last = last_candidate(last - 1, at + 1, jobs, rules, profile)
        at += 1
    for k in range(at, waiting):
        note_gain(cache.ranked[k], gained, free_until, cache)
        note_loss(cache.ranked[k], lost, taken_until, on, cache)


@inlined
def _refresh_profile(state: RackState, profile: ProfileArrays) -> None:
    """Advance the profile and the reservations of the last pass to now, or rebuild them if they are invalid.

    They are invalid after a change of capacity, and while a run is overdue, since each pass expects it to end at another time.
    They are also invalid in scope "system" and on mixed nodes: see `reservation_cache`.
    """
    now = state.now
    is_reusable = not (is_overdue(state) or state.rules.anywhere) and state.jobs.mixed is None
    if not is_reusable or now.profile_valid == 0 or profile.status.instants == 0:
        build_profile(state, profile)
        for k in range(now.waiting):
            drop(profile.cache.ranked[k], profile.cache)
    else:
        advance(profile, now)
        count, merged = profile.status.instants, profile.status.merged
        if count > merged + (merged >> 2) + 16 or count + now.early + 4 * now.waiting + 4 > profile.time.size:
            merge(profile)
        release_early(state, profile)
    now.early = 0
    now.profile_valid = int(is_reusable)


@step
def _reserve(job: int, state: RackState, profile: ProfileArrays) -> bool:
    """Add a job's reservation to the profile; return whether it differs from the previous one."""
    jobs, rules, racks, now = state.jobs, state.rules, state.racks, state.now
    cache = profile.cache
    begin, k, has_previous = cache.start[job], -1, cache.start[job] >= now.time
    if has_previous and may_begin_earlier(job, now, cache):
        first = before(max(cache.gain_from[job] - shortest(job, jobs, rules) + 1, now.time), profile)
        k = earliest(job, first, min(cache.gain_until[job], begin), jobs, rules, racks, profile)
    if has_previous and k < 0 and not may_be_affected(job, cache):
        mark_current(job, cache)
        adjust_profile(job, -1, now, profile)
        return False
    if k < 0:
        k = earliest(
            job, before(begin, profile) if has_previous else profile.status.present, NEVER, jobs, rules, racks, profile
        )
    changed = k < 0 or profile.time[k] != begin
    for r in range(racks.take.size):
        changed |= racks.take[r] != cache.take[job, r]
    store(job, k, jobs, racks, profile)
    mark_current(job, cache)
    if k >= 0:
        adjust_profile(job, -1, now, profile)
    return changed


@inlined
def _start_if_due(at: int, state: RackState, profile: ProfileArrays) -> None:
    """Start the job at a position of the ranking if its reservation begins now."""
    now = state.now
    cache = profile.cache
    job = cache.ranked[at]
    if cache.start[job] == now.time:
        start_at(job, cache.take[job], cache.borrow[job], state)
        leave(job, state)
        note_start_behind(job, at, now, cache)
        if state.runs.expected[now.started - 1] != cache.end[job]:
            now.profile_valid = 0  # it is expected to end before its reservation: the profile subtracts too much


@inlined
def _fits_now(job: int, free: int, jobs: JobArrays, rules: Rules, racks: RackArrays) -> bool:
    """Return whether a job fits now, given the number of free nodes, ignoring reservations."""
    n = jobs.nodes[job]
    return bool(n <= free and fits(job, n, jobs.remote[job], rules.anywhere, jobs.mixed, racks.free, racks.pool))
