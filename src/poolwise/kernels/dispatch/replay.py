"""Event loop: all ends of an instant, its arrivals, then one pass over the task queues."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.dispatch.ends import lowest, pop, push
from poolwise.kernels.dispatch.idle import at, before, first, mark
from poolwise.kernels.dispatch.state import (
    DONE,
    LATE,
    NEXT,
    PASSES,
    STARTED,
    TIME,
    Ends,
    IdleArrays,
    TaskArrays,
    TaskQueueArrays,
    TaskRunArrays,
    Tiers,
    UnitArrays,
)
from poolwise.kernels.jit import entry, step
from poolwise.units import HORIZON, NEVER


@entry
def replay(
    jobs: TaskArrays,
    units: UnitArrays,
    idle: IdleArrays,
    ends: Ends,
    tiers: Tiers,
    lanes: TaskQueueArrays,
    runs: TaskRunArrays,
    now: IntArray,
) -> int:
    """Run until no event is left (DONE) or the clock is beyond `HORIZON` (LATE)."""
    while True:
        arrival = jobs.submit[now[NEXT]] if now[NEXT] < jobs.submit.size else NEVER
        row = lowest(ends)
        time = min(arrival, ends.soonest[row])
        if time == NEVER:
            return DONE
        if time > HORIZON:
            return LATE
        now[TIME] = time
        if ends.soonest[row] == time:
            _end(pop(ends, row), time, idle, ends)
        while now[NEXT] < jobs.submit.size and jobs.submit[now[NEXT]] == time:
            _join(now[NEXT], jobs, lanes)
            now[NEXT] += 1
        now[PASSES] += 1
        _pass(jobs, units, idle, ends, tiers, lanes, runs, now)


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
def _join(job: int, jobs: TaskArrays, lanes: TaskQueueArrays) -> None:
    """Append a row of tasks to its queue."""
    lane = jobs.lane[job]
    if lanes.head[lane] < 0:
        lanes.head[lane] = job
    else:
        lanes.next[lanes.tail[lane]] = job
    lanes.tail[lane] = job


@step
def _pass(
    jobs: TaskArrays,
    units: UnitArrays,
    idle: IdleArrays,
    ends: Ends,
    tiers: Tiers,
    lanes: TaskQueueArrays,
    runs: TaskRunArrays,
    now: IntArray,
) -> None:
    """Start tasks of the oldest queue head that has not failed in this pass, until none is left or no unit is idle."""
    while idle.total[0] > 0:
        job, lane = -1, -1
        for k in range(lanes.head.size):
            head = lanes.head[k]
            if head >= 0 and lanes.closed[k] != now[PASSES] and (job < 0 or head < job):
                job, lane = head, k
        if job < 0:
            return
        unit = _choose(job, jobs, units, idle, tiers, lanes)
        if unit < 0:
            lanes.closed[lane] = now[PASSES]
            continue
        _start(job, unit, jobs, units, idle, ends, runs, now)
        lanes.served[job] += 1
        if lanes.served[job] == jobs.tasks[job]:
            lanes.head[lane] = lanes.next[job]


@step
def _choose(job: int, jobs: TaskArrays, units: UnitArrays, idle: IdleArrays, tiers: Tiers, lanes: TaskQueueArrays) -> int:
    """Return an idle unit of the first tier that has one, -1 if none has."""
    for tier in range(tiers.tier[jobs.shape[job]], tiers.tier[jobs.shape[job] + 1]):
        low, high = tiers.part[tier], tiers.part[tier + 1]
        if jobs.draw.size > 0:
            unit = _random(jobs.draw[jobs.first[job] + lanes.served[job]], low, high, idle, tiers)
        else:
            unit = _first(low, high, units, idle, tiers)
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
def _start(
    job: int, unit: int, jobs: TaskArrays, units: UnitArrays, idle: IdleArrays, ends: Ends, runs: TaskRunArrays, now: IntArray
) -> None:
    """Start the next task of a row on a unit."""
    distance = 2
    if units.x[unit] == jobs.x[job]:
        distance = 0 if units.y[unit] == jobs.y[job] else 1
    end = now[TIME] + jobs.transfer[job, distance] + jobs.compute[job, units.kind[unit]]
    mark(idle, unit, -1)
    push(ends, unit, end)
    k = now[STARTED]
    runs.job[k], runs.start[k], runs.end[k], runs.unit[k] = job, now[TIME], end, unit
    now[STARTED] += 1
