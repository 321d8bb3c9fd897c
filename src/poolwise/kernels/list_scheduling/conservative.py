"""One pass of conservative backfilling: the reservations that a pass in priority order makes, those that begin now started.

Incremental: the profile and the reservations stay from pass to pass, and only those are looked for anew that may have changed
(`standing`). The decisions are those of `policies.backfill.conservative`, which makes all of them anew. Source: specs of the
memory pools, "Backfilling".
"""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.candidate_filter import hopeful, still_hopeful
from poolwise.kernels.list_scheduling.earliest import earliest, shortest
from poolwise.kernels.list_scheduling.profile import before, foresee, merge, pass_on
from poolwise.kernels.list_scheduling.racks import copy, fits, total
from poolwise.kernels.list_scheduling.reservation_cache import (
    count,
    drop,
    end_early,
    less,
    may_begin_earlier,
    may_have_gone,
    more,
    rank,
    run_behind,
    settle,
    stands,
    uses,
    write,
)
from poolwise.kernels.list_scheduling.runs import start
from poolwise.kernels.list_scheduling.state import (
    EARLY,
    INSTANT_COUNT,
    MERGED,
    PRESENT,
    RUNNING,
    STANDING,
    STARTED,
    STEP_COUNT,
    TIME,
    WAITING,
    JobArrays,
    Order,
    ProfileArrays,
    QueueArrays,
    RackArrays,
    Rules,
    RunArrays,
)
from poolwise.kernels.list_scheduling.waiting import leave
from poolwise.units import NEVER


@step
def conserve(
    jobs: JobArrays,
    order: Order,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Let each job in priority order have the earliest interval that is free; start those whose interval begins now.

    Reservations up to the first that may have changed stand; from there on they are taken off the profile and put back one by
    one, anew where they do not stand. That ends as soon as no job that is left fits from now on for as long as it asks for,
    beside the reservations made so far: the others stay as they are, with what has changed in front of them.
    """
    standing, waiting, at = profile.standing, now[WAITING], 0
    rank(order, queue, standing, now)
    _bring_up_to_date(rules, racks, profile, runs, now)
    while at < waiting and standing.counted[standing.ranked[at]] and stands(standing.ranked[at], now, standing):
        _begin(at, jobs, rules, racks, queue, profile, runs, now)
        at += 1
    last, free = waiting - 1, total(racks.free)
    while last >= at and not _fits_now(standing.ranked[last], free, jobs, rules, racks):
        last -= 1
    if last < at:
        return
    for k in range(at, waiting):
        if standing.counted[standing.ranked[k]]:
            count(standing.ranked[k], 1, now, profile)
    profile.size[STEP_COUNT] = 0
    last = hopeful(last, at, jobs, rules, profile)
    gained, free_until, lost, taken_until, on = NEVER, 0, NEVER, 0, 0  # by what changed in front of `at`
    while at <= last:
        job = standing.ranked[at]
        more(job, gained, free_until, standing)
        less(job, lost, taken_until, on, standing)
        begin, end = standing.start[job], standing.end[job]
        changed = _reserve(job, jobs, rules, racks, profile, now)
        if changed and begin >= 0:
            gained, free_until = min(gained, begin), max(free_until, end)
        if changed and standing.start[job] >= 0:
            lost, taken_until = min(lost, standing.start[job]), max(taken_until, standing.end[job])
            on |= uses(job, standing)
        _begin(at, jobs, rules, racks, queue, profile, runs, now)
        if at == last or not still_hopeful(standing.ranked[last], job, jobs, rules, profile):
            last = hopeful(last - 1, at + 1, jobs, rules, profile)
        at += 1
    for k in range(at, waiting):
        more(standing.ranked[k], gained, free_until, standing)
        less(standing.ranked[k], lost, taken_until, on, standing)


@inlined
def _bring_up_to_date(rules: Rules, racks: RackArrays, profile: ProfileArrays, runs: RunArrays, now: IntArray) -> None:
    """Let the profile and the reservations be those of the last pass, as far as they are known, seen from now.

    Nothing is known after a change of capacity, nor where a run is overdue (its end is expected anew in each pass); nor in
    scope system, where the length of an interval depends on the placement.
    """
    late = now[RUNNING] > 0 and runs.expected[runs.due[now[RUNNING] - 1]] <= now[TIME]
    if late or rules.anywhere or now[STANDING] == 0 or profile.size[INSTANT_COUNT] == 0:
        foresee(racks, profile, runs, now)
        for k in range(now[WAITING]):
            drop(profile.standing.ranked[k], profile.standing)
    else:
        pass_on(profile, now)
        count, merged = profile.size[INSTANT_COUNT], profile.size[MERGED]
        if count > merged + (merged >> 2) + 16 or count + now[EARLY] + 4 * now[WAITING] + 4 > profile.time.size:
            merge(profile)
        end_early(racks, profile, runs, now)
    now[EARLY] = 0
    now[STANDING] = int(not (late or rules.anywhere))


@step
def _reserve(job: int, jobs: JobArrays, rules: Rules, racks: RackArrays, profile: ProfileArrays, now: IntArray) -> bool:
    """Let the profile count a job's reservation; returns whether it is another than before."""
    standing = profile.standing
    begin, k, known = standing.start[job], -1, standing.start[job] >= now[TIME]
    if known and may_begin_earlier(job, now, standing):
        first = before(max(standing.more_from[job] - shortest(job, jobs, rules) + 1, now[TIME]), profile)
        k = earliest(job, first, min(standing.more_until[job], begin), jobs, rules, racks, profile)
    if known and k < 0 and not may_have_gone(job, standing):
        settle(job, standing)
        count(job, -1, now, profile)
        return False
    if k < 0:
        k = earliest(job, before(begin, profile) if known else profile.size[PRESENT], NEVER, jobs, rules, racks, profile)
    changed = k < 0 or profile.time[k] != begin
    for r in range(racks.take.size):
        changed |= racks.take[r] != standing.take[job, r]
    write(job, k, jobs, racks, profile)
    settle(job, standing)
    if k >= 0:
        count(job, -1, now, profile)
    return changed


@inlined
def _begin(
    at: int,
    jobs: JobArrays,
    rules: Rules,
    racks: RackArrays,
    queue: QueueArrays,
    profile: ProfileArrays,
    runs: RunArrays,
    now: IntArray,
) -> None:
    """Start the job at a position if its reservation begins now."""
    standing = profile.standing
    job = standing.ranked[at]
    if standing.start[job] == now[TIME]:
        copy(standing.take[job], racks.take)
        copy(standing.borrow[job], racks.borrow)
        start(job, jobs, rules, racks, runs, now)
        leave(job, queue, now)
        run_behind(job, at, now, standing)
        if runs.expected[now[STARTED] - 1] != standing.end[job]:
            now[STANDING] = 0  # it runs for less than it asks for: the profile counts more


@inlined
def _fits_now(job: int, free: int, jobs: JobArrays, rules: Rules, racks: RackArrays) -> bool:
    """Whether a job finds room now, where so many nodes are free, whatever is reserved."""
    n = jobs.nodes[job]
    return bool(n <= free and fits(n, jobs.remote[job], rules.anywhere, racks.free, racks.pool))
