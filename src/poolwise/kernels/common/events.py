"""Parts of the event loop that the kernels for racks and for shared nodes share.

`state` is a `RackState` or a `SharedState`: their queue, runs and scalars have the same layout.
"""

from __future__ import annotations

import math
from typing import Any

from poolwise.arrays import IntArray
from poolwise.kernels.common import heap
from poolwise.kernels.common.state import Now, QueueArrays
from poolwise.kernels.jit import inlined, step
from poolwise.quantities import HORIZON, LONGEST, NEVER


@inlined
def time_at(times: IntArray, k: int) -> int:
    """Return the k-th of ascending times (ns), NEVER if there are fewer."""
    return int(times[k] if k < times.size else NEVER)


@inlined
def advance_clock(change: int, state: Any) -> bool:
    """Advance to the next arrival, end of a run or `change` (ns); return False at the end of the replay."""
    runs, now = state.runs, state.now
    end = runs.end[runs.ending[0]] if now.running > 0 else NEVER
    time = min(time_at(state.jobs.submit, now.next), end, change)
    if time == NEVER or time > now.stop or now.awaited == 0:
        return False
    now.time = time
    now.passes += 1
    now.quiet = int(time not in (end, change))
    return True


@inlined
def run_ends(state: Any) -> bool:
    """Return whether a run ends now."""
    runs, now = state.runs, state.now
    return bool(now.running > 0 and runs.end[runs.ending[0]] == now.time)


@inlined
def job_arrives(state: Any) -> bool:
    """Return whether a job arrives now."""
    now = state.now
    return bool(time_at(state.jobs.submit, now.next) == now.time)


@inlined
def joins_queue(job: int, state: Any) -> bool:
    """Return whether an arriving job joins the queue; reject a job that cannot run, and add warm-up jobs to their own queue.

    Jobs that arrive during the warm-up but are not part of it all join; they are checked when the warm-up ends.
    """
    now = state.now
    if now.warm and job >= state.rules.warm_up:
        now.quiet = 0
        return True
    if not state.jobs.able[job]:
        reject(job, state)
        return False
    now.quiet = 0
    if now.warm:
        state.queue.warm[now.warm_last] = job
        now.warm_last += 1
        return False
    return True


@step
def reject(job: int, state: Any) -> None:
    """Reject a job."""
    now = state.now
    state.runs.rejected[now.rejected] = job
    now.rejected += 1


@inlined
def defer(job: int, deferred: IntArray, now: Now) -> None:
    """Defer a job until it is readmitted or rejected."""
    deferred[now.deferred] = job
    now.deferred += 1


@step
def end_warm_up(state: Any) -> bool:
    """End the warm-up if its last job was submitted, and reject unable jobs in the queue; return whether it ended."""
    jobs, queue, now = state.jobs, state.queue, state.now
    if now.next < min(state.rules.warm_up, jobs.submit.size):
        return False
    now.warm, now.quiet = 0, 0
    later = now.waiting
    now.waiting = 0
    for k in range(later):  # in arrival order: no job has left the queue yet
        job, at = queue.job[k], now.waiting
        if jobs.able[job]:
            queue.job[at], queue.where[job], queue.since[at] = job, at, queue.since[k]
            now.waiting += 1
        else:
            queue.where[job] = -1
            reject(job, state)
    return True


@inlined
def enqueue(job: int, queue: QueueArrays, now: Now) -> int:
    """Add a job to the end of the queue; return its position."""
    at = now.waiting
    queue.job[at], queue.where[job], queue.since[at] = job, at, now.passes - 1
    now.waiting += 1
    return int(at)


@inlined
def dequeue(job: int, queue: QueueArrays, now: Now) -> int:
    """Remove a job from the queue by moving the last job to its position; return this position."""
    now.waiting -= 1
    last, at = now.waiting, queue.where[job]
    queue.job[at], queue.where[queue.job[last]], queue.since[at] = queue.job[last], at, queue.since[last]
    queue.where[job] = -1
    return int(at)


@inlined
def begin_run(job: int, runtime: int, expected: int, state: Any) -> int:
    """Start a run with a true and an expected runtime (ns); return its number. Its placement is recorded separately."""
    jobs, runs, now = state.jobs, state.runs, state.now
    k = now.started
    runs.job[k], runs.start[k] = job, now.time
    runs.end[k] = now.time + min(runtime, HORIZON + 1 - now.time)  # saturates just beyond the horizon
    runs.expected[k] = now.time + min(expected, HORIZON - now.time)
    heap.push(runs.ending, now.running, k, runs.end)
    now.running += 1
    now.started += 1
    now.settled = 0
    if jobs.awaited.size > 0:
        now.awaited -= int(jobs.awaited[job])
    return int(k)


@inlined
def abort_run(k: int, state: Any) -> None:
    """End a current run now, before its time, and remove it from the heap; `now.running` still counts it."""
    now = state.now
    runs, last = state.runs, now.running - 1
    at = 0
    while runs.ending[at] != k:
        at += 1
    runs.ending[at] = runs.ending[last]
    heap.arrange(runs.ending, last, runs.end)
    runs.end[k] = now.time


@inlined
def window(now: Now) -> int:
    """Return the longest expected runtime of a job that starts now and ends by the head's shadow time, up to the horizon."""
    return int(now.shadow - now.time if now.shadow < HORIZON else NEVER)


@step
def stretch(work: int, slow: float) -> int:
    """Return the ns that work takes at a slowdown, as `units.with_slowdown` computes them; saturates at `LONGEST`."""
    whole = min(float(work), float(LONGEST))
    return int(whole) + math.ceil(min(whole * slow, float(LONGEST) - whole))
