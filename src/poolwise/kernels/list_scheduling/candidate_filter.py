"""Which waiting jobs may still begin in a pass of conservative backfilling: those that fit from now on for as long as they ask.

Beside each reservation that is made less is free, so that a job that does not fit any more is not to begin in the pass. What is
free from now until any time falls in steps, at instants at which reservations begin: a job is held against one of the steps.
They are found as far as jobs ask for them, and again from where a reservation made since begins.
"""

from __future__ import annotations

from poolwise.kernels.jit import inlined, step
from poolwise.kernels.list_scheduling.earliest import shortest
from poolwise.kernels.list_scheduling.profile import before
from poolwise.kernels.list_scheduling.racks import fits
from poolwise.kernels.list_scheduling.state import (
    INSTANT_COUNT,
    PRESENT,
    SEEN_UNTIL,
    STEP_COUNT,
    WHOLE_ON,
    JobArrays,
    ProfileArrays,
    Rules,
)
from poolwise.units import HORIZON


@step
def hopeful(last: int, first: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> int:
    """Position, from `last` back to `first`, of a job that fits from now on for as long as it asks for; else `first` - 1.

    `profile.size[WHOLE_ON]` is a rack that holds the job whole for so long, -1 if none does.
    """
    present, ranked = profile.size[PRESENT], profile.standing.ranked
    nodes, memory = profile.nodes[present], profile.memory[present]
    while last >= first:
        job = ranked[last]
        n = jobs.nodes[job]
        if n <= nodes and n * jobs.remote[job] <= memory and _fits_throughout(job, jobs, rules, profile):
            return last
        last -= 1
    return last


@step
def still_hopeful(job: int, other: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> bool:
    """Whether a hopeful job fits beside the reservation just made of another one too."""
    standing, whole = profile.standing, profile.size[WHOLE_ON]
    begin = standing.start[other]
    if begin < 0:
        return True
    _look_again(begin, profile)
    if begin >= _until(job, jobs, rules, profile) and begin > profile.time[profile.size[PRESENT]]:
        return True
    if whole >= 0 and standing.take[other, whole] == 0 and standing.borrow[other, whole] == 0:
        return True
    return bool(_fits_throughout(job, jobs, rules, profile))


@inlined
def _look_again(time: int, profile: ProfileArrays) -> None:
    """Forget the steps from a time (ns) on, and all where it is not later than now."""
    if time < profile.size[SEEN_UNTIL]:
        profile.size[SEEN_UNTIL] = time
        while profile.size[STEP_COUNT] > 0 and profile.steps.time[profile.size[STEP_COUNT] - 1] >= time:
            profile.size[STEP_COUNT] -= 1


@inlined
def _until(job: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> int:
    """Time (ns) at which a job that begins now would end at the earliest."""
    time = profile.time[profile.size[PRESENT]]
    return int(time + min(shortest(job, jobs, rules), HORIZON - time))


@step
def _fits_throughout(job: int, jobs: JobArrays, rules: Rules, profile: ProfileArrays) -> bool:
    """Whether a job fits from now on for as long as it asks for."""
    n, remote, until, steps = jobs.nodes[job], jobs.remote[job], _until(job, jobs, rules, profile), profile.steps
    if profile.size[STEP_COUNT] == 0:
        _first_step(profile)
    at = profile.size[STEP_COUNT] - 1
    while at > 0 and steps.time[at] >= until:
        at -= 1
    while True:
        if steps.nodes[at] < n or steps.memory[at] < n * remote:
            return False
        if not fits(n, remote, rules.anywhere, steps.free[at], steps.pool[at]):
            return False
        if profile.size[SEEN_UNTIL] >= until or not _next_step(until, profile):
            profile.size[WHOLE_ON] = -1
            for r in range(steps.free.shape[1]):
                if steps.free[at, r] >= n and steps.pool[at, r] >= n * remote:
                    profile.size[WHOLE_ON] = r
            return True
        at = profile.size[STEP_COUNT] - 1


@inlined
def _first_step(profile: ProfileArrays) -> None:
    """Write what is free now."""
    steps, present = profile.steps, profile.size[PRESENT]
    for r in range(steps.free.shape[1]):
        steps.free[0, r], steps.pool[0, r] = profile.free[r, present], profile.pool[r, present]
    steps.time[0], steps.nodes[0], steps.memory[0] = profile.time[present], profile.nodes[present], profile.memory[present]
    profile.size[STEP_COUNT], profile.size[SEEN_UNTIL] = 1, profile.time[present] + 1


@step
def _next_step(until: int, profile: ProfileArrays) -> bool:
    """Find the next step before a time (ns); whether there is one."""
    steps, last = profile.steps, profile.size[STEP_COUNT] - 1
    m = before(profile.size[SEEN_UNTIL], profile)
    while m < profile.size[INSTANT_COUNT] and profile.time[m] < until:
        if profile.begins[m] > 0:
            nodes, memory = 0, 0
            for r in range(steps.free.shape[1]):
                free, pool = min(steps.free[last, r], profile.free[r, m]), min(steps.pool[last, r], profile.pool[r, m])
                steps.free[last + 1, r], steps.pool[last + 1, r] = free, pool
                nodes += free
                memory += pool
            if nodes < steps.nodes[last] or memory < steps.memory[last]:
                steps.time[last + 1], steps.nodes[last + 1], steps.memory[last + 1] = profile.time[m], nodes, memory
                profile.size[STEP_COUNT], profile.size[SEEN_UNTIL] = last + 2, profile.time[m] + 1
                return True
        m += 1
    profile.size[SEEN_UNTIL] = until
    return False
