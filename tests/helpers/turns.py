"""In which turn a pass of list scheduling looks at the jobs of a queue."""

from collections.abc import Collection

from poolwise.model import Queue, Snapshot
from poolwise.schedulers.list import ListScheduler


def turns(scheduler: ListScheduler, queue: Queue, snapshot: Snapshot, started: Collection[int]) -> list[int]:
    """Jobs by priority; those behind the first that does not start, the head, in the backfill's own order if it has one."""
    jobs = queue.jobs.tolist()

    def ranked(priority: list[float]) -> list[int]:
        return [job for _, _, job in sorted((-p, k, job) for k, (p, job) in enumerate(zip(priority, jobs, strict=True)))]

    ranking = ranked(scheduler.order.priority(queue, snapshot).tolist())
    own = scheduler.backfill.backfill_order
    if own is None:
        return ranking
    head = next((k for k, job in enumerate(ranking) if job not in started), len(ranking))
    rest = [job for job in ranked(own.priority(queue, snapshot).tolist()) if job in ranking[head + 1 :]]
    return ranking[: head + 1] + rest
