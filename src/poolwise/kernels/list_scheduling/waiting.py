"""Jobs that join and leave the queue, an unordered list: leaving is a swap with the last."""

from __future__ import annotations

from poolwise.arrays import IntArray
from poolwise.kernels.jit import inlined
from poolwise.kernels.list_scheduling.state import PASSES, WAITING, Queue


@inlined
def join(job: int, queue: Queue, now: IntArray) -> None:
    """Let a job wait."""
    queue.job[now[WAITING]], queue.where[job] = job, now[WAITING]
    queue.since[job] = now[PASSES] - 1
    now[WAITING] += 1


@inlined
def leave(job: int, queue: Queue, now: IntArray) -> None:
    """Take a job out of the queue."""
    now[WAITING] -= 1
    last, at = queue.job[now[WAITING]], queue.where[job]
    queue.job[at], queue.where[last] = last, at
    queue.where[job] = -1
