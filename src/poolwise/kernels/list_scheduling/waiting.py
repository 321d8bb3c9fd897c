"""Queue of waiting jobs, an unordered list: a job leaves by a swap with the last one."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined
from poolwise.kernels.list_scheduling.state import BACKLOG, OLDEST, PASSES, WAITING, JobArrays, QueueArrays


@inlined
def join(job: int, jobs: JobArrays, queue: QueueArrays, now: IntArray) -> None:
    """Add a job to the queue."""
    write_at(job, now[WAITING], jobs, queue)
    queue.since[now[WAITING]] = now[PASSES] - 1
    now[WAITING] += 1
    add_to_backlog(job, 1, queue, now)


@inlined
def write_at(job: int, at: int, jobs: JobArrays, queue: QueueArrays) -> None:
    """Write a job to a position of the queue."""
    queue.job[at], queue.where[job] = job, at
    queue.nodes[at], queue.remote[at], queue.length[at] = jobs.nodes[job], jobs.remote[job], jobs.length[job]


@inlined
def leave(job: int, queue: QueueArrays, now: IntArray) -> None:
    """Remove a job from the queue."""
    now[WAITING] -= 1
    last, at = now[WAITING], queue.where[job]
    queue.job[at], queue.where[queue.job[last]] = queue.job[last], at
    queue.nodes[at], queue.remote[at], queue.length[at] = queue.nodes[last], queue.remote[last], queue.length[last]
    queue.since[at] = queue.since[last]
    queue.where[job] = -1
    add_to_backlog(job, -1, queue, now)


@inlined
def add_to_backlog(job: int, times: int, queue: QueueArrays, now: IntArray) -> None:
    """Add a job to the backlog (times 1), or remove it (times -1)."""
    if queue.area.size > 0:
        now[BACKLOG] += times * queue.area[job]


@inlined
def oldest(queue: QueueArrays, now: IntArray) -> int:
    """Return the waiting job that was submitted first; requires that one waits and that no started job is requeued."""
    while queue.where[now[OLDEST]] < 0:
        now[OLDEST] += 1
    return int(now[OLDEST])
