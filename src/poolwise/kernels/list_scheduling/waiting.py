"""Jobs that join and leave the queue, an unordered list: leaving is a swap with the last."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined
from poolwise.kernels.list_scheduling.state import BACKLOG, OLDEST, PASSES, WAITING, JobArrays, QueueArrays


@inlined
def join(job: int, jobs: JobArrays, queue: QueueArrays, now: IntArray) -> None:
    """Add a job to the queue."""
    line_up(job, now[WAITING], jobs, queue)
    queue.since[now[WAITING]] = now[PASSES] - 1
    now[WAITING] += 1
    count(job, 1, queue, now)


@inlined
def line_up(job: int, at: int, jobs: JobArrays, queue: QueueArrays) -> None:
    """Put a job at a position."""
    queue.job[at], queue.where[job] = job, at
    queue.nodes[at], queue.remote[at], queue.length[at] = jobs.nodes[job], jobs.remote[job], jobs.length[job]


@inlined
def leave(job: int, queue: QueueArrays, now: IntArray) -> None:
    """Take a job out of the queue."""
    now[WAITING] -= 1
    last, at = now[WAITING], queue.where[job]
    queue.job[at], queue.where[queue.job[last]] = queue.job[last], at
    queue.nodes[at], queue.remote[at], queue.length[at] = queue.nodes[last], queue.remote[last], queue.length[last]
    queue.since[at] = queue.since[last]
    queue.where[job] = -1
    count(job, -1, queue, now)


@inlined
def count(job: int, times: int, queue: QueueArrays, now: IntArray) -> None:
    """Add a job to the backlog, or take it out."""
    if queue.area.size > 0:
        now[BACKLOG] += times * queue.area[job]


@inlined
def oldest(queue: QueueArrays, now: IntArray) -> int:
    """Waiting job that was submitted first, where one waits and no job waits again that has started."""
    while queue.where[now[OLDEST]] < 0:
        now[OLDEST] += 1
    return int(now[OLDEST])
