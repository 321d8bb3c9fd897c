"""Queue of waiting jobs, an unordered list: a job leaves by a swap with the last one."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined
from poolwise.kernels.shared_nodes.state import PASSES, WAITING, SharedQueue


@inlined
def join(job: int, queue: SharedQueue, now: IntArray) -> None:
    """Add a job to the queue."""
    at = now[WAITING]
    queue.job[at], queue.where[job], queue.since[at] = job, at, now[PASSES] - 1
    now[WAITING] += 1


@inlined
def leave(job: int, queue: SharedQueue, now: IntArray) -> None:
    """Remove a job from the queue."""
    now[WAITING] -= 1
    last, at = now[WAITING], queue.where[job]
    queue.job[at], queue.where[queue.job[last]], queue.since[at] = queue.job[last], at, queue.since[last]
    queue.where[job] = -1
