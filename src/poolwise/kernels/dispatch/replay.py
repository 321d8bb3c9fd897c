"""Event loop: all ends of an instant, its arrivals, then one pass over the task queues."""

from __future__ import annotations

from poolwise.kernels.dispatch.ends import lowest, pop, push
from poolwise.kernels.dispatch.idle import at, before, first, mark
from poolwise.kernels.dispatch.state import (
    DONE,
    LATE,
    DispatchState,
    Ends,
    IdleArrays,
    TaskArrays,
    TaskQueueArrays,
    Tiers,
    UnitArrays,
)
from poolwise.kernels.jit import entry, step
from poolwise.quantities import HORIZON, NEVER


@entry
def replay(state: DispatchState) -> int:
    """Run until no event is left (DONE) or the clock is beyond `HORIZON` (LATE)."""
    jobs, ends, now = state.jobs, state.ends, state.now
    while True:
        arrival = jobs.submit[now.next] if now.next < jobs.submit.size else NEVER
        row = lowest(ends)
        time = min(arrival, ends.soonest[row])
        if time == NEVER:
            return DONE
        if time > HORIZON:
            return LATE
        now.time = time
        if ends.soonest[row] == time:
            _end(pop(ends, row), time, state.idle, ends)
        while now.next < jobs.submit.size and jobs.submit[now.next] == time:
            join(now.next, jobs, state.lanes)
            now.next += 1
        now.passes += 1
        _pass(state)


@step
def _end(unit: int, time: int, idle: IdleArrays, ends: Ends) -> None:
    """Release the units of a slot whose tasks end now; the others move to lower rows."""
    while unit >= 0:
        follower = ends.next[unit]
        if ends.end[unit] == time:
            mark(idle, unit, 1)
        else:
            push(ends, unit, ends.end[unit])
        unit = follower


@step
def join(job: int, jobs: TaskArrays, lanes: TaskQueueArrays) -> None:
    """Append a row of tasks to its queue."""
    lane = jobs.lane[job]
    if lanes.head[lane] < 0:
        lanes.head[lane] = job
    else:
        lanes.next[lanes.tail[lane]] = job
    lanes.tail[lane] = job


@step
def _pass(state: DispatchState) -> None:
    """Start tasks of the oldest queue head that has not failed in this pass, until none is left or no unit is idle."""
    lanes, now = state.lanes, state.now
    while state.idle.total[0] > 0:
        job, lane = -1, -1
        for k in range(lanes.head.size):
            head = lanes.head[k]
            if head >= 0 and lanes.closed[k] != now.passes and (job < 0 or head < job):
                job, lane = head, k
        if job < 0:
            return
        unit = choose(job, state)
        if unit < 0:
            lanes.closed[lane] = now.passes
            continue
        start_task(job, unit, state)
        lanes.served[job] += 1
        if lanes.served[job] == state.jobs.tasks[job]:
            lanes.head[lane] = lanes.next[job]


@step
def choose(job: int, state: DispatchState) -> int:
    """Return an idle unit of the first tier that has one, -1 if none has."""
    jobs, idle, tiers = state.jobs, state.idle, state.tiers
    for tier in range(tiers.tier[jobs.shape[job]], tiers.tier[jobs.shape[job] + 1]):
        low, high = tiers.part[tier], tiers.part[tier + 1]
        if jobs.draw.size > 0:
            unit = _random(jobs.draw[jobs.first[job] + state.lanes.served[job]], low, high, idle, tiers)
        else:
            unit = _first(low, high, state.units, idle, tiers)
        if unit >= 0:
            return unit
    return -1


@step
def _first(low: int, high: int, units: UnitArrays, idle: IdleArrays, tiers: Tiers) -> int:
    """Return the idle unit of some ranges that comes first in the tie rule, -1 if there is none."""
    best = -1
    for part in range(low, high):
        unit = first(idle, tiers.low[part], tiers.high[part])
        if unit >= 0 and (best < 0 or units.rank[unit] < units.rank[best]):
            best = unit
    return best


@step
def _random(draw: float, low: int, high: int, idle: IdleArrays, tiers: Tiers) -> int:
    """Return a uniformly random idle unit of some ranges, -1 if there is none."""
    total = 0
    for part in range(low, high):
        tiers.idle[part] = before(idle, tiers.high[part]) - before(idle, tiers.low[part])
        total += tiers.idle[part]
    number = int(draw * total)
    for part in range(low, high):
        if number < tiers.idle[part]:
            return int(at(idle, before(idle, tiers.low[part]) + number))
        number -= tiers.idle[part]
    return -1


@step
def start_task(job: int, unit: int, state: DispatchState) -> None:
    """Start the next task of a row on a unit."""
    jobs, units, runs, now = state.jobs, state.units, state.runs, state.now
    distance = 2
    if units.x[unit] == jobs.x[job]:
        distance = 0 if units.y[unit] == jobs.y[job] else 1
    end = now.time + jobs.transfer[job, distance] + jobs.compute[job, units.kind[unit]]
    mark(state.idle, unit, -1)
    push(state.ends, unit, end)
    k = now.started
    runs.job[k], runs.start[k], runs.end[k], runs.unit[k] = job, now.time, end, unit
    now.started += 1
