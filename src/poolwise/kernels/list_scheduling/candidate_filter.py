"""Candidate filter of conservative backfilling: the waiting jobs that fit from now until their expected end.

Each new reservation reduces the free capacity, so a job that no longer fits cannot start in this pass. The capacity free
throughout [now, t) decreases in steps as t grows; each step is at an instant at which a reservation begins. A job is compared
with one step. Steps are computed lazily, and recomputed from the start of each reservation made since.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.earliest import shortest
from poolwise.kernels.list_scheduling.profile import before
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.state import JobArrays, MixedArrays, ProfileArrays, Rules, StepArrays
from poolwise.quantities import HORIZON


@step
def last_candidate(last: int, first: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> int:
    """Return the last position in [`first`, `last`] of a job that fits from now until its expected end, or `first` - 1.

    `profile.status.single_rack` is a rack that can hold the entire job for that time, -1 if there is none.
    """
    present, ranked = profile.status.present, profile.cache.ranked
    nodes, memory = profile.nodes[present], profile.memory[present]
    while last >= first:
        job = ranked[last]
        n = jobs.nodes[job]
        if n <= nodes and n * jobs.remote[job] <= memory and _fits_throughout(job, jobs, rules, profile):
            return last
        last -= 1
    return last


@step
def remains_candidate(job: int, other: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> bool:
    """Return whether a candidate still fits now that another job's reservation has been made."""
    cache, whole = profile.cache, profile.status.single_rack
    begin = cache.start[other]
    if begin < 0:
        return True
    _invalidate_steps(begin, profile)
    if begin >= _earliest_end(job, jobs, rules, profile) and begin > profile.time[profile.status.present]:
        return True
    if whole >= 0 and cache.take[other, whole] == 0 and cache.borrow[other, whole] == 0:
        return True
    return bool(_fits_throughout(job, jobs, rules, profile))


@inlined
def _invalidate_steps(time: int, profile: ProfileArrays) -> None:
    """Drop the steps at or after a time (ns); all of them if it is not later than now."""
    if time < profile.status.steps_until:
        profile.status.steps_until = time
        while profile.status.steps > 0 and profile.steps.time[profile.status.steps - 1] >= time:
            profile.status.steps -= 1


@inlined
def _earliest_end(job: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> int:
    """Return the earliest time (ns) at which a job that starts now could end."""
    time = profile.time[profile.status.present]
    return int(time + min(shortest(job, jobs, rules), HORIZON - time))


@step
def _fits_throughout(job: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> bool:
    """Return whether a job fits from now until its expected end."""
    n, remote, until, steps = jobs.nodes[job], jobs.remote[job], _earliest_end(job, jobs, rules, profile), profile.steps
    if profile.status.steps == 0:
        _first_step(profile)
    at = profile.status.steps - 1
    while at > 0 and steps.time[at] >= until:
        at -= 1
    while True:
        if steps.nodes[at] < n or steps.memory[at] < n * remote:
            return False
        if not fits(job, n, remote, rules.anywhere, jobs.mixed, steps.free[at], steps.pool[at]):
            return False
        if profile.status.steps_until >= until or not _next_step(until, profile):
            profile.status.single_rack = _single_rack(at, n, remote, jobs.mixed, steps)
            return True
        at = profile.status.steps - 1


@inlined
def _single_rack(at: int, n: int, remote: int, mixed: MixedArrays | None, steps: StepArrays) -> int:
    """Return the last rack that can hold an entire job at a step, -1 if there is none or on mixed nodes."""
    last_rack = -1
    if mixed is None:
        for r in range(steps.free.shape[1]):
            if steps.free[at, r] >= n and steps.pool[at, r] >= n * remote:
                last_rack = r
    return last_rack


@inlined
def _first_step(profile: ProfileArrays) -> None:
    """Write the capacity that is free now."""
    steps, present = profile.steps, profile.status.present
    for r in range(steps.free.shape[1]):
        steps.free[0, r], steps.pool[0, r] = profile.free[r, present], profile.pool[r, present]
    steps.time[0], steps.nodes[0], steps.memory[0] = profile.time[present], profile.nodes[present], profile.memory[present]
    profile.status.steps, profile.status.steps_until = 1, profile.time[present] + 1


@step
def _next_step(until: int, profile: ProfileArrays) -> bool:
    """Find the next step before a time (ns); return whether there is one."""
    steps, last = profile.steps, profile.status.steps - 1
    m = before(profile.status.steps_until, profile)
    while m < profile.status.instants and profile.time[m] < until:
        if profile.begins[m] > 0:
            nodes, memory = 0, 0
            for r in range(steps.free.shape[1]):
                free, pool = min(steps.free[last, r], profile.free[r, m]), min(steps.pool[last, r], profile.pool[r, m])
                steps.free[last + 1, r], steps.pool[last + 1, r] = free, pool
                nodes += free
                memory += pool
            if nodes < steps.nodes[last] or memory < steps.memory[last]:
                steps.time[last + 1], steps.nodes[last + 1], steps.memory[last + 1] = profile.time[m], nodes, memory
                profile.status.steps, profile.status.steps_until = last + 2, profile.time[m] + 1
                return True
        m += 1
    profile.status.steps_until = until
    return False
